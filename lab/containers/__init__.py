"""The images, built and run as docker-compose.yml says, by Podman, which needs no daemon."""

"""Builds the images, and runs them as docker-compose.yml says, by Podman, which needs no daemon."""

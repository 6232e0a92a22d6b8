"""The images, built and run as docker-compose.yml says, where Docker itself can't run."""

"""Runs Podman, and podman-compose under a project name of its own.

Debian's podman-compose exits with 0 even where Podman has failed, and runs no health checks. So it
only starts and removes the services; the rest is done by Podman itself.
"""

import base64
import os
import secrets
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from rocket_rides.settings import PROJECT

HERE = Path(__file__).parent
FILE = PROJECT / "docker-compose.yml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
NAME = "rocket-rides-images"
API_PORT, WATCH_PORT = 18000, 18001  # on this host: not those of a fleet that may run here
ENVIRONMENT = {**os.environ, "CONTAINERS_CONF": str(HERE / "containers.conf")}
# The secrets of this run; and the demo's own receiver, whatever the environment says.
FLEET = {
    "API_PORT": str(API_PORT),
    "WATCH_PORT": str(WATCH_PORT),
    "RECEIPT_URL": "http://simulator:8002/receipts",
    "RECEIPT_SECRET": f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}",
    "POSTGRES_PASSWORD": secrets.token_hex(),
}
MOST_LINES = 20  # of what a command said before it failed


class Failed(Exception):
    """Something that was to be shown does not hold; the message says what."""


def podman(*words: str) -> str:
    """Run Podman; returns its standard output. Raises Failed."""
    return _said("podman", *words, environment=ENVIRONMENT)


def compose(*words: str) -> None:
    """Run podman-compose. Raises Failed, but not where a service can't be started.

    The file is copied to a folder without .env, which would take precedence over FLEET.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = ("--file", shutil.copy(FILE, folder), "--file", str(HERE / "podman.yml"))
        command = ("podman-compose", "--project-name", NAME, *files, *words)
        _said(*command, environment=ENVIRONMENT | FLEET)


def _said(*command: str, environment: Mapping[str, str]) -> str:
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    if ran.returncode:
        lines = (ran.stdout + ran.stderr).strip().splitlines()
        raise Failed("\n".join([f"{shlex.join(command)} failed:", *lines[-MOST_LINES:]]))
    return ran.stdout.strip()


def show(*command: str) -> None:
    """Run a command that may take minutes, and show its output. Raises Failed."""
    if subprocess.run(command, env=ENVIRONMENT).returncode:
        raise Failed(f"{shlex.join(command)} failed")

"""Podman, podman-compose with a project of its own, and the services of docker-compose.yml.

Debian's podman-compose ends with status 0 also where Podman has failed, and asks no health check.
So it starts and removes the services, and all else is asked of Podman itself.
"""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rocket_rides.settings import PROJECT

HERE = Path(__file__).parent
FILE = PROJECT / "docker-compose.yml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
NAME = "rocket-rides-images"
SETTINGS = {"CONTAINERS_CONF": str(HERE / "containers.conf")}
MOST_LINES = 20  # of what a command said before it failed


class Failed(Exception):
    """What was to be shown does not hold; the message says what."""


def podman(*words: str) -> str:
    """What it says on its standard output. Raises Failed."""
    return _said(["podman", *words], {})


def compose(environment: Mapping[str, str], *words: str) -> None:
    """Raises Failed, but not where a service can't be started.

    The file is copied to where no .env is, which would take precedence over `environment`.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = ("--file", shutil.copy(FILE, folder), "--file", str(HERE / "podman.yml"))
        _said(["podman-compose", "--project-name", NAME, *files, *words], environment)


def _said(command: Sequence[str], environment: Mapping[str, str]) -> str:
    given = {**os.environ, **SETTINGS, **environment}
    ran = subprocess.run(command, env=given, capture_output=True, text=True)
    if ran.returncode:
        lines = (ran.stdout + ran.stderr).strip().splitlines()
        raise Failed("\n".join([f"{shlex.join(command)} failed:", *lines[-MOST_LINES:]]))
    return ran.stdout.strip()


def show(*command: str) -> None:
    """Show what a command says, as it may take minutes. Raises Failed."""
    if subprocess.run(command, env=os.environ | SETTINGS).returncode:
        raise Failed(f"{shlex.join(command)} failed")

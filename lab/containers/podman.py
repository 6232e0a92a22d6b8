"""Runs Podman, and podman-compose under a project name of its own.

Debian's podman-compose exits with 0 even where Podman has failed, and runs no health checks. So it
only starts and removes the services; the rest is done by Podman itself.
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
    """Something that was to be shown does not hold; the message says what."""


def podman(*words: str) -> str:
    """Run Podman; returns its standard output. Raises Failed."""
    return _said(["podman", *words], {})


def compose(environment: Mapping[str, str], *words: str) -> None:
    """Run podman-compose. Raises Failed, but not where a service can't be started.

    The file is copied to a folder without .env, which would take precedence over `environment`.
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
    """Run a command that may take minutes, and show its output. Raises Failed."""
    if subprocess.run(command, env=os.environ | SETTINGS).returncode:
        raise Failed(f"{shlex.join(command)} failed")

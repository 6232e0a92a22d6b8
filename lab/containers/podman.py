"""Runs Podman, and podman-compose under a project name of its own; and builds the images.

Debian's podman-compose exits with 0 even where Podman has failed, and runs no health checks. So it
only starts and removes the services; the rest is done by Podman itself.
"""

import base64
import os
import platform
import re
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


MADE = "localhost/rocket-rides-base"
# Debian keeps pip from installing beside its own packages, which does no harm in an image.
MAKE = (
    *("mmdebstrap", "--quiet", "--variant=minbase"),
    "--include=python3-pip,python-is-python3,ca-certificates",
    '--customize-hook=rm "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',
)
PATH = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Where Debian lists its package sources; the first file that exists is used.
SOURCES = [Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list")]
# For the builds, if they exist: pip's configuration, and the certificates that it names.
LENT = ("/etc/pip.conf", "/root/.config/pip", "/etc/ssl/certs/ca-certificates.crt")


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


def build() -> None:
    """Build all images that the services need: ours, and those that stand in. Raises Failed."""
    builds = [each for each in SERVICES.values() if "build" in each]
    wanted = {each["image"]: (each["build"]["target"], PROJECT) for each in builds}
    wanted |= {f"rocket-rides-{server}": (server, HERE) for server in ("postgres", "redis")}
    lent = [f"--volume={path}:{path}:ro" for path in LENT if Path(path).exists()]
    base = f"--build-arg=BASE={_base()}"
    for image, (target, context) in wanted.items():
        show("podman", "build", base, *lent, "--target", target, "--tag", image, str(context))


def _base() -> str:
    """The base image: the Dockerfile's, or one that is made here. Raises Failed."""
    [own] = re.findall(r"^ARG BASE=(\S+)$", (PROJECT / "Dockerfile").read_text(), re.MULTILINE)
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    made = f"{MADE}:{release}"
    try:
        podman("pull", "--quiet", own)
        return str(own)
    except Failed:
        if made in podman("images", "--format", "{{.Repository}}:{{.Tag}}").splitlines():
            return made
    print(f"{own} can't be pulled; making a base from Debian's packages", flush=True)
    sources = next(str(path) for path in SOURCES if path.exists())
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: S103 (packages are fetched by an unprivileged user)
        show(*MAKE, release, f"{folder}/base.tar", sources)
        podman("import", "--change", PATH, f"{folder}/base.tar", made)
    return made

"""Builds the images with buildah, and makes their files available.

Where the Dockerfile's own base image can't be had, one is made from Debian's packages.
"""

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path
from typing import NamedTuple

from lab.containers.compose import Failed, Service
from rocket_rides.settings import PROJECT

BUILDAH = "buildah"
MADE = "localhost/rocket-rides-base"
# Debian keeps pip from installing beside its own packages; in an image there is nobody to confuse.
MAKE = (
    *("mmdebstrap", "--quiet", "--variant=minbase"),
    "--include=python3-pip,python-is-python3,ca-certificates",
    '--customize-hook=rm "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',
)
MADE_FROM = "FROM scratch\nADD base.tar /\nENV PATH={}\n"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Where Debian names its own sources: of these, the first that is there.
SOURCES = [Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list")]
PIP = "/root/.config/pip"


class Image(NamedTuple):
    """An image; what it says of the processes in it."""

    root: str  # where its files are on this machine
    user: str
    folder: str
    environment: dict[str, str]


def buildah(*words: str) -> str:
    """Returns what it says. Raises Failed."""
    ran = subprocess.run([BUILDAH, *words], stdout=subprocess.PIPE, text=True)
    if ran.returncode:
        raise Failed(f"buildah {words[0]} failed")
    return ran.stdout.strip()


def _build(tag: str, *words: str, text: str | None = None) -> None:
    """Shows what it does, which may take minutes. Raises Failed."""
    command = [BUILDAH, "build", "--isolation", "chroot", "--tag", tag, *words]
    if subprocess.run(command, input=text, text=True).returncode:
        raise Failed(f"{tag} could not be built")


def build(services: list[Service]) -> dict[str, str]:
    """Build the images that are ours, each once; returns how large each is. Raises Failed."""
    base, images = _base(), _ours(services)
    with tempfile.TemporaryDirectory() as folder:
        _write_pip_configuration(Path(folder))
        for image, target in images.items():
            options = ("--layers", "--build-arg", f"BASE={base}", "--volume", f"{folder}:{PIP}:ro")
            _build(image, *options, "--target", target, str(PROJECT))
    return {name: buildah("images", "--format", "{{.Size}}", name) for name in (base, *images)}


def _ours(services: list[Service]) -> dict[str, str]:
    """The Dockerfile's stage for each image."""
    return {each.image: each.target for each in services if each.target}


def _base() -> str:
    """The base image: the Dockerfile's own, or one that is made here. Raises Failed."""
    [own] = re.findall(r"^ARG BASE=(\S+)$", (PROJECT / "Dockerfile").read_text(), re.MULTILINE)
    pull = subprocess.run([BUILDAH, "pull", "--quiet", own], capture_output=True)
    if pull.returncode == 0:
        return str(own)
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    made = f"{MADE}:{release}"
    if subprocess.run([BUILDAH, "inspect", made], capture_output=True).returncode:
        print(f"{own} can't be pulled; making a base from Debian's packages", flush=True)
        sources = next(str(path) for path in SOURCES if path.exists())
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)  # noqa: S103 (packages are fetched by an unprivileged user)
            if subprocess.run([*MAKE, release, f"{folder}/base.tar", sources]).returncode:
                raise Failed(f"{own} can't be pulled, and mmdebstrap can't make a base")
            _build(made, "--file", "-", folder, text=MADE_FROM.format(PATH))
    return made


def _write_pip_configuration(folder: Path) -> None:
    """This machine's: its files, its variables, its certificates. No image gets it."""
    config = RawConfigParser()
    config.read(["/etc/pip.conf", Path("~/.config/pip/pip.conf").expanduser()])
    for section in {"global"} - set(config.sections()):
        config.add_section(section)
    for name, value in os.environ.items():
        if name.startswith("PIP_"):
            config.set("global", name.removeprefix("PIP_").lower().replace("_", "-"), value)
    if certificates := config.get("global", "cert", fallback=os.environ.get("SSL_CERT_FILE")):
        shutil.copy(certificates, folder / "ca.crt")
        config.set("global", "cert", f"{PIP}/ca.crt")
    with (folder / "pip.conf").open("w") as file:
        config.write(file)


@contextlib.contextmanager
def mounted(services: list[Service]) -> Iterator[dict[str, Image]]:
    """The images, each with its files, from which any number of processes can run."""
    containers = {}
    try:
        for image in _ours(services):
            containers[image] = buildah("from", "--pull-never", image)
        yield {image: _image(container) for image, container in containers.items()}
    finally:
        for container in containers.values():
            buildah("rm", container)


def _image(container: str) -> Image:
    said = json.loads(buildah("inspect", container))["OCIv1"]["config"]
    environment = dict(each.split("=", 1) for each in said["Env"])
    return Image(buildah("mount", container), said["User"], said["WorkingDir"], environment)

"""Builds the images. Where their base can't be pulled, it is made from Debian's packages."""

import os
import platform
import re
import tempfile
from pathlib import Path

from lab.containers.podman import HERE, SERVICES, Failed, podman, show
from rocket_rides.settings import PROJECT

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

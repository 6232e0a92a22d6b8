"""The package `unified_log`, built, and installed beside nothing but what it depends on.

Nothing is downloaded: what it depends on is packed again from what is installed here.
"""

import re
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from lab.processes import clean_environment, start
from rocket_rides.settings import PROJECT
from tests.support.checkout import uv
from tests.support.world import Service, World

LOCKED = re.findall(r"^([\w.-]+)==", (PROJECT / "requirements/services.txt").read_text(), re.M)


def build(folder: Path) -> Path:
    """Its wheel, in a folder, as `make wheel` builds it."""
    command = [uv()[0], "build", "--quiet", "--wheel", "--out-dir", str(folder), str(PROJECT)]
    subprocess.run(command, check=True)
    [wheel] = folder.glob("unified_log-*.whl")
    return wheel


def pack(package: Distribution, folder: Path) -> None:
    """Make a wheel of an installed package, whose record names all of its files."""
    tags = re.findall("^Tag: (.*)$", package.read_text("WHEEL") or "", re.M)
    parts = zip(*(tag.split("-") for tag in tags), strict=True)
    tag = "-".join(".".join(dict.fromkeys(part)) for part in parts)
    name = f"{package.name.replace('-', '_')}-{package.version}-{tag}.whl"
    with zipfile.ZipFile(folder / name, "w") as archive:
        for file in package.files or []:
            if ".." not in file.parts and file.suffix != ".pyc":  # neither programs nor caches
                archive.write(str(file.locate()), str(file))


def installed(folder: Path) -> Path:
    """The Python of a virtual environment that has the package, and what it asks for."""
    wheels = folder / "wheels"
    wheels.mkdir()
    for name in LOCKED:
        try:
            pack(distribution(name), wheels)
        except PackageNotFoundError:  # one for another platform
            continue
    wheel, venv = build(wheels), folder / "venv"
    cache = ("--cache-dir", folder / "cache", "--no-config", "--offline", "--quiet")
    subprocess.run([uv()[0], "venv", "--python", sys.executable, venv, *cache], check=True)
    python = venv / "bin/python"
    given = ("--python", python, "--no-index", "--find-links", wheels)
    subprocess.run([uv()[0], "pip", "install", *given, wheel, *cache], check=True)
    return python


def environment() -> dict[str, str]:
    """This process' own, without what leads to the project's code or settings."""
    leading = {"PYTHONPATH", "UNIFIED_LOG_SETTINGS"}
    return {name: value for name, value in clean_environment().items() if name not in leading}


def run(python: Path, folder: Path, world: World, module: str, *arguments: str) -> Service:
    """Start a module with that Python, on a world's servers, in a folder."""
    path = world.new_output(module)
    with path.open("wb") as output:
        given = environment() | world.settings
        process = start([python, "-m", module, *arguments], given, output, folder)
    return world.started(Service(process, path))

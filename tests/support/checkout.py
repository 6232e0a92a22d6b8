"""A checkout of this project that has nothing but the installer, and two tiny packages to install.

They come from a folder of wheels. uv is this environment's own, in a wheel that starts it.
"""

import ast
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rocket_rides.settings import PROJECT

# Of each folder its modules.
COPIED = (
    "demo/install",
    "demo/python",
    "demo/launcher",
    "demo/__init__.py",
    "analytics",
    "rocket_rides",
    "unified_log",
)
ELSEWHERE = "nowhere==1 ; sys_platform == 'win32' \\\n    --hash=sha256:" + "0" * 64 + "\n"


@cache
def uv() -> tuple[str, str]:
    """This environment's uv: where it is, and its version."""
    asked = [sys.executable, "-m", "uv", "--version"]
    version = subprocess.check_output(asked, text=True).split()[1]
    return str(Path(sys.executable).with_name("uv")), version


@dataclass
class Checkout:
    """In a folder; `wheels` lies beside it."""

    folder: Path

    @property
    def venv(self) -> Path:
        return self.folder / ".venv"

    @property
    def wheels(self) -> Path:
        return self.folder.parent / "wheels"

    def copy(self) -> None:
        """Copy the installer there, and lock its parts."""
        self.wheels.mkdir(parents=True)
        for name in COPIED:
            source = PROJECT / name
            for file in source.glob("*.py") if source.is_dir() else [source]:
                copy = self.folder / file.relative_to(PROJECT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy)
        (self.folder / "requirements").mkdir()
        program, version = uv()
        self.lock("uv", "uv", version, f'exec "{program}" "$@"')
        self.lock("fleet", "fleet_part")
        self.lock("analytics", "nightly_part")

    def lock(self, lock: str, package: str, version: str = "1.0", program: str = "") -> None:
        """Lock a package and make its wheel: a module, and a program, which is a shell script."""
        record = f"{package}-{version}.dist-info"
        files = {
            f"{package}.py": "",
            f"{package}-{version}.data/scripts/{package}": f"#!/bin/sh\n{program}\n",
            f"{record}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n",
            f"{record}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        wheel = self.wheels / f"{package}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, text in files.items():
                entry = zipfile.ZipInfo(name)
                entry.external_attr = 0o100755 << 16  # pip keeps a program's permissions
                archive.writestr(entry, text)
            archive.writestr(f"{record}/RECORD", "".join(map(_recorded, files.items())))
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        locked = f"{package.replace('_', '-')}=={version} \\\n    --hash=sha256:{digest}\n"
        (self.folder / f"requirements/{lock}.txt").write_text(locked + ELSEWHERE)

    def python(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the folder, as the Makefile does."""
        given = {"PIP_FIND_LINKS": self.wheels.as_uri(), "PIP_NO_INDEX": "1"}
        given["UV_CACHE_DIR"] = str(self.folder.parent / "cache")  # whose files are linked to
        return subprocess.run(
            [sys.executable, "-S", *arguments],
            cwd=self.folder,
            env=os.environ | given | settings,
            capture_output=True,
            text=True,
        )

    def install(self, *parts: str, **settings: str) -> str:
        """Install parts; returns what is said of it."""
        told = self.python("-m", "demo.install", *parts, **settings)
        assert told.returncode == 0, told.stderr
        return told.stderr

    def left(self) -> list[str]:
        """The steps that are left for the part `fleet`."""
        code = "from demo.install.__main__ import left; print(list(left(['fleet'])))"
        told = self.python("-c", code)
        assert told.returncode == 0, told.stderr
        return list(ast.literal_eval(told.stdout))

    def installed(self, pattern: str) -> Path:
        """The one file or folder of that name among .venv's packages."""
        [found] = self.venv.glob(f"lib/python*/site-packages/{pattern}")
        return found


def _recorded(file: tuple[str, str]) -> str:
    name, text = file
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"{name},sha256={digest.rstrip('=')},{len(text)}\n"

"""A machine: a host of the network with processes, a disk and files of its own.

It can crash as if its power failed: its link is down before its processes die, so nobody is told.
Its disk stays, and it can boot again. All its processes end with the thread that booted it.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from cluster import boot
from cluster.network import Host, NoHosts
from rocket_rides.parent_death import preexec_die_with_parent
from rocket_rides.settings import PROJECT

BIN = Path(sys.executable).parent
OWN_NAMESPACES = ("--mount", "--pid", "--uts", "--ipc")
HOME = boot.OWN / "home"


class Machine:
    """`disk` is its folder, as it is seen from outside; `shared` is one that others have too."""

    def __init__(
        self, name: str, host: Host, disk: Path, known: Mapping[str, str], shared: Path | None
    ) -> None:
        self.name = name
        self.host = host
        self.disk = disk
        self._shared = shared
        self.on = False
        self._programs: list[subprocess.Popen[bytes]] = []
        for folder in ("tmp", "home", *(["shared"] if shared else [])):
            (disk / folder).mkdir(parents=True)
        disk.chmod(0o755)  # Postgres' user must reach its own folder in it
        (disk / "tmp").chmod(0o1777)
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in known.items())]
        (disk / "hosts").write_text("\n".join([*lines, ""]))

    def boot(self) -> None:
        """Start it. Raises NoHosts."""
        self.host.plug_in()
        folders = [self.disk, *([self._shared] if self._shared else [])]
        self._unshare = subprocess.Popen(
            [
                *self.host.within,
                *("unshare", *OWN_NAMESPACES, "--fork", "--kill-child", "--mount-proc"),
                *(sys.executable, "-m", boot.__name__, self.name, *map(str, folders)),
            ],
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=preexec_die_with_parent(),
        )
        said = self._unshare.stdout
        if said is None or said.readline() != boot.UP:
            raise NoHosts(f"{self.name} does not boot: what it said stands above")
        [first] = psutil.Process(self._unshare.pid).children()
        self._first = first.pid
        self.on = True

    def run(self, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        """Run a program there. What it prints is in its file on the machine's disk."""
        with self.log.open("ab") as output:
            program = subprocess.Popen(
                [*self._within, *command],
                env=_environment() | environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._programs.append(program)
        return program

    @property
    def log(self) -> Path:
        """What its programs have printed."""
        return self.disk / "log"

    def crash(self) -> None:
        """Its power fails. Returns when nothing runs there any more."""
        self.on = False
        self.host.unplug()
        self._unshare.kill()
        for process in (self._unshare, *self._programs):
            process.wait()
        self._programs = []

    @property
    def _within(self) -> Sequence[str]:
        namespaces = ("--net", *OWN_NAMESPACES)
        # A working directory of its own: the one of whoever starts it may be written to.
        return (
            *("nsenter", "--target", str(self._first), *namespaces),
            *("env", f"--chdir={PROJECT}"),
        )


def _environment() -> dict[str, str]:
    """Nothing of this process' own settings, but where its programs are."""
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "LANG") if name in os.environ}
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return kept | {"PATH": path, "HOME": str(HOME), "PYTHONDONTWRITEBYTECODE": "1"}

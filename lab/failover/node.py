"""A node: a host with its programs, which can be killed, frozen and cut off."""

import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from demo.embedded.account import server_account
from lab.network import Host
from lab.processes import start

ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin"}
ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


class Node:
    """A host, and the commands of its programs by name, which run as the servers' user.

    Each program is the first process of a process namespace: whatever it starts ends with it, and
    it ends with the drill.
    """

    def __init__(self, name: str, address: str, folder: Path) -> None:
        self.name, self.address = name, address
        self.folder = folder / name
        self.programs: Mapping[str, Sequence[str]] = {}
        self.host = Host(name, address)
        self._account = server_account()
        self._account.make_private(self.folder)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def write(self, name: str, content: str) -> str:
        path = self.folder / name
        path.write_text(content)
        shutil.chown(path, self._account.uid, self._account.gid)
        return str(path)

    def start(self) -> None:
        who = (f"--reuid={self._account.uid}", f"--regid={self._account.gid}", "--clear-groups")
        for name, command in self.programs.items():
            if name in self._processes and self._processes[name].poll() is None:
                continue
            whole = [*ALONE, "setpriv", "--pdeathsig=KILL", *who, *command]
            # Not on the servers' disk, which goes with the drill.
            path = self.folder.parent.with_name(f"{self.name}-{name}.log")
            with path.open("ab") as log, self.host.entered():
                self._processes[name] = start(whole, ENVIRONMENT, log, self.folder)

    def kill(self, program: str) -> None:
        """SIGKILL all processes of this name; return when they have ended. Raises TimeoutError."""
        killed = self._signal(signal.SIGKILL, program)
        if not killed:
            raise TimeoutError(f"{self.name} runs no {program} that could be killed")
        psutil.wait_procs(killed)

    def freeze(self) -> None:
        """Stop all processes; the kernel goes on acknowledging what is sent to them."""
        self._signal(signal.SIGSTOP)

    def recover(self) -> None:
        self._signal(signal.SIGCONT)
        self.host.join()
        self.start()

    def end(self) -> None:
        """SIGKILL all processes; return when they have ended."""
        self._signal(signal.SIGKILL)
        for process in self._processes.values():
            process.wait()

    def _signal(self, number: signal.Signals, program: str = "") -> list[psutil.Process]:
        """Send it to all processes, or to those of this name; returns them."""
        sent, found = [], list[psutil.Process]()
        for process in self._processes.values():
            with suppress(psutil.NoSuchProcess):
                found += psutil.Process(process.pid).children(recursive=True)
        for each in found:
            with suppress(psutil.NoSuchProcess):
                if program in ("", each.name()):
                    each.send_signal(number)
                    sent.append(each)
        return sent

"""Starts a service as Docker would: with mounts, a user and rights of its own.

Not with buildah's own `run`: that knows no read-only root, and keeps SIGTERM from the process.
"""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.containers.compose import Failed, Service
from lab.containers.images import Image

PAUSE = 0.1  # seconds
TIMEOUT = 300.0  # seconds, for what ends by itself
TMPFS = "nosuid,nodev,noexec,mode=1777"  # Docker's; a later `exec` takes precedence


def wait_for(
    claim: Callable[[], bool], otherwise: str, patience: float = TIMEOUT, pause: float = PAUSE
) -> None:
    """Wait until something holds. Raises Failed."""
    deadline = time.monotonic() + patience
    while not claim():
        if time.monotonic() > deadline:
            raise Failed(f"{otherwise} after {patience:.0f} s")
        time.sleep(pause)


class Running:
    """A service's process on this machine, as `user`; where its image is ours, a container's."""

    stop_signal = signal.SIGTERM

    def __init__(
        self,
        service: Service,
        command: Sequence[str],
        folder: Path,
        environment: dict[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        self.service, self._environment = service, environment
        self.ready_after: float | None = None  # seconds, like the next
        self.stopped_after: float | None = None
        self._began = time.monotonic()
        self._log = folder / f"{service.name}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, user=user, group=user
            )

    def beside(self) -> list[str]:
        """What brings a command to where the process is."""
        return []

    def run(self, command: Sequence[str], timeout: float = TIMEOUT) -> bool:
        """Whether a command that is run beside the process ends well, and in time."""
        with self._log.open("ab") as log:
            try:
                return not subprocess.run(
                    [*self.beside(), *command],
                    env=self._environment,
                    stdout=log,
                    stderr=log,
                    timeout=timeout,
                ).returncode
            except subprocess.TimeoutExpired:
                return False

    def meet(self, condition: str) -> None:
        """Wait until a condition of `depends_on` is met. Raises Failed."""
        if self.ready_after is not None:
            return
        name, check = self.service.name, self.service.check
        if condition == "service_completed_successfully":
            wait_for(self.has_ended, f"{name} has not ended")
            if self.process.returncode:
                raise Failed(f"{name} failed: {self.last_line()}")
        elif not check:
            return
        else:
            wait_for(
                lambda: self.is_alive() and self.run(check.command, check.timeout),
                f"{name} is not healthy",
                check.patience,
                check.pause,
            )
        self.ready_after = time.monotonic() - self._began

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def is_alive(self) -> bool:
        """Raises Failed if not."""
        if self.has_ended():
            raise Failed(f"{self.service.name} has ended: {self.last_line()}")
        return True

    def last_line(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"


class Container(Running):
    """A service's process in a container. Its network is this process's own."""

    def __init__(self, service: Service, image: Image, folder: Path) -> None:
        environment = image.environment | service.environment
        self._inside = [*_as_the_file_says(service, image), "env", f"--chdir={image.folder}"]
        script = "\n".join(
            ["mount " + shlex.join(each) for each in _mounts(service, image, folder)]
        )
        mount = ["unshare", "--mount", "sh", "-ec", f'{script}\nexec "$@"', "sh"]
        super().__init__(service, [*mount, *self._inside, *service.command], folder, environment)

    def beside(self) -> list[str]:
        return ["nsenter", "--mount", "--target", str(self.process.pid), *self._inside]


def _mounts(service: Service, image: Image, folder: Path) -> list[list[str]]:
    root = image.root
    mounts = [["--bind", root, root]]
    if service.read_only:
        mounts.append(["-o", "remount,bind,ro", root])
    mounts.append(["--rbind", "/dev", f"{root}/dev"])
    mounts.append(["-t", "proc", "proc", f"{root}/proc"])
    mounts.append(["--bind", f"{folder}/hosts", f"{root}/etc/hosts"])
    for path, _, options in (each.partition(":") for each in service.tmpfs):
        mounts.append(["-t", "tmpfs", "-o", f"{TMPFS},{options}".strip(","), "tmpfs", root + path])
    for name, path in (each.split(":") for each in service.volumes):
        volume, owner = folder / name, os.stat(root + path)
        volume.mkdir()
        os.chown(volume, owner.st_uid, owner.st_gid)  # as Docker fills a new volume
        mounts.append(["--bind", str(volume), root + path])
    return mounts


def _as_the_file_says(service: Service, image: Image) -> list[str]:
    user = image.user or "root"
    rights = ["--reuid", user, "--regid", user, "--init-groups"]
    if service.cap_drop == ["ALL"]:
        rights += ["--bounding-set=-all", "--inh-caps=-all"]
    if "no-new-privileges:true" in service.security_opt:
        rights += ["--no-new-privs"]
    return ["chroot", image.root, "setpriv", *rights]

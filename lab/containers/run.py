"""Runs every service of docker-compose.yml, once, in namespaces that the command makes.

Their network is a loopback without a way out, so the file's ports are free; and whatever was
started ends with this process. Its arguments are a folder for data and logs, and the images.
"""

import base64
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from pathlib import Path

from lab.containers import compose, rides
from lab.containers.compose import Failed
from lab.containers.container import PAUSE, Container, Running
from lab.containers.images import Image
from lab.containers.servers import Postgres, Redis

LOOPBACK_UP = ("ip", "link", "set", "lo", "up")
SERVERS = {"postgres": Postgres, "redis": Redis}


class Run:
    """One run."""

    def __init__(self, folder: Path, images: dict[str, Image]) -> None:
        self._folder, self._images = folder, images
        self._running: dict[str, Running] = {}
        key = base64.b64encode(secrets.token_bytes(32)).decode()
        self._made = {"POSTGRES_PASSWORD": secrets.token_hex(), "RECEIPT_SECRET": f"whsec_{key}"}
        self._services = compose.read({**os.environ, **self._made})
        names = " ".join([*(each.name for each in self._services), socket.gethostname()])
        (folder / "hosts").write_text(f"127.0.0.1 localhost {names}\n")
        self._began = time.monotonic()

    def say(self, line: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {line}", flush=True)

    def play(self) -> None:
        """Start, ride, reconcile, stop. Raises Failed."""
        for service in self._services:
            for name, condition in service.depends_on.items():
                self._running[name].meet(condition)
            self._running[service.name] = self._start(service)
        for running in self._running.values():
            running.meet("service_healthy")
        self.say("every service runs, and every health check passes")
        rides.flow(self._made["POSTGRES_PASSWORD"], self._post, self.say)
        rides.reconcile(self._running["reconciler"], self.say)
        self._stop([each for each in self._running.values() if each.service.target])
        self._stop([each for each in self._running.values() if not each.service.target])

    def _start(self, service: compose.Service) -> Running:
        if service.target:
            return Container(service, self._images[service.image], self._folder)
        return SERVERS[service.name](service, self._folder)

    def _post(self) -> Running:
        """As the top of the file tells a person to."""
        [api] = [each for each in self._services if each.name == "api"]
        environment = {**api.environment, "API_URL": rides.API}
        return self._start(api._replace(name="rides", command=rides.POST, environment=environment))

    def _stop(self, asked: list[Running]) -> None:
        """Ask all of them at once, and note how long each takes. Raises Failed."""
        asked = [each for each in asked if each.service.lasts and each.is_alive()]
        for running in asked:
            running.process.send_signal(running.stop_signal)
        began = time.monotonic()
        while asked:
            took = time.monotonic() - began
            for running in [each for each in asked if each.has_ended()]:
                running.stopped_after = took
                asked.remove(running)
                if status := running.process.returncode:
                    raise Failed(f"{running.service.name} ended with status {status}")
            if late := [each.service.name for each in asked if took > each.service.grace]:
                raise Failed(f"{late[0]} has not stopped within its stop_grace_period")
            time.sleep(PAUSE / 10)

    def table(self) -> str:
        """How soon each service was ready, and how soon it stopped: all with status 0."""
        lines = ["service     ready after  stopped after  of at most"]
        for name, each in self._running.items():
            ready, stopped = (
                "-" if after is None else f"{after:.2f} s"
                for after in (each.ready_after, each.stopped_after)
            )
            lines.append(f"{name:<11} {ready:>11}  {stopped:>13}  {each.service.grace:>8.0f} s")
        return "\n".join(lines)


def main() -> None:
    """Raises SystemExit: 1 if something does not hold."""
    folder, images = Path(sys.argv[1]), json.loads(sys.argv[2])
    try:
        subprocess.run(LOOPBACK_UP, check=True)
        run = Run(folder, {name: Image(*fields) for name, fields in images.items()})
        run.play()
    except Failed as reason:
        sys.exit(str(reason))
    except KeyboardInterrupt:
        sys.exit(130)
    print(run.table())


if __name__ == "__main__":
    main()

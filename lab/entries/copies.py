"""A fresh copy of the project, and the commands that are run in it as a person would type them."""

import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from lab.entries.exceptions import ANSWERS
from lab.entries.pages import Command
from lab.ports import free_ports

PATIENCE = 600.0  # seconds for a command, and for a fleet to answer
SETTLED = 5.0  # seconds after which a process that lasts is at work
KEPT = re.compile(
    r"PATH|TERM|TZ|LANG|JAVA_HOME|(?i:https?_proxy|no_proxy)|(PIP|UV|SSL)_\w+|\w+_CA_\w+"
)
TRACEBACK = "Traceback (most recent call last)"
# The project's own ports, as pages name them, and where the copy's fleet has them.
PORT = re.compile(r"127\.0\.0\.1:(800[012])\b")


@dataclass
class Outcome:
    seconds: float
    reason: str  # empty if it is what the page says
    output: str = ""


@dataclass
class Started:
    """A command under way, in a session of its own; its output goes to a file."""

    text: str
    process: subprocess.Popen[bytes]
    output: Path
    begun: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.begun

    def send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(self.process.pid, number)

    def outcome(self, reason: str = "") -> Outcome:
        text = self.output.read_text(errors="replace")
        return Outcome(self.seconds, reason or ("a traceback" if TRACEBACK in text else ""), text)


@dataclass
class Copy:
    """What `git clone` would bring, in a folder of its own, with an empty HOME beside it."""

    project: Path
    above: Path
    python: str = ""
    lasting: list[Started] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder, self.home = self.above / "rocket-rides", self.above / "home"
        self.home.mkdir(parents=True)
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.check_output(listed, cwd=self.project).decode().split("\0")
        for name in filter(None, names):
            if (self.project / name).exists():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.project / name, self.folder / name)
        # They would be those of the environment that this runs in.
        path = [p for p in os.environ["PATH"].split(os.pathsep) if "venv" not in p]
        self.environment = {k: v for k, v in os.environ.items() if KEPT.fullmatch(k)}
        self.environment |= {"PATH": os.pathsep.join(path), "HOME": str(self.home)}
        if self.python:
            self.environment["PYTHON"] = self.python
        self.number, self.port = 0, 0

    def has_fleet(self) -> None:
        self.port = free_ports(3)
        self.environment["API_PORT"] = str(self.port)

    def save(self, page: str, name: str) -> None:
        """Save a page's first example of Python under a name, as a reader is told to."""
        text = (self.folder / "docs" / page).read_text()
        (self.folder / name).write_text(text.split("```python\n")[1].split("```")[0])

    def typed(self, command: Command) -> str:
        """The command as it is run here: with this fleet's ports, and the Python of .venv."""
        text = PORT.sub(lambda found: f"127.0.0.1:{int(found[1]) - 8000 + self.port}", command.text)
        return re.sub(r"^python -m", ".venv/bin/python -m", text)

    def run(self, command: Command, status: int = 0) -> Outcome:
        started, reason = self.started(command), f"not done after {PATIENCE:g} s"
        try:
            ended = started.process.wait(PATIENCE)
            reason = "" if ended == status else f"status {ended}"
        except subprocess.TimeoutExpired:
            pass
        finally:  # and if this program itself is ended
            if started.process.poll() is None:
                started.send(signal.SIGKILL)
                started.process.wait()
        return started.outcome(reason)

    def last(self, command: Command) -> Outcome:
        started, api = self.started(command), re.search(ANSWERS, command.text)
        self.lasting.append(started)
        process = started.process
        while process.poll() is None and started.seconds < PATIENCE:
            if self.answers() if api else started.seconds > SETTLED:
                break
            time.sleep(0.1)
        if api and process.poll() is None:
            time.sleep(SETTLED)  # a process that ends would end them all
        if process.poll() is not None:
            self.lasting.pop()
            return started.outcome(f"it ended with status {process.returncode}")
        return started.outcome("its API does not answer" if api and not self.answers() else "")

    def interrupt(self) -> Outcome:
        started = self.lasting.pop()
        started.begun = time.monotonic()  # of the end
        started.send(signal.SIGINT)
        try:
            started.process.wait(60)
        except subprocess.TimeoutExpired:
            started.send(signal.SIGKILL)
            return started.outcome(f"it does not end {started.text}")
        return started.outcome()

    def started(self, command: Command) -> Started:
        self.number += 1
        output = self.above / f"{self.number}.txt"
        with output.open("wb") as file:
            process = subprocess.Popen(
                ["/bin/sh", "-c", self.typed(command)],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Started(command.text, process, output)

    def answers(self) -> bool:
        try:
            return bool(urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5).status == 200)
        except (URLError, OSError):
            return False

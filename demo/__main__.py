"""`python -m demo`: the whole fleet, as `make fleet` starts it. honcho runs the Procfile.

Before anything starts, this checks that the fleet can have its folder and its ports. If not, it
ends with one sentence, and status 1: another fleet may have them, for instance.
"""

# ruff: noqa: E402 (until honcho handles Ctrl-C, it ends this at once, without Python's traceback)
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)

import logging
import multiprocessing
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

from honcho.environ import expand_processes, parse, parse_procfile
from honcho.manager import Manager
from honcho.printer import Message, Printer

from demo.embedded import ports
from demo.embedded.failures import NeverStarts
from rocket_rides import logs, process, settings
from rocket_rides.settings import PROJECT


class Objects(Printer):  # type: ignore[misc]
    """honcho's printer, for LOG_FORMAT=json: every line becomes an object, whoever wrote it."""

    def write(self, message: Message) -> None:
        """Pass on an object as it is, and make one of any other line."""
        data = (
            message.data.decode(errors="replace")
            if isinstance(message.data, bytes)
            else message.data
        )
        for line in data.splitlines():
            if not line.startswith('{"'):
                line = logs.objects(message.name).format(logs.written(line, "honcho", logging.INFO))
            print(line, file=self.output, flush=True)


class Fleet(Manager):  # type: ignore[misc]
    """honcho's manager, which can be stopped while it starts.

    By itself it would end in a traceback then, and leave processes behind: it can't signal those of
    which it has not heard yet.
    """

    def terminate(self) -> None:
        """Have all processes end, once all have started."""
        if self._all_started():
            super().terminate()
        elif not multiprocessing.parent_process():  # else this is a fork, which starts one of them
            threading.Timer(0.05, self.terminate).start()


def main() -> None:
    """Run the fleet, and end with its status."""
    parser = process.Parser("python -m demo", __doc__)
    parser.add_argument("--env", type=Path, default=".env", help="settings (default: %(default)s)")
    given = parser.parse_args()
    # The Procfile's `python` is this one.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with suppress(OSError):
        os.environ.update(parse(given.env.read_text()))
    config = settings.load()
    in_json = config.log_format == logs.JSON
    printer = Objects if in_json else Printer
    fleet = Fleet(printer(sys.stdout))
    if in_json:
        process.begin(config)
    try:
        ports.require_free(config)
    except NeverStarts as reason:
        raise SystemExit(str(reason)) from None
    processes = parse_procfile((PROJECT / "Procfile").read_text()).processes
    for each in expand_processes(processes):
        fleet.add_process(each.name, each.cmd, env=os.environ | each.env)
    fleet.loop()
    raise SystemExit(fleet.returncode)


if __name__ == "__main__":
    main()

"""`honcho start`: the Procfile's processes, once it is known that they can start."""

import argparse
import io
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from honcho.command import map_from
from honcho.environ import Env, expand_processes
from honcho.manager import SYSTEM_PRINTER_NAME
from honcho.printer import Message

from demo import preflight
from demo.processes import Fleet, Lines, Objects
from rocket_rides import logs, service, settings, time_zone
from unified_log.errors import Refused

# honcho reads its processes' lines as UTF-8, whatever the terminal's encoding is.
IN_UTF8 = {"PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8"}


def output() -> TextIO:
    """Standard output, on which nothing that a process says ends honcho.

    A letter that its encoding lacks is replaced. It has no buffer: while one waits for a reader, as
    in `| less`, the handler of a signal can't print, and Ctrl-C would leave all processes behind.
    """
    if not isinstance(sys.stdout, io.TextIOWrapper):
        return sys.stdout
    raw = io.FileIO(sys.stdout.fileno(), "w", closefd=False)
    return io.TextIOWrapper(raw, sys.stdout.encoding, errors="replace", write_through=True)


def start(given: argparse.Namespace, origins: Mapping[str, Path]) -> None:
    """Run the Procfile's processes, or those that are named, until one of them ends.

    Raises Refused or NeverStarts where nothing was started.
    """
    file = Env(map_from(given))
    try:
        known, port = file.load_procfile().processes, file.port
        wanted = {name: known[name] for name in given.processes or known}
        numbers = [pair.split("=") for pair in (given.concurrency or "").split(",") if pair]
        concurrency = {name: int(number) for name, number in numbers}
    except KeyError as unknown:
        raise Refused(f"{file.procfile} has no process {unknown}") from None
    except (OSError, AssertionError, ValueError) as error:
        raise Refused(f"honcho start: {error}") from None
    os.chdir(given.app_root)  # to which a Procfile's commands are relative
    config = settings.load()
    unsettled = time_zone.settle()  # before any process starts: it is said once
    in_json = config.log_format == logs.JSON
    printer = (Objects if in_json else Lines)(
        output(), colour=not given.no_colour, prefix=not given.no_prefix
    )
    fleet = Fleet(printer)
    if in_json:
        service.configure(config)
    quiet = (given.quiet or "").split(",")
    for each in expand_processes(wanted, concurrency, quiet=quiet, port=port):
        fleet.add_process(each.name, each.cmd, each.quiet, os.environ | IN_UTF8 | each.env)
    if not given.processes:  # else others may run elsewhere
        preflight.require_room(config)
    for line in filter(None, [unsettled, *preflight.servers(config, origins)]):
        now = datetime.now(UTC).astimezone()
        printer.write(Message("line", line, now, SYSTEM_PRINTER_NAME, None))
    preflight.require_secrets(config, wanted)  # for which a forgotten URL may be the reason
    fleet.loop()
    raise SystemExit(fleet.returncode)

"""`python -m lab.entries`: tries the commands of the pages, the Makefile, the Procfile, the code.

A page's commands are tried in its order in a fresh copy of this project, with an empty HOME, in
which nothing else was run. Only a fleet is started first, where a page's commands need one. A new
command in a page is tried by itself; what can't be is in `lab/entries/exceptions.py`, with the
reason.

Status 0: each command did what its page says. Status 1: some did not; their copies are kept.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from lab.balancer import HAPROXY
from lab.entries import exceptions, pages, visits
from lab.entries.copies import Copy, Outcome
from lab.entries.pages import Command
from unified_log.process import Parser

PROJECT = Path(__file__).resolve().parents[2]


def main() -> int:
    options = arguments()
    chosen = [
        visit
        for visit in visits.visits(pages.everything(PROJECT))
        if options.only in visit.name or any(options.only in each.text for each in visit.commands)
    ]
    if options.list:
        for visit in chosen:
            print(f"\n{visit.name}, in a fresh copy")
            for command in visit.commands:
                print(f"  {told(command)}  {exceptions.why_not(command.text, options.there)}")
        return 0
    # SIGINT too: a shell has the programs that it starts in the background ignore it.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda number, _: sys.exit(128 + number))
    failed = sum(visited(visit, options) for visit in chosen)
    said = f"{failed} of the commands failed" if failed else "all commands did what their pages say"
    print(f"\n{said}")
    return int(bool(failed))


def visited(visit: visits.Visit, options: argparse.Namespace) -> int:
    """Try a visit's commands, and print a line for each; returns how many failed."""
    print(f"\n{visit.name}", flush=True)
    above = Path(tempfile.mkdtemp(prefix="entries-"))
    above.chmod(0o755)
    copy = Copy(PROJECT, above / "copy", options.python)
    if visit.has_fleet:
        copy.has_fleet()
    failed, times = 0, Counter[str]()
    try:
        for command in visit.commands:
            if reason := exceptions.why_not(command.text, options.there):
                print(f"       -  {told(command)}: not tried: {reason}", flush=True)
                continue
            statuses = exceptions.STATUSES.get((command.page, command.text), ())
            status = dict(enumerate(statuses)).get(times[command.text], 0)
            times[command.text] += 1
            if outcome := tried(command, copy, status):
                took = f"{outcome.seconds:7.1f} s"
                print(f"{took}  {told(command)}: {outcome.reason or 'ok'}", flush=True)
                if outcome.reason:
                    failed += 1
                    last = outcome.output.splitlines()[-8:]
                    print("".join(f"           | {line}\n" for line in last))
    finally:
        while copy.lasting:
            copy.interrupt()
        if failed:
            print(f"           the copy is kept: {copy.folder}")
        else:
            shutil.rmtree(above, ignore_errors=True)
    return failed


def tried(command: Command, copy: Copy, status: int) -> Outcome | None:
    """What came of a command; None if there was nothing to do."""
    if command.saved:
        copy.save(*command.saved)
        return None
    if command.text == "^C":
        return copy.interrupt() if copy.lasting else None
    if re.search(exceptions.LASTS, command.text):
        return copy.last(command)
    return copy.run(command, status)


def told(command: Command) -> str:
    """A command in one line, with its place."""
    text = " ".join(command.text.split())
    place = command.place if command.line else f"first, for {command.page}"
    return f"{text if len(text) <= 90 else text[:87] + '...'}  ({place})"


def arguments() -> argparse.Namespace:
    """Read the command line; `there` says whether a need is met here."""
    parser = Parser("python -m lab.entries", __doc__)
    add = parser.add_argument
    word = "only visits with this word, such as a page's name"
    add("--list", action="store_true", help="only list the commands")
    add("--only", default="", metavar="WORD", help=word)
    add("--long", action="store_true", help="also what takes ten minutes or more")
    add("--python", default="", help="the Python of each copy's .venv")
    options = parser.parse_args()
    met = {
        exceptions.MINUTES: options.long,
        exceptions.ROOT: os.geteuid() == 0 and HAPROXY is not None,
        exceptions.DOCKER: has_docker(),
    }
    options.there = lambda need: met.get(need, False)
    return options


def has_docker() -> bool:
    """Whether Docker Compose is there, and a daemon answers."""
    if shutil.which("docker") is None:
        return False
    asked = (["docker", "compose", "version"], ["docker", "info"])
    return all(subprocess.run(each, capture_output=True).returncode == 0 for each in asked)


if __name__ == "__main__":
    raise SystemExit(main())

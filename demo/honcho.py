"""`python -m demo.honcho`, which is what `.venv/bin/honcho` starts: honcho, for this project.

It takes honcho's arguments, and differs in these things. `.env` is read by python-dotenv, or
refused: honcho's own parser loses lines and alters values. `honcho run` becomes the command, which
so gets every signal itself, and whose exit status is ours. `honcho start` first says which servers
the fleet uses, and starts nothing if one of the processes would end at once; they run in the
Procfile's folder. `honcho export` writes what `.env` sets, as python-dotenv reads it.
"""

# ruff: noqa: E402 (until honcho handles Ctrl-C, it ends this at once, without Python's traceback)
import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)

import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

from honcho import command, environ

from demo import env_file
from demo.embedded.failures import NeverStarts
from unified_log.errors import Refused


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the arguments say, and end with its status."""
    given = command.parser.parse_args(arguments)
    files = [Path(given.app_root, name.strip()) for name in given.env.split(",")]
    try:
        origins = env_file.load(files)
    except Refused as reason:
        print(reason, file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None  # as wherever a setting is refused
    # The commands of the log, such as `python -m unified_log.repair`, take the fleet's settings.
    os.environ.setdefault("UNIFIED_LOG_SETTINGS", "rocket_rides.settings:load")
    try:
        given.env = os.devnull  # all is read: honcho finds nothing more
        # What is started finds the programs that are beside this Python.
        beside = Path(sys.executable).parent
        os.environ["PATH"] = f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        if given.command == "run":
            run(given.argv)
        elif given.command == "start":
            from demo.start import start  # with the settings, which take longer than all else

            start(given, origins)
        elif given.command == "export":
            export(given, origins)
        else:
            command.COMMANDS[given.command](given)
    except (Refused, NeverStarts, command.CommandError) as reason:
        raise SystemExit(str(reason)) from None


def run(argv: Sequence[str]) -> None:
    """Become this command. Raises Refused without one."""
    argv = argv[1:] if argv[:1] == ["--"] else argv
    if not argv:
        raise Refused("honcho run: which command?")
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, others rely on them
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], list(argv))  # noqa: S606 (a shell would keep signals from it)
    except OSError as error:
        print(f"{argv[0]} can't be run: {error.strerror}", file=sys.stderr)  # noqa: T201
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from None


def export(given: Namespace, names: Iterable[str]) -> None:
    """Have honcho export these variables, too, which it takes from nothing but a file.

    Raises Refused where honcho's parser, however they are quoted, would alter one.
    """
    values = {name: os.environ[name] for name in names}
    lines = [f"{name}={shlex.quote(value)}\n" for name, value in values.items()]
    read = environ.parse("".join(lines))
    if altered := [name for name in values if read.get(name) != values[name]]:
        raise Refused(f"honcho export: {', '.join(altered)} can't be exported unaltered")
    with NamedTemporaryFile("w", suffix=".env") as file:
        file.writelines(lines)
        file.flush()
        command.COMMANDS["export"](Namespace(**vars(given) | {"env": file.name}))


if __name__ == "__main__":
    main()

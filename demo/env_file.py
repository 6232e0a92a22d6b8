"""Reads `.env` as python-dotenv does, and refuses what that would skip or alter.

Of a file with a mistake nothing is taken: a setting that is lost on the way would start a fleet on
other servers than the ones that it names. No refusal shows any of the text: it may be a secret.
"""

import os
import re
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import Binding, parse_stream
from dotenv.variables import Variable, parse_variables

from unified_log.errors import Refused

NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
OPENS_QUOTE = re.compile(rf"\s*(export\s+)?{NAME.pattern}\s*=\s*['\"]")
# A quote that is not closed takes in the next lines; "\b" is one character, a backspace.
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
LINE_END = re.compile(r"\r\n|\n|\r")


def load(files: Iterable[Path]) -> dict[str, Path]:
    """Put what the files set into this process' environment, which they override.

    Returns in which file each name is set. A file that is not there sets nothing. Raises Refused,
    with one sentence.
    """
    origins = {}
    for file in files:
        values = read(file)
        os.environ.update(values)
        origins.update(dict.fromkeys(values, file))
    return origins


def read(file: Path) -> dict[str, str]:
    """What one file sets. Raises Refused."""
    text = _text(file)
    known = set(os.environ)
    for binding in parse_stream(StringIO(text)):
        if wrong := _wrong(binding, known):
            raise Refused(f"{file}, line {_line(binding)}: {wrong}")
        known.add(binding.key or "")
    return {name: value or "" for name, value in dotenv_values(stream=StringIO(text)).items()}


def _text(file: Path) -> str:
    if not os.path.lexists(file):
        return ""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise Refused(f"{file} can't be read: {error.strerror}") from None
    try:
        return content.decode("utf-8-sig")  # without the mark that some editors begin a file with
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Refused(f"{file}, line {line}: it is not UTF-8") from None


def _wrong(binding: Binding, known: set[str]) -> str:
    """Why this line is refused, or nothing; `known` are the variables that are set before it."""
    if binding.key is None and not binding.error:  # a comment, or the file's end
        return ""
    if binding.error and OPENS_QUOTE.match(binding.original.string):
        return "its quote is not closed, or something follows it"
    if binding.key is None or binding.value is None or not NAME.fullmatch(binding.key):
        return "NAME=value is expected"
    if CONTROL.search(binding.value):
        return "its value has a line's end or the like; a backslash makes one in double quotes"
    if any(name not in known for name in _variables(binding.value)):
        return "${...} in its value names a variable that is not set"
    return ""


def _variables(value: str) -> Iterator[str]:
    """Those that the value takes over, but for ${NAME:-default}, which needs none."""
    for atom in parse_variables(value):
        if isinstance(atom, Variable) and atom.default is None:
            yield atom.name


def _line(binding: Binding) -> int:
    """Where it is; python-dotenv counts from the empty lines before it."""
    text = binding.original.string
    before = text[: len(text) - len(text.lstrip())]
    return binding.original.line + len(LINE_END.findall(before))

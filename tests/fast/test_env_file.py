"""`.env`: each form is read as python-dotenv reads it, or refused by its line; nothing is lost."""

import os
from pathlib import Path

import pytest

from demo import env_file
from unified_log.errors import Refused

UNDERSTOOD = {
    "a plain value": (b"A=1", "1"),
    "a mark of the encoding": (b"\xef\xbb\xbfA=1", "1"),
    "a shell's export": (b"export A=1", "1"),
    "lines of Windows": (b"A=1\r\nB=2\r\n", "1"),
    "a value with a space": (b"A=one two", "one two"),
    "one in quotes": (b'A="one two"', "one two"),
    "a comment": (b"# A=2\nA=1 # one", "1"),
    "a # that begins none": (b"A=one#two", "one#two"),
    "an equals sign": (b"A=postgresql://h/d?x=y", "postgresql://h/d?x=y"),
    "a backslash in a password": (rb"A=pass\new\\x", r"pass\new\\x"),
    "a backslash in single quotes": (rb"A='pass\new'", r"pass\new"),
    "an apostrophe": (b"A=it's", "it's"),
    "an umlaut": ("A=ü".encode(), "ü"),
    "a dollar sign": (b"A=pa$HOME$", "pa$HOME$"),
    "another variable": (b"B=1\nA=${B}2", "12"),
    "a default": (b"A=${NOWHERE:-1}", "1"),
    "nothing": (b"A=", ""),
    "the last of two": (b"A=2\nA=1", "1"),
}


@pytest.mark.parametrize(("content", "value"), UNDERSTOOD.values(), ids=UNDERSTOOD)
def test_what_it_sets_overrides_the_environment(
    content: bytes, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A", "the environment's")
    monkeypatch.setenv("B", "")
    file = tmp_path / ".env"
    file.write_bytes(content)
    assert env_file.load([file])["A"] == file
    assert os.environ["A"] == value


ASSIGNMENT = "NAME=value is expected"
REFUSED = {
    "a colon": (b"GOOD=1\n\nSECRET: hunter2", 3, ASSIGNMENT),
    "a colon before a URL": (b"SECRET:postgresql://hunter2@h/?a=b", 1, ASSIGNMENT),
    "no value": (b"# first\nhunter2", 2, ASSIGNMENT),
    "no name": (b"=hunter2", 1, ASSIGNMENT),
    "a name that is none": (b"hunter-2=1", 1, ASSIGNMENT),
    "a quote that is open": (b"GOOD=1\nSECRET='hunter2", 2, "its quote is not closed"),
    "an apostrophe in its like": (b"SECRET='it's hunter2'", 1, "or something follows it"),
    "quotes that swallow a line": (b'SECRET="hunter2\nLOST=1\nC="', 1, "a line's end or the like"),
    "a backslash in double quotes": (rb'SECRET="\bhunter2"', 1, "makes one in double quotes"),
    "UTF-16": (b"S\0=\0h\0u\0", 1, "NAME=value is expected"),
    "a variable that is not set": (b"SECRET=pa${hunter2}", 1, "a variable that is not set"),
    "Latin-1": (b"GOOD=1\nSECRET=hunter2\xfc", 2, "it is not UTF-8"),
}


@pytest.mark.parametrize(("content", "line", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_would_be_lost_or_altered_is_refused_by_its_line_and_not_shown(
    content: bytes, line: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOD", raising=False)
    file = tmp_path / ".env"
    file.write_bytes(content)
    with pytest.raises(Refused) as refused:
        env_file.load([file])
    [said] = str(refused.value).splitlines()
    assert said.startswith(f"{file}, line {line}: ")
    assert reason in said
    assert "hunter" not in said
    assert "GOOD" not in os.environ


def test_a_file_that_can_not_be_read_is_refused_and_one_that_is_not_there_sets_nothing(
    tmp_path: Path,
) -> None:
    assert env_file.load([tmp_path / "absent"]) == {}
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    for file, reason in ((tmp_path, "Is a directory"), (tmp_path / "dangling", "No such file")):
        with pytest.raises(Refused, match=f"^{file} can't be read: {reason}"):
            env_file.load([file])

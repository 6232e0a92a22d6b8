"""A released revision of the schema never changes."""

from pathlib import Path

import pytest

from lab.freeze import FROZEN, digests
from rocket_rides import revisions
from rocket_rides.revisions import FOLDER, REVISIONS


def test_the_revisions_are_those_that_are_frozen() -> None:
    """`python -m lab.freeze` takes a change: databases that the old one made are refused then."""
    assert FROZEN.read_text() == digests()


@pytest.mark.parametrize("name", [path.name for path in FOLDER.glob("0010*")])
def test_a_revision_has_a_digest_of_all_its_files_and_of_no_later_ones(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in FOLDER.glob("[0-9]*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(revisions, "FOLDER", tmp_path)
    revisions.digest.cache_clear()
    first = revisions.digest(REVISIONS[0])
    (tmp_path / "9999_later.sql").write_text("SELECT 1")
    (tmp_path / f"{name}~").write_text("of an editor")
    revisions.digest.cache_clear()
    assert revisions.digest(REVISIONS[0]) == first
    with (tmp_path / name).open("a") as file:
        file.write("\n")
    revisions.digest.cache_clear()
    assert revisions.digest(REVISIONS[0]) != first
    revisions.digest.cache_clear()


def test_a_digest_does_not_depend_on_what_ends_the_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git may write them otherwise elsewhere, and the schema is the same."""
    expected = revisions.digest(REVISIONS[0])
    for path in FOLDER.glob("[0-9]*"):
        (tmp_path / path.name).write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    monkeypatch.setattr(revisions, "FOLDER", tmp_path)
    assert revisions.digest.__wrapped__(REVISIONS[0]) == expected

"""The pictures of the documents are what their text gives, and name files that exist."""

from pathlib import Path

import pytest

from lab.pictures import draw, named_files, pictures
from rocket_rides.settings import PROJECT

LARGEST = 15_000  # bytes

each_picture = pytest.mark.parametrize("path", pictures(), ids=lambda path: path.stem)


@each_picture
def test_a_picture_is_what_its_text_gives(path: Path) -> None:
    svg = path.with_suffix(".svg").read_text()
    assert svg == draw(path.read_text()), "make pictures draws it anew"
    assert len(svg.encode()) <= LARGEST


@each_picture
def test_a_picture_names_only_files_that_exist(path: Path) -> None:
    missing = [name for name in named_files(path.read_text()) if not (PROJECT / name).exists()]
    assert missing == []


def test_each_picture_is_in_a_page() -> None:
    pages = [PROJECT / "README.md", *(PROJECT / "docs").glob("*.md")]
    text = "".join(page.read_text() for page in pages)
    assert [path.stem for path in pictures() if f"pictures/{path.stem}.svg)" not in text] == []
    assert pictures()


def test_a_file_that_does_not_exist_would_be_noticed() -> None:
    ride = (PROJECT / "docs/pictures/ride.toml").read_text()
    assert "api/booking.py" in named_files(ride)
    assert "api/taking.py" in named_files(ride.replace("api/booking.py", "api/taking.py"))

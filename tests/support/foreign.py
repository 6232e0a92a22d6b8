"""Settings that were meant for other projects: each that these tools know of, by their own help."""

import re
import subprocess
import sys

from demo.install import sources

NONSENSE = "/of/another/project"


def pips_options() -> set[str]:
    """What `pip install` can be told, by options and so by PIP_* and pip.conf."""
    said = _help("-m", "pip", "install", "--help")
    return set(re.findall(r"^  (?:-\w, )?--([a-z][a-z0-9-]+)", said, re.MULTILINE))


def uvs_variables() -> set[str]:
    """What `uv pip install` can be told by variables of its own."""
    return set(re.findall(r"\[env: (UV_\w+)", _help("-m", "uv", "help", "pip", "install")))


def pythons_variables() -> set[str]:
    """What Python can be told."""
    return set(re.findall(r"\bPYTHON_?[A-Z0-9_]+", _help("--help-env")))


def for_others() -> dict[str, str]:
    """All that pip and uv are told about anything but where packages come from, as nonsense."""
    options = pips_options() - set(sources.PIPS)
    names = {f"PIP_{option.upper().replace('-', '_')}" for option in options}
    names |= {name for name in uvs_variables() if not sources.UVS.match(name)}
    return dict.fromkeys(names, NONSENSE)


def _help(*asked: str) -> str:
    return subprocess.check_output([sys.executable, *asked], text=True)

"""Why a server does not serve, in its own words."""

import re
from pathlib import Path

STARTING_UP = "the database system is "  # so begins every reason of Postgres' that passes
LOG_LINES = 5


def why(log: Path, since: int, reason: re.Pattern[str]) -> str:
    """The last reason in a server's log from the byte `since` on; else the log's end. One line."""
    with log.open("rb") as file:
        file.seek(since)
        said = file.read().decode(errors="replace")
    if found := [*reason.finditer(said)]:
        return " ".join(part for part in found[-1].groups() if part)
    return " ".join(said.split("\n")[-LOG_LINES:]).strip() or f"see {log}"


def refuses(problem: str) -> bool:
    """Whether a server has turned a client away, and not because it is just starting up."""
    return "FATAL: " in problem and STARTING_UP not in problem

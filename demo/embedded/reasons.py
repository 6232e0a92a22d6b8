"""Why a server does not serve, as it says itself."""

import re
from pathlib import Path

STARTING_UP = "the database system is "  # every temporary refusal of Postgres starts with this
LOG_LINES = 5


def why(log: Path, since: int, reason: re.Pattern[str]) -> str:
    """The last reason in a server's log from byte `since` on, else the log's end. One line."""
    with log.open("rb") as file:
        file.seek(since)
        said = file.read().decode(errors="replace")
    if reasons := [*reason.finditer(said)]:
        return " ".join(part for part in reasons[-1].groups() if part)
    return " ".join(said.split("\n")[-LOG_LINES:]).strip() or f"see {log}"


def refuses(problem: str) -> bool:
    """Whether a server rejected a client for a reason other than still starting up."""
    return "FATAL: " in problem and STARTING_UP not in problem

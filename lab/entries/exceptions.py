"""What can't be tried as it is written, and what is tried in another way than the rest.

Each pattern is searched in a command's text. A test checks that each still finds a command.
"""

import re
from collections.abc import Callable

# What a command needs that this machine may lack; of the others, it is asked whether it is there.
READER, MINUTES, DOCKER, ROOT = "the reader", "minutes", "docker", "root"
SERVERS, CELLS = "settings, of the reader's own servers", "hosts and folders of several cells"
REPLAYED = "a fresh fleet has no dead letters; ARGS=list is tried"
DEPLOYED = "a cluster, or a host, of the reader's; the tests check the files"
LIFTED = "an application of one's own; tests/services/test_lift_it.py has one"

NOT_TRIED: dict[str, tuple[str, str]] = {
    r"^(export )?([A-Z_0-9]+=\S+ ?)+$": (READER, SERVERS),
    r"http://cell0:8001|/mnt/cell0": (READER, CELLS),
    r"haproxy -f|api\.router 80-ff 1$": (READER, f"{CELLS}; `make cells` has its own"),
    r"<master-host>": (READER, "a cluster of Spark"),
    r"python -m long_rides NAME$": (READER, "NAME is the reader's; the first hour has another"),
    r"(replay|drop) \d+": (READER, REPLAYED),
    r"analytics\.approve 12 ": (READER, "a run that holds a finding"),
    r"consumers\.remove total latecomer$": (READER, "one that is gone; the first hour's is tried"),
    r"migrations\.rights$": (READER, "roles in a Postgres of the reader's"),
    r"kubectl|deploy/secrets|^cp -r deploy/systemd|^systemctl": (READER, DEPLOYED),
    r"^redis-cli ": (READER, "a Redis of the reader's"),
    r"POSTGRES_PROGRAMS=/": (READER, "servers of this machine; .ci/run tries those of Debian"),
    r"PYTHON=python3": (READER, "another Python: --python"),
    r"^pip install dist/|^python -m (orders|unified_log)\.": (READER, LIFTED),
    r"demo\.embedded\.psql --help$": (READER, "psql of a running fleet; `make psql` is tried"),
    r"^make entries": (READER, "this is it"),
    r"^docker compose |^make images$": (DOCKER, "Docker"),
    r"^make (prove|chaos)$|--faults redis-flush": (MINUTES, "minutes; shorter ones are tried"),
    r"^make cells ARGS=.--seed": (MINUTES, "minutes; `make cells` is tried"),
    r"^make cells": (ROOT, "root, and HAProxy"),
    r"^make failover": (MINUTES, "five minutes, and root"),
    r"^make upgrade": (MINUTES, "five minutes, and HAProxy"),
    r"^make (test|test-stock|mutants|bench)$|^\.ci/run$": (MINUTES, "ten minutes or more"),
    r"--seconds 900": (MINUTES, "a quarter of an hour"),
}

# These last until Ctrl-C; those of the first pattern are the fleet, which others need.
FLEET = r"\bmake fleet$|honcho start$"
ANSWERS = rf"{FLEET}|honcho start .*\bapi\b"  # with an API, which says when it is ready
LASTS = r"\bmake fleet$|honcho start|long_rides mine$|--follow$"
NEEDS_FLEET = r"^make (psql|status|log|dead-letters|break|reconcile)\b|127\.0\.0\.1:800|honcho run"

# The exit statuses that a page speaks of, one for each time that it has the command.
STATUSES: dict[tuple[str, str], tuple[int, ...]] = {
    ("docs/first-hour.md", "make reconcile"): (2, 0),  # "So make fails."
}


def why_not(text: str, there: Callable[[str], bool]) -> str:
    """Why a command is not tried here; empty if it is."""
    for pattern, (need, reason) in NOT_TRIED.items():
        if re.search(pattern, text) and (need == READER or not there(need)):
            return f"it needs {reason}" if need in (DOCKER, ROOT) else reason
    return ""

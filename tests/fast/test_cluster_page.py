"""docs/cluster.md names the ports that `make cluster` leaves open, and what it sets there."""

import re

import pytest

from cluster import page
from cluster.firewall import DOORS, Door

# A row of the table: to, port, from. What is called an executor runs on a worker's host.
ROW = re.compile(r"^\| (?:the |an |a )?(\w+) \| [^|]*?(\d{4}) \| ([^|]+) \|$", re.MULTILINE)
SENDERS = {
    "driver": {"driver"},
    "workers": {"worker"},
    "executors": {"worker"},
    "other executors": {"worker"},
    "its executors": set[str](),  # on the same host
    "master": {"master"},
}
PORTS = re.compile(r"^spark\.\S*(?:p|blockManager\.p)ort +(\d+)$", re.MULTILINE)


def documented() -> set[Door]:
    doors = set()
    for to, port, senders in ROW.findall(page.PAGE.read_text()):
        kinds = frozenset().union(*(SENDERS[sender] for sender in senders.split(", ")))
        kind = "worker" if to == "executor" else to.lower()
        doors.add(Door(kind, int(port), kinds))
    return doors


def test_the_page_names_every_open_port_and_who_uses_it() -> None:
    assert documented() == {*DOORS}


def test_the_ports_that_spark_is_told_are_open() -> None:
    told = {int(port) for port in PORTS.findall(page.defaults(driver="driver"))}
    assert len(told) == 3
    assert told <= {door.port for door in DOORS}


def test_the_page_says_what_is_done_here() -> None:
    grants = page.block(page.GRANTS)
    assert "CREATE ROLE reconciler" in grants
    assert "CREATE ROLE rides_reader" in grants
    assert "<" not in page.defaults(driver="driver")
    with pytest.raises(ValueError, match="not enough"):
        page.block("nothing begins like this")

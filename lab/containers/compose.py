"""docker-compose.yml: what it says of each service, with an environment's variables filled in.

Each key of a service is either obeyed or listed as not shown; an unknown one is refused.
"""

import re
from collections.abc import Mapping
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import yaml

from rocket_rides import durations
from rocket_rides.settings import PROJECT

FILE = PROJECT / "docker-compose.yml"
OBEYED = {
    *("build", "cap_drop", "command", "depends_on", "environment", "healthcheck", "image"),
    *("read_only", "restart", "security_opt", "stop_grace_period", "tmpfs", "volumes"),
}
NOT_SHOWN = {"init", "logging", "mem_limit", "ports", "profiles", "shm_size"}
# ${NAME}, ${NAME:-default} and ${NAME:?what is missing}
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")
RETRIES = 3  # failed health checks after the start period; Docker's default


class Failed(Exception):
    """What was to be shown does not hold; the message says what."""


class Check(NamedTuple):
    """A health check; times are in seconds."""

    command: list[str]
    timeout: float
    pause: float  # between two, until one passes
    patience: float


class Service(NamedTuple):
    """One service of the file."""

    name: str
    image: str
    target: str | None  # the Dockerfile's stage; None: the image is not ours
    command: list[str]
    environment: dict[str, str]
    depends_on: dict[str, str]  # the condition that each must meet
    check: Check | None
    read_only: bool
    cap_drop: list[str]
    security_opt: list[str]
    tmpfs: list[str]
    volumes: list[str]
    lasts: bool  # it would be restarted, so it must not end
    grace: float  # seconds that it may take to stop


def read(variables: Mapping[str, str]) -> list[Service]:
    """All services, each after those that it depends on. Raises Failed."""
    found = filled_in(yaml.safe_load(FILE.read_text())["services"], variables)
    order = TopologicalSorter({name: each.get("depends_on", {}) for name, each in found.items()})
    return [_service(name, found[name], variables) for name in order.static_order()]


def filled_in(value: Any, variables: Mapping[str, str]) -> Any:
    """The value with each `${...}` in it replaced. Raises Failed where one must be set."""
    if isinstance(value, dict):
        return {key: filled_in(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [filled_in(each, variables) for each in value]

    def replaced(match: re.Match[str]) -> str:
        name, kind, text = match.groups()
        if kind == "?" and not variables.get(name):
            raise Failed(f"{name} {text}")
        return variables.get(name) or text or ""

    return VARIABLE.sub(replaced, value) if isinstance(value, str) else value


def _service(name: str, said: dict[str, Any], variables: Mapping[str, str]) -> Service:
    if unknown := said.keys() - OBEYED - NOT_SHOWN:
        raise Failed(f"{FILE.name}: {name} has {', '.join(sorted(unknown))}, unknown here")
    environment = said.get("environment", {})
    # A name without a value passes the variable on, if there is one.
    passed_on = {key: variables.get(key) for key, value in environment.items() if value is None}
    return Service(
        name,
        said["image"],
        said["build"]["target"] if "build" in said else None,
        said.get("command", []),
        {key: str(value) for key, value in (environment | passed_on).items() if value is not None},
        {on: each["condition"] for on, each in said.get("depends_on", {}).items()},
        _check(said["healthcheck"]) if "healthcheck" in said else None,
        said.get("read_only", False),
        said.get("cap_drop", []),
        said.get("security_opt", []),
        said.get("tmpfs", []),
        said.get("volumes", []),
        said.get("restart", "no") != "no",
        durations.seconds(said["stop_grace_period"]),
    )


def _check(said: dict[str, Any]) -> Check:
    kind, *command = said["test"]
    timeout, pause, every, start = (
        durations.seconds(said[key])
        for key in ("timeout", "start_interval", "interval", "start_period")
    )
    shell = ["sh", "-c"] if kind == "CMD-SHELL" else []
    return Check(shell + command, timeout, pause, start + RETRIES * every)

"""What docker-compose.yml gives to each of its services, as `docker compose` works it out."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from rocket_rides.settings import PROJECT

COMPOSE = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
# The innermost ${NAME}, ${NAME:-default} or ${NAME:?reason}.
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^{}]*))?\}")


def passed_on(name: str, env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a service's container, with `env` as the shell's or .env's."""
    given = SERVICES[name]["environment"]
    found = {key: filled_in(str(value), env) for key, value in given.items() if value is not None}
    return found | {key: env[key] for key, value in given.items() if value is None and key in env}


def filled_in(text: str, env: Mapping[str, str]) -> str:
    """The text with variables in place of their names."""

    def value(match: re.Match[str]) -> str:
        return env.get(match[1]) or (match[3] if match[2] == "-" else "")

    while VARIABLE.search(text):
        text = VARIABLE.sub(value, text)
    return text

"""What `make images` reads in docker-compose.yml. That the services run is for it to show."""

import pytest

from lab.containers import compose
from lab.containers.compose import Failed, filled_in

MADE = {"POSTGRES_PASSWORD": "secret", "RECEIPT_SECRET": "whsec_c2VjcmV0"}


def test_variables_are_filled_in_as_compose_does() -> None:
    said = {"url": "http://${HOST:-simulator}:${PORT}/", "list": ["${PORT}", 3]}
    assert filled_in(said, {"PORT": "8002"}) == {
        "url": "http://simulator:8002/",
        "list": ["8002", 3],
    }
    assert filled_in("${HOST:-simulator}", {"HOST": ""}) == "simulator"
    assert filled_in("${HOST:-simulator}", {"HOST": "other"}) == "other"


def test_a_variable_that_must_be_set_is_named() -> None:
    with pytest.raises(Failed, match="POSTGRES_PASSWORD is not set"):
        compose.read(MADE | {"POSTGRES_PASSWORD": ""})


def test_a_name_without_a_value_passes_a_variable_on_if_there_is_one() -> None:
    [streamer] = [
        each for each in compose.read(MADE | {"CRASH_RATE": "0.5"}) if each.name == "streamer"
    ]
    assert streamer.environment["CRASH_RATE"] == "0.5"
    assert "LOG_LEVEL" not in streamer.environment


def test_each_service_comes_after_those_that_it_depends_on() -> None:
    seen: set[str] = set()
    for service in compose.read(MADE):
        assert service.depends_on.keys() <= seen
        seen.add(service.name)


def test_a_key_that_nobody_has_decided_about_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "OBEYED", compose.OBEYED - {"cap_drop"})
    with pytest.raises(Failed, match="cap_drop"):
        compose.read(MADE)

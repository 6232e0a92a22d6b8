"""The settings of the library's own processes: from the environment, or from the application."""

import pytest

from rocket_rides.settings import Settings
from unified_log.environment import PARSED, FromEnvironment
from unified_log.errors import Refused
from unified_log.settings import load

URL = "postgresql://u:secret@host/shop"
GIVEN = {
    "DATABASE_URL": (URL, URL),
    "REDIS_URL": ("redis://host/1", "redis://host/1"),
    "STREAM_NAME": ("shop-log", "shop-log"),
    "BATCH_SIZE": ("7", 7),
    "STREAM_MAX_LENGTH": ("5000", 5000),
    "STREAM_MAX_AGE": ("12h", 43_200.0),
    "LOG_REPLICAS": ("1", 1),
    "LEADER_TIMEOUT": ("2.5", 2.5),
    "LOG_LEVEL": ("debug", "DEBUG"),
}
WRONG = {
    "DATABASE_URL": "mysql://u:secret@host/shop",
    "REDIS_URL": "redis://:secret@host:99999",
    "STREAM_NAME": "x" * 201,
    "BATCH_SIZE": "2001",
    "STREAM_MAX_LENGTH": "many",
    "STREAM_MAX_AGE": "a week",
    "LOG_REPLICAS": "-1",
    "LEADER_TIMEOUT": "nan",
    "LOG_LEVEL": "LOUD",
}


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PARSED, "UNIFIED_LOG_SETTINGS"):
        monkeypatch.delenv(name, raising=False)


def test_each_setting_is_read_from_the_variable_of_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert GIVEN.keys() == WRONG.keys() == PARSED.keys()
    for name, (text, _) in GIVEN.items():
        monkeypatch.setenv(name, text)
    config = load()
    assert isinstance(config, FromEnvironment)
    assert {name: getattr(config, name.lower()) for name in GIVEN} == {
        name: value for name, (_, value) in GIVEN.items()
    }
    assert (config.postgres_url, config.log_url) == (URL, "redis://host/1")


def test_what_is_not_set_or_empty_is_as_in_the_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCH_SIZE", "")
    config, services = load(), Settings()
    assert isinstance(config, FromEnvironment)
    for name in PARSED.keys() - {"STREAM_NAME"}:
        assert getattr(config, name.lower()) == getattr(services, name.lower())


@pytest.mark.parametrize("name", WRONG)
def test_a_bad_value_is_one_clear_line_that_shows_no_password(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, WRONG[name])
    with pytest.raises(SystemExit) as ended:
        load()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith(name)
    assert " is refused: " in said
    assert "secret" not in said


def test_all_bad_values_are_told_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in WRONG.items():
        monkeypatch.setenv(name, text)
    with pytest.raises(SystemExit):
        load()
    assert capsys.readouterr().err.count("\n") == len(WRONG)


def test_a_server_that_nobody_named_is_refused_where_it_is_needed() -> None:
    config = load()
    with pytest.raises(Refused, match="DATABASE_URL is not set"):
        _ = config.postgres_url
    with pytest.raises(Refused, match="REDIS_URL is not set"):
        _ = config.log_url


def test_an_application_names_the_function_that_loads_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("UNIFIED_LOG_SETTINGS", "rocket_rides.settings:load")
    monkeypatch.setenv("DATABASE_URL", URL)
    monkeypatch.setenv("REDIS_URL", "redis://host/1")
    assert isinstance(load(), Settings)


@pytest.mark.parametrize(
    "named", ["rocket_rides.settings", "rocket_rides.settings:loads", "nowhere:load", ":load", ":"]
)
def test_a_function_that_there_is_not_is_one_clear_line(
    named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNIFIED_LOG_SETTINGS", named)
    with pytest.raises(SystemExit) as ended:
        load()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"UNIFIED_LOG_SETTINGS={named} is refused: module:function is expected")
    assert said.count("\n") == 1

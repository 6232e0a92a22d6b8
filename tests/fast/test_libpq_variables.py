"""libpq's variables are honoured where DATABASE_URL is set; else they are another server's."""

import os
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo, PGconn
from redis.connection import parse_url

from demo.embedded.servers import Postgres
from rocket_rides.settings import embedded_postgres_url, embedded_redis_url, load
from tests.support.libpq import variables

HOSTILE = "hostile"


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them is set."""
    for name in variables():
        monkeypatch.setenv(name, HOSTILE)


def defaults() -> dict[str, str]:
    """What an option is in a connection that does not name it."""
    return {
        option.keyword.decode(): option.val.decode()
        for option in Conninfo.get_defaults()
        if option.val
    }


def test_the_list_is_libpqs_own() -> None:
    assert {"PGHOSTADDR", "PGSERVICE", "PGOPTIONS", "PGREQUIREPEER"} <= variables()


def test_no_process_of_a_fleet_on_the_embedded_postgres_sees_any(
    hostile: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    load()
    assert variables().isdisjoint(os.environ)
    assert HOSTILE not in defaults().values()


def test_who_runs_an_embedded_postgres_hands_none_to_its_clients(
    hostile: None, tmp_path: Path
) -> None:
    """Tests and the lab, too, which read no settings."""
    Postgres(tmp_path, tmp_path)
    assert variables().isdisjoint(os.environ)


def test_a_server_that_is_named_is_reached_as_libpq_has_it(
    hostile: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://h/x")
    load()
    assert variables() <= set(os.environ)
    assert defaults()["user"] == HOSTILE


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%41b", "a b", "\xfc", "a,b", 'a"b'])
def test_both_clients_are_led_into_the_folder_whatever_its_name_is(name: str) -> None:
    folder = Path("/x") / name
    assert conninfo_to_dict(embedded_postgres_url(folder))["host"] == str(folder)
    redis = parse_url(embedded_redis_url(folder))  # type: ignore[no-untyped-call]
    assert redis["path"] == f"{folder}/redis.sock"


def test_an_embedded_servers_url_leads_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a process that has read no settings, either."""
    services = tmp_path / "services.conf"
    services.write_text("[theirs]\nhostaddr=127.0.0.1\nport=1\ndbname=theirs\nuser=them\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("PGSERVICE", "theirs")
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER"):
        monkeypatch.setenv(name, "127.0.0.1")
    attempt = PGconn.connect_start(embedded_postgres_url(tmp_path).encode())
    tried = {option.keyword: option.val for option in attempt.info if option.val}
    assert {
        name: tried.get(name) for name in (b"host", b"hostaddr", b"port", b"dbname", b"user")
    } == {
        b"host": os.fsencode(tmp_path),
        b"hostaddr": None,
        b"port": b"5432",
        b"dbname": b"rocket_rides",
        b"user": b"postgres",
    }

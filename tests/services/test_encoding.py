"""Text is UTF-8 for every process, whatever the database or its clients' environment prefer."""

import pytest

from rocket_rides import database
from tests.support.world import World


def test_every_session_is_in_utf_8(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    for url in (world.postgres_url, f"{world.postgres_url}&client_encoding=LATIN1"):
        with database.connect(url, "test") as connection:
            assert connection.execute("SHOW client_encoding").fetchone() == ("UTF8",)

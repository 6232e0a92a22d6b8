"""`make psql` and `make redis-cli`: a server that is away."""

import sys
from pathlib import Path

import pytest

from demo.embedded.prompt import main

GIVEN = {"DATABASE_URL": "postgresql://127.0.0.1:1/x", "REDIS_URL": "redis://127.0.0.1:1"}


@pytest.mark.parametrize(("program", "name"), [("psql", "Postgres"), ("redis-cli", "Redis")])
def test_a_server_that_is_away_is_said_in_one_line(
    program: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refusal() -> str:
        """Which Python prints, before it ends with status 1."""
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, str)
        return end.value.code

    monkeypatch.setattr(sys, "argv", ["prompt", program])
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    for variable in GIVEN:
        monkeypatch.delenv(variable, raising=False)
    said = refusal()
    assert "\n" not in said
    assert said.startswith(f"{name} can't be reached: ")
    assert said.endswith("; `make fleet` starts it")

    for variable, url in GIVEN.items():
        monkeypatch.setenv(variable, url)
    said = refusal()
    assert "\n" not in said
    assert "refused" in said
    assert "make fleet" not in said

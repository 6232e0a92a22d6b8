"""`make psql` and `make redis-cli`: the options they pass on, and a server that is away."""

import sys
from pathlib import Path

import pytest
from redis.connection import parse_url

from demo.embedded.prompt import main, options_of_redis_cli

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


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("unix:///tmp/redis.sock?db=3", "-s /tmp/redis.sock -n 3"),
        ("redis://me:pw@example.com:7000/2", "-h example.com -p 7000 --user me -n 2"),
        (
            "rediss://:pw@example.com?ssl_ca_certs=/ca.pem&ssl_cert_reqs=none",
            "-h example.com -p 6379 --tls --sni example.com --cacert /ca.pem --insecure -n 0",
        ),
        ("rediss://127.0.0.1:7000", "-h 127.0.0.1 -p 7000 --tls -n 0"),
    ],
)
def test_redis_cli_is_told_of_the_url_without_its_password(url: str, options: str) -> None:
    assert options_of_redis_cli(parse_url(url)) == options.split()  # type: ignore[no-untyped-call]

"""Settings: from the environment, checked, refused in one clear line, and all documented."""

import subprocess
import sys
from pathlib import Path

import pytest

from rocket_rides.settings import PROJECT, Settings, load

PROCESSES = [
    "analytics.nightly",
    "api",
    "streamer",
    "consumers",
    "simulator",
    "migrations",
    "embedded",
]
BAD = {
    "API_PORT": "many",
    "CRASH_RATE": "1.5",
    "DOUBLE_SEND_RATE": "-0.1",
    "DATABASE_URL": "mysql://localhost/x",
    "REDIS_URL": "http://localhost",
    "API_URL": "localhost:8000",
    "API_HOST": "rides.example",
    "STREAM_MAX_LENGTH": "0",
    "LEADER_TIMEOUT": "soon",
    "LOG_LEVEL": "LOUD",
    "PRINT_RIDES": "maybe",
    "BATCH_SIZE": "1001",
    "RECONCILE_AT": "3 o'clock",
    "IDEMPOTENCY_DAYS": "0",
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_one_clear_line(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, BAD[name])
    with pytest.raises(SystemExit) as end:
        load()
    assert end.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(name)
    assert "is refused: " in line


@pytest.mark.parametrize("module", PROCESSES)
def test_every_process_refuses_it_without_a_traceback(module: str) -> None:
    arguments = ["consumer0"] if module == "consumers" else []
    ended = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=PROJECT,
        env={"API_PORT": "many", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        "API_PORT=many is refused: Input should be a valid integer, unable to parse string as an"
        " integer"
    ]


def test_a_refused_url_does_not_show_its_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", "mysql://me:secret@localhost/x")
    with pytest.raises(SystemExit):
        load()
    assert "secret" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@db.example:5432/rides",
        "postgres://u@/rides?host=/run/postgresql",
        "postgresql+psycopg://u:p@localhost/rides",
        "postgresql://a:5432,b:5432/rides?target_session_attrs=read-write",
        "postgresql:///rides",
    ],
)
def test_libpq_urls_are_taken(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    assert load().postgres_url == url.replace("+psycopg", "")


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "postgresql://h/db?nonsense=1"),
        ("REDIS_URL", "redis://h?protocol=3"),
        ("REDIS_URL", "redis://h?decode_responses=true"),
        ("REDIS_URL", "redis://h?socket_timeout=x"),
        ("REDIS_URL", "unix://"),
    ],
)
def test_a_url_that_would_fail_later_is_refused(
    name: str, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, url)
    with pytest.raises(SystemExit):
        load()
    assert capsys.readouterr().err.startswith(f"{name} is refused: ")


def test_every_setting_is_documented_with_its_default() -> None:
    rows = [
        [cell.strip().strip("`") for cell in line.split("|")[1:3]]
        for line in Path(PROJECT, "README.md").read_text().splitlines()
        if line.startswith("| `") and line.split("`")[1].isupper()
    ]
    documented = dict(rows)
    for name, field in Settings.model_fields.items():
        default = documented.pop(name.upper())
        if name not in {"data_dir", "warehouse_dir"} and field.default != "":
            assert default == str(field.default), name
    assert documented == {}

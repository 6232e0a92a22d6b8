"""Settings: from the environment, checked, refused in one clear line, and all documented."""

import os
import re
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

import pytest
from certifi import where

from rocket_rides.settings import (
    DEMO_SECRET,
    INJECTED,
    PROJECT,
    Settings,
    load,
    require_signing_secrets,
)
from unified_log import urls

NAMED = re.compile(r"# [A-Z_]+=")
# What each of them is refused for: a type, a range, a choice, or a URL that can never work.
BAD = {
    "CELL": "90 -1 seven 7.5",
    "API_PORT": "many",
    "CRASH_RATE": "1.5",
    "API_URL": "localhost:8000",
    "API_HOST": "rides.example",
    "STREAM_MAX_AGE": "0.5s",
    "LOG_LEVEL": "LOUD",
    "LOG_FORMAT": "xml",
    "PRINT_RIDES": "maybe",
    "BATCH_SIZE": "2001",
    "RECONCILE_AT": "0\N{ARABIC-INDIC DIGIT THREE}:00",
    "WAREHOUSE_RETENTION_DAYS": "1",
    "REREAD_DAYS": "0 3651",
    "RECEIPT_SECRET": "secret",
    "RECEIPT_TIMEOUT": "nan",
    "SWEEP_AFTER": "inf",
    "DATABASE_URL": """
        mysql://me:secret@localhost/x postgresql://me:%secret@localhost/x
        postgresql://me:1/?secret=1@localhost/x postgresql://h:0/x postgresql://h:many/x
        postgresql://a:1,b:99999/x postgresql://h/x?port=99999 postgresql://h/x?nonsense=1
    """,
    "REDIS_URL": """
        http://localhost redis://me:secret/@localhost/0 redis://h?foo=bar redis://h?foo
        redis://h?decode_responses=true redis://h?max_connections=0 redis://h?encoding=banana
        redis://h?host=other redis://h?socket_timeout=1 redis://h?db=x redis://h/1/2
        redis://h?ssl_cert_reqs=none rediss://h?ssl_cert_reqs=banana
        unix:///x?socket_keepalive=1 redis://h:many redis://h:99999 redis://a..b
        redis+sentinel://h:1 redis+sentinel://h:1/ redis+sentinel://h:1/n/x redis+sentinel://h:1/n/0/1
        redis+sentinel://h:many/n redis+sentinel://h:1,h:99999/n redis+sentinel://a..b/n
        redis+sentinel://me:secret/@h:1/n redis+sentinel://me:1/secret@h:1/n
        redis+sentinel://me:1/secret@h redis+sentinel://me:a?secret@h:1/n
        redis+sentinel://h:1/n?foo=bar redis+sentinel://h:1/n?sentinel_foo=bar
        redis+sentinel+ssl://a:1,b:2/n/0 sentinel://a:1,b:2/n redis+sentinel:a:1/n
        redis+sentinel://h:1/n?ssl_cert_reqs=none rediss+sentinel://h:1/n?ssl_cert_reqs=banana
    """,
    "RECEIPT_URL": """
        localhost:8002 ftp://h/x http:// http://h:many/ http://h:99999/
        https://me:secret@shop.example/receipts
    """,
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in BAD for value in BAD[name].split()]
)
def test_a_bad_value_is_one_clear_line_without_its_password(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as end:
        load()
    assert end.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(name)
    assert " is refused: " in line
    assert "secret@" not in line
    assert "__init__" not in line


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("database_url", "postgres://u@/rides?host=/run/postgresql"),
        ("database_url", "postgresql+psycopg://u:p@localhost/rides"),
        ("database_url", "postgresql://a:5432,b:5432/rides?target_session_attrs=read-write"),
        ("database_url", f"postgresql://h/rides?sslmode=verify-full&sslrootcert={quote(where())}"),
        ("redis_url", "redis://:secret@h/0?client_name=rides&socket_keepalive=1"),
        ("redis_url", f"rediss://h?ssl_ca_certs={quote(where())}&ssl_check_hostname=false"),
        ("redis_url", "rediss://h?ssl_certfile=/c.pem&ssl_keyfile=/k.pem&ssl_cert_reqs=required"),
        ("redis_url", "unix:///run/redis.sock?db=2"),
        ("redis_url", "redis+sentinel://u:p@a:1,[::1]:2,c/a%2Fb/3?sentinel_password=%23"),
        ("redis_url", f"rediss+sentinel://a:1,b:2/n?ssl_ca_certs={quote(where())}"),
        ("receipt_url", "http://127.0.0.1:8002/receipts"),
        ("receipt_url", "https://shop.example/?shop=7&at=%2Fhome"),
    ],
)
def test_urls_are_taken_as_they_are(name: str, url: str) -> None:
    settings = Settings.model_validate({name: url})
    taken = (settings.postgres_url, settings.log_url, settings.receiver_url)
    assert url.replace("+psycopg", "") in taken


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://[::1]:80", "http://[::1]/"),
        ("https://exämple.example/ä", "https://xn--exmple-cua.example/%C3%A4"),
    ],
)
def test_receivers_are_taken_in_ascii(url: str, address: str) -> None:
    assert Settings(receipt_url=url).receiver_url == address


@pytest.mark.parametrize("password", ["p/a?se#cret", "s3/x?k#y=1", "pa#s/s?x"])
def test_a_password_that_was_not_quoted_is_not_shown(password: str) -> None:
    with pytest.raises(ValueError, match="query parameter") as refused:
        urls.postgres(f"postgresql://u:{password}@host/db")
    assert '"' not in str(refused.value).replace('"="', "")


def test_another_scheme_is_told_from_a_bad_port() -> None:
    with pytest.raises(ValueError, match=re.escape("or redis+sentinel://")):
        urls.redis("redis+sentinel+ssl://a:1,b:2/n/0")


def test_an_option_that_no_sentinel_has_is_told_from_those_that_it_has() -> None:
    with pytest.raises(
        ValueError, match="username; for Sentinels, each with sentinel_ before it, too"
    ):
        urls.redis("redis+sentinel://a:1/n?sentinel_user=me")


@pytest.mark.parametrize("scheme", ["tcp", "udp", "sctp"])
@pytest.mark.parametrize(
    ("name", "field"), [("API_PORT", "api_port"), ("WATCH_PORT", "watch_port")]
)
def test_what_kubernetes_says_of_a_service_is_no_setting(
    name: str,
    field: str,
    scheme: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of a Service named `api` it gives each pod API_PORT=tcp://10.0.0.1:8000."""
    for told in (f"{scheme}://10.0.0.1:8000", f"{scheme}://[fd00::1]:8000"):
        monkeypatch.setenv(name, told)
        assert getattr(load(), field) == Settings.model_fields[field].default
        assert capsys.readouterr().err == f"{name}={told} is ignored: {INJECTED}\n"
        assert name not in os.environ  # so what this process starts has nothing to ignore


@pytest.mark.parametrize(
    ("name", "value"), [("API_PORT", "tcp://"), ("API_URL", "tcp://10.0.0.1:8000")]
)
def test_nothing_else_is_ignored(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        load()


@pytest.mark.parametrize("size", [23, 24, 64, 65])
def test_a_secret_has_24_to_64_bytes(size: int) -> None:
    secret = f"whsec_{b64encode(b'?' * size).decode()}"
    if 24 <= size <= 64:
        assert Settings(receipt_secret=secret).signing_secrets == [secret]
        assert Settings(receipt_secret=f"{secret} {secret}").signing_secrets == [secret] * 2
    else:
        with pytest.raises(ValueError, match="24 to 64 bytes is expected"):
            Settings(receipt_secret=f"{DEMO_SECRET} {secret}")


# What is set, and what is said of the last of it.
REFUSED = {
    "RECEIPT_LEASE=10": "=10 is refused: it must be longer than RECEIPT_TIMEOUT, 10 s",
    "RECEIPT_TIMEOUT=30 RECEIPT_LEASE=20": (
        "=20 is refused: it must be longer than RECEIPT_TIMEOUT, 30 s"
    ),
    "RECEIPT_URL=https://me:hunter2@shop.example/": " is refused: it takes no user and no password",
    "RECEIPT_SECRET=whsec_hunter2": (
        " is refused: whsec_ and the base64 of 24 to 64 bytes is expected"
    ),
}


@pytest.mark.parametrize("given", REFUSED)
def test_what_a_receipts_worker_is_told_wrong_is_one_sentence(
    given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the setting, and shows neither a password nor a secret."""
    for pair in given.split():
        name, _, value = pair.partition("=")
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        load()
    assert capsys.readouterr().err == f"{name}{REFUSED[given]}\n"


def test_the_demo_alone_signs_with_a_secret_that_everyone_knows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    demo = Settings(api_port=9000)
    assert demo.receiver_url == "http://127.0.0.1:9002/receipts"
    assert require_signing_secrets(demo) == [DEMO_SECRET]
    for given in ({"database_url": "postgresql://h/x"}, {"receipt_url": "http://shop.example/"}):
        with pytest.raises(SystemExit) as end:
            require_signing_secrets(Settings.model_validate(given))
        assert end.value.code == 2
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith("RECEIPT_SECRET is not set")


def test_every_setting_is_documented_with_its_default() -> None:
    rows = [
        [cell.strip().strip("`") for cell in line.split("|")[1:3]]
        for line in Path(PROJECT, "docs/settings.md").read_text().splitlines()
        if line.startswith("| `") and line.split("`")[1].isupper()
    ]
    documented = dict(rows)
    for name, field in Settings.model_fields.items():
        default = documented.pop(name.upper())
        if name != "data_dir" and field.default not in {"", None}:
            assert default == str(field.default), name
    assert documented == {}


def test_the_example_names_every_setting_with_its_default() -> None:
    lines = Path(PROJECT, ".env.example").read_text().splitlines()
    shown = dict(line[2:].split("=", 1) for line in lines if NAMED.match(line))
    for name, field in Settings.model_fields.items():
        value = shown.pop(name.upper())
        if field.default not in {"", 0, None} and name != "data_dir":
            assert value == str(field.default), name
    assert shown.keys() == set()

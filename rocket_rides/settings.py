"""The settings of a fleet's processes: read from the environment, checked once, at start."""

import base64
import logging
import os
import re
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn
from urllib.parse import quote

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from rocket_rides import fleet, logs, socket_folder
from rocket_rides.cells import LAST_CELL
from rocket_rides.urls import http
from unified_log import durations, urls
from unified_log.errors import Refused

if TYPE_CHECKING:
    import psycopg

PROJECT = Path(__file__).resolve().parent.parent
DATABASE_NAME = "rocket_rides"
EMBEDDED_PORT = 5432

# What receipts are signed with; in bytes, as Standard Webhooks has it.
SECRET_PREFIX, SHORTEST_SECRET, LONGEST_SECRET = "whsec_", 24, 64
# Of the demo alone, where the simulator is the receiver: anyone can read it, and sign with it.
DEMO_SECRET = "whsec_cm9ja2V0LXJpZGVzLWRlbW8tb25seS1zZWNyZXQ="  # noqa: S105
# Seconds beyond the time-out of an attempt, in which its end is recorded.
LEASE_MARGIN = 5.0
# To each container, Kubernetes names the port of a Service `api` as API_PORT=tcp://10.0.0.1:8000.
SERVICE_LINK = re.compile(r"(tcp|udp|sctp)://\S+:[0-9]+")
INJECTED = "Kubernetes says this of a Service; enableServiceLinks: false keeps it out"
# The ports of a fleet: the API's, that of the live page, and the simulator's for receipts.
PORTS = 3


def _seconds(text: object) -> object:
    return durations.seconds(text) if isinstance(text, str) else text


def _unless_empty(check: Callable[[str], str]) -> AfterValidator:
    """Refuse text for which `check` raises ValueError; empty text counts as not set."""
    return AfterValidator(lambda text: check(text) if text else text)


def _webhook_secrets(secrets: str) -> str:
    """Check what signs receipts, as Standard Webhooks writes a secret, and never show it."""
    for secret in secrets.split() or [""]:
        prefix, encoded = secret[: len(SECRET_PREFIX)], secret[len(SECRET_PREFIX) :]
        try:
            size = len(base64.b64decode(encoded, validate=True))
        except ValueError:
            size = 0
        if prefix != SECRET_PREFIX or not SHORTEST_SECRET <= size <= LONGEST_SECRET:
            form = f"{SECRET_PREFIX} and the base64 of {SHORTEST_SECRET} to {LONGEST_SECRET} bytes"
            raise ValueError(f"{form} is expected")
    return secrets


def _time_of_day(text: str) -> str:
    if not re.fullmatch("([01][0-9]|2[0-3]):[0-5][0-9]", text):
        raise ValueError("a time of day is expected, such as 03:00")
    return text


# Given as 90s, 10m, 12h or 7d; here in seconds.
Duration = Annotated[float, BeforeValidator(_seconds), Field(ge=1)]
Rate = Annotated[float, Field(ge=0, le=1)]


class Settings(BaseSettings):
    """The environment, validated; `make docs` shows each setting in `docs/settings.md`."""

    model_config = SettingsConfigDict(frozen=True, env_ignore_empty=True)

    database_url: Annotated[str, _unless_empty(urls.postgres)] = ""
    """A `postgresql://` URL, of the server or of a pooler in session mode. Unset: embedded, and
    `PGHOST` and the like are ignored."""
    redis_url: Annotated[str, _unless_empty(urls.redis)] = ""
    """A `redis://`, `rediss://` or `unix://` URL (options: `unified_log/urls.py`), or
    `redis+sentinel://HOST:PORT,HOST:PORT/NAME/DB`. Unset: embedded."""
    data_dir: Path = PROJECT / ".data"
    """The folder of the embedded servers."""
    cell: int | None = Field(default=None, ge=0, le=LAST_CELL)
    """This fleet's number, 0 to 89, among several behind one router; the migration stores it for
    good. Processes refuse another cell's database. Unset: the database's, or 0 if new."""
    stream_name: str = Field(default="rocket-rides-log", min_length=1, max_length=200)
    """The Redis stream that is the log; each fleet needs its own."""
    stream_max_length: int = Field(default=1_000_000, ge=1000)
    """Entries kept for a reader that does not come back; it heals what it misses."""
    stream_max_age: Duration = Field(default="7d", validate_default=True)
    """The age by Redis' clock beyond which no reader keeps an entry: `90s`, `10m`, `12h`, `7d`."""
    log_replicas: int = Field(default=0, ge=0, le=10)
    """Replicas of Redis that must have a batch, by `WAIT`, before it is committed as sent."""
    batch_size: int = Field(default=2000, ge=1, le=2000)
    """Records sent or read at a time, up to 2000, which Redis appends in about 5 ms."""
    leader_timeout: float = Field(default=10, ge=1, le=3600)
    """Seconds until the server disconnects a streamer or a rollup that hangs."""
    double_send_rate: Rate = 0
    """The share of batches that are sent twice, on purpose; the Procfile sets 0.10."""
    crash_rate: Rate = 0
    """The share of a consumer's rounds that crash halfway, on purpose; the Procfile sets 0.10 for
    totals and rollup."""
    print_rides: bool = False
    """Totals print a line for each ride instead of each batch; the Procfile sets 1."""
    api_host: str = "127.0.0.1"
    """Where the API listens."""
    api_port: int = Field(default=8000, ge=1, le=65536 - PORTS)
    """Its port; the fleet also uses the next two."""
    api_workers: int = Field(default=2, ge=1, le=64)
    """Its processes."""
    api_threads: int = Field(default=512, ge=1, le=1024)
    """Client connections per process, at most."""
    api_client_timeout: float = Field(default=6, ge=1, le=60)
    """Seconds that the head of a request may take, and that a connection may be idle; a body
    gets at least 2 more."""
    api_connections: int = Field(default=8, ge=1, le=100)
    """Database connections per process."""
    api_url: Annotated[str, _unless_empty(http)] = ""
    """Where the simulator posts to. Unset: the API here."""
    receipt_url: Annotated[str, _unless_empty(http)] = ""
    """Where receipts are delivered: an `http://` or `https://` URL without a user. Unset: the
    simulator, at port `API_PORT` + 2."""
    receipt_secret: Annotated[str, _unless_empty(_webhook_secrets)] = ""
    """What signs receipts: `whsec_` and the base64 of 24 to 64 bytes; or, to replace it, `NEW OLD`.
    Unset: the demo's, which anyone can read, so set it where `DATABASE_URL` or `RECEIPT_URL` is."""
    receipt_concurrency: int = Field(default=64, ge=1, le=256)
    """Receipts in flight per worker, at most 256."""
    receipt_timeout: float = Field(default=10, ge=0.1, le=60)
    """Seconds that an attempt to deliver may take in all, 0.1 to 60."""
    receipt_lease: float | None = Field(default=None, ge=0.1, le=300)
    """Seconds until others take what a dead worker had in flight: more than `RECEIPT_TIMEOUT`, up
    to 300. Unset: `RECEIPT_TIMEOUT` + 5."""
    receipt_attempts: int = Field(default=10, ge=1, le=100)
    """Attempts after which a receipt is a dead letter, up to 100."""
    claim_after: float = Field(default=10, ge=0.1, le=3600)
    """Seconds until workers take over log entries that another has read, but not put into the
    inbox."""
    sweep_after: float = Field(default=30, ge=0.1, le=3600)
    """Seconds until the sweep puts a ride that the log has not brought into the inbox."""
    watch_host: str = "127.0.0.1"
    """Where the live page listens; its buttons need a loopback address."""
    watch_port: int | None = Field(default=None, ge=1, le=65535)
    """Its port. Unset: the one after the API's."""
    warehouse_dir: str = ""
    """Where Spark keeps its rides, one place per database: a folder (delta-rs reads no path with
    `%41` or the like), or an object store's URL, such as `s3://bucket/rides`. Unset:
    `DATA_DIR/warehouse`."""
    warehouse_retention_days: int = Field(default=30, ge=2, le=36500)
    """Days for which the warehouse keeps its earlier versions, at least 2."""
    reread_days: int = Field(default=30, ge=1, le=3650)
    """Days in which the nightly job compares every old ride with Postgres."""
    spark_master: str = ""
    """Where the nightly job runs, such as `spark://host:7077`. Unset: this machine."""
    reconcile_at: Annotated[str, AfterValidator(_time_of_day)] = "03:00"
    """When it runs, daily, in local time (`TZ`)."""
    idempotency_days: int = Field(default=30, ge=1, le=36500)
    """Days, at least 1, for which a client may retry with the same `Idempotency-Key`."""
    otel_exporter_otlp_endpoint: str = ""  # a bad one stops nothing: see `telemetry`
    """The URL of an OpenTelemetry collector, for spans and metrics. Unset: none."""
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"], BeforeValidator(str.upper)
    ] = "INFO"
    """`DEBUG`, `INFO`, `WARNING` or `ERROR`."""
    log_format: Annotated[Literal["text", "json"], BeforeValidator(str.lower)] = "text"
    """`text`, or `json` for an object on each line (`rocket_rides/logs.py`)."""

    @field_validator("api_host", "watch_host")
    @classmethod
    def _is_address(cls, host: str) -> str:
        return str(ip_address("127.0.0.1" if host == "localhost" else host))

    @field_validator("receipt_lease")
    @classmethod
    def _outlasts_an_attempt(cls, lease: float | None, given: ValidationInfo) -> float | None:
        timeout = given.data.get("receipt_timeout")
        if lease is not None and timeout is not None and lease <= timeout:
            raise ValueError(f"it must be longer than RECEIPT_TIMEOUT, {timeout:g} s")
        return lease

    @property
    def lease(self) -> float:
        """Seconds for which a receipt that is being sent belongs to one worker."""
        return self.receipt_lease or self.receipt_timeout + LEASE_MARGIN

    @property
    def warehouse(self) -> str:
        """The folder that holds the rides which Spark has already read, or its URL."""
        if re.match(r"\w+:/", self.warehouse_dir):
            return self.warehouse_dir
        return str(Path(self.warehouse_dir or self.data_dir / "warehouse").absolute())

    @property
    def embedded_postgres(self) -> bool:
        return not self.database_url

    @property
    def embedded_redis(self) -> bool:
        return not self.redis_url

    @property
    def socket_dir(self) -> Path:
        """Where the clients of the embedded servers find their Unix sockets."""
        return socket_folder.of(self.data_dir)

    @property
    def postgres_url(self) -> str:
        """Of Postgres. Raises Refused if another user may listen in the embedded server's place."""
        return self.database_url or embedded_postgres_url(self._trusted_sockets())

    @property
    def log_url(self) -> str:
        """Of Redis. Raises Refused as `postgres_url` does."""
        return self.redis_url or embedded_redis_url(self._trusted_sockets())

    def _trusted_sockets(self) -> Path:
        sockets = self.socket_dir
        socket_folder.require_trusted(sockets, self.data_dir)
        return sockets

    def begin_logging(self) -> None:
        """Have this process log to stdout."""
        logs.configure(self.log_level, self.log_format)

    def require_schema(self, connection: "psycopg.Connection") -> None:
        """Raise Unavailable, or Refused, unless the database is the one that this code needs."""
        from rocket_rides.revisions import require_schema  # and psycopg: not all need it

        require_schema(connection, self.cell)

    def why_absent(self, url: str) -> str:
        """A sentence for a person, if that is an embedded server's URL, and no fleet runs here."""
        is_embedded = url not in (self.database_url, self.redis_url)
        return fleet.not_started(self.data_dir) if is_embedded else ""

    @property
    def api_address(self) -> str:
        """The API's host and port, as a client on this machine would write them."""
        return _address(self.api_host, self.api_port)

    @property
    def page_port(self) -> int:
        """The port of the live page: the one after the API's, unless WATCH_PORT says otherwise."""
        return self.watch_port or self.api_port + 1

    @property
    def page_address(self) -> str:
        """The live page's host and port, as a browser on this machine would write them."""
        return _address(self.watch_host, self.page_port)

    @property
    def rides_url(self) -> str:
        """Where the simulator posts to."""
        return (self.api_url or f"http://{self.api_address}").rstrip("/")

    @property
    def receiver_url(self) -> str:
        """Where receipts are delivered: to the simulator, unless RECEIPT_URL says otherwise."""
        return self.receipt_url or f"http://127.0.0.1:{self.api_port + PORTS - 1}/receipts"

    @property
    def signing_secrets(self) -> list[str]:
        """The secrets that sign each receipt; none if RECEIPT_SECRET is needed and not set.

        The demo, with the embedded Postgres and the simulator as the receiver, has one of its own.
        """
        demo = self.embedded_postgres and not self.receipt_url
        return (self.receipt_secret or (DEMO_SECRET if demo else "")).split()


def _address(host: str, port: int) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def embedded_postgres_url(sockets: Path) -> str:
    """Spells out where the server is: no variable of libpq's leads its clients to another.

    The port is part of the socket's name. An empty hostaddr is none, and not PGHOSTADDR's.
    """
    host = quote(os.fsencode(sockets), safe="")
    return f"postgresql://postgres@/{DATABASE_NAME}?host={host}&port={EMBEDDED_PORT}&hostaddr="


def embedded_redis_url(sockets: Path) -> str:
    """Of any folder: a `#` or a `%41` in its path is a part of that, and not of the URL."""
    return f"unix://{quote(os.fsencode(sockets))}/redis.sock"


def load() -> Settings:
    """Read the settings, or end the process with one clear line for each bad variable.

    For the embedded Postgres, this process forgets libpq's variables, which are another server's.
    """
    forget_service_links()
    try:
        config = Settings()
        if config.embedded_postgres:
            forget_libpq_variables()
        _ = config.postgres_url, config.log_url
    except ValidationError as error:
        _refuse(map(_problem, error.errors()))
    except Refused as reason:
        _refuse([str(reason)])
    return config


def forget_service_links() -> None:
    """Take those that are no settings from this process and those it starts, and say so."""
    for name in ("API_PORT", "WATCH_PORT"):
        if SERVICE_LINK.fullmatch(os.environ.get(name, "")):
            _say([f"{name}={os.environ.pop(name)} is ignored: {INJECTED}"], logging.WARNING)


def forget_libpq_variables() -> None:
    """Take all of them, of whatever version of libpq, from this process and those it starts."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]


def require_signing_secrets(config: Settings) -> list[str]:
    """What receipts are signed with, or end the process with one clear line."""
    if not config.signing_secrets:
        reason = (
            "RECEIPT_SECRET is not set, and only the demo signs receipts without it:"
            ' echo "RECEIPT_SECRET=whsec_$(openssl rand -base64 32)" >> .env'
        )
        _refuse([reason])
    return config.signing_secrets


def _refuse(reasons: Iterable[str]) -> NoReturn:
    _say(reasons, logging.ERROR)
    raise SystemExit(2)


def _say(lines: Iterable[str], level: int) -> None:
    """As LOG_FORMAT has it: no settings are known yet."""
    if os.environ.get("LOG_FORMAT", "").lower() == logs.JSON:
        logs.configure("INFO", logs.JSON)
    for line in lines:
        logs.say(line, level)


def _problem(error: ErrorDetails) -> str:
    name = "_".join(str(part) for part in error["loc"]).upper()
    # A URL may hold a password.
    given = "" if name.endswith(("_URL", "_SECRET", "_ENDPOINT")) else f"={error['input']}"
    return f"{name}{given} is refused: {error['msg'].removeprefix('Value error, ')}"

"""All services of docker-compose.yml, from their start to their end, with a nightly run."""

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from urllib.request import urlopen

from lab.containers.podman import NAME, SERVICES, Failed, compose, podman, show
from rocket_rides import durations

PATIENCE = 120.0  # seconds
PAUSE = 0.5  # seconds
RECEIVER = "http://simulator:8002/receipts"
# Ports on this host that are not those of a fleet that may run here; and the demo's own receiver,
# whatever the environment says.
GIVEN = {"API_PORT": "18000", "WATCH_PORT": "18001", "RECEIPT_URL": RECEIVER}
PUBLISHED = ("http://127.0.0.1:18000/readyz", "http://127.0.0.1:18001/healthz")
# The commands that the file recommends for posting rides, and for reconciling.
RIDES = 200
POST = (
    *("run", "--no-deps", "--rm", "-e", "API_URL=http://api:8000", "api"),
    *("python", "-m", "demo.simulator", "--rides", str(RIDES), "--rate", "0"),
)
RECONCILE = ("python", "-m", "analytics.reconcile")

# Run in the container of Postgres, whose environment has these variables.
PSQL = (
    "PGPASSWORD=$POSTGRES_PASSWORD psql --host=127.0.0.1 --username=$POSTGRES_USER"
    ' --dbname=$POSTGRES_DB --tuples-only --no-align --command="$1"'
)
NEWEST = "SELECT max(id) FROM rides"
# The demo's customer never accepts some receipts: they become dead letters.
COPED = """
    SELECT count(*) = 2 AND bool_and(
        last_ride_id >= {newest}
        AND total_distance = (SELECT sum(distance) FROM rides WHERE id <= last_ride_id)
    ) AND NOT EXISTS (
        SELECT FROM rides LEFT JOIN receipts ON ride_id = id
        WHERE id <= {newest} AND outcome IS NULL
    )
    FROM checkpoints JOIN consumer_states USING (kind, name)
"""


def container(service: str) -> str:
    return f"{NAME}_{service}_1"


class Fleet:
    """All services. Each method raises Failed where something does not hold."""

    def __init__(self, secrets: dict[str, str]) -> None:
        self._environment = secrets | GIVEN

    @contextlib.contextmanager
    def up(self) -> Iterator[None]:
        """Start all services; stop and remove them after the block."""
        self._down()
        try:
            compose(self._environment, "up", "--no-build", "--detach")
            yield
        finally:
            self._down()

    def _down(self) -> None:
        compose(self._environment, "down", "--volumes")
        podman("network", "rm", "--force", f"{NAME}_default")

    def is_healthy(self) -> None:
        """Wait until the health checks pass, and the published ports answer."""
        for service, each in SERVICES.items():
            if check := each.get("healthcheck"):
                kind, *words = check["test"]
                shell = ["sh", "-c"] if kind == "CMD-SHELL" else []
                run = ["exec", container(service), "timeout", check["timeout"], *shell, *words]
                try:
                    wait_for(partial(works, *run), f"{service} is not healthy")
                except Failed:
                    show("podman", "logs", "--tail", "5", container(service))
                    raise
        for url in PUBLISHED:
            try:
                urlopen(url, timeout=3).close()  # noqa: S310 (it is of http)
            except OSError as error:
                raise Failed(f"{url} does not answer on this host: {error}") from None

    def takes_rides(self) -> int:
        """Post rides, and wait until totals and receipts have them; returns the newest."""
        compose(self._environment, *POST)
        newest = int(asked(NEWEST))
        if newest < RIDES:
            raise Failed(f"the newest ride is {newest} after {RIDES} were posted")
        coped = COPED.format(newest=newest)
        wait_for(
            lambda: asked(coped) == "t",
            f"totals are not exact, or receipts are undecided, up to ride {newest}",
        )
        return newest

    def reconciles(self) -> None:
        """Run the nightly job in its container; it must agree."""
        podman("exec", container("reconciler"), *RECONCILE)

    def stops(self) -> None:
        """Stop our services, then the servers."""
        for service, each in sorted(SERVICES.items(), key=lambda item: "build" not in item[1]):
            name, grace = container(service), durations.seconds(each["stop_grace_period"])
            podman("stop", "--time", f"{grace:.0f}", name)
            ended = podman("inspect", "--format", "{{.State.ExitCode}} {{.RestartCount}}", name)
            if ended != "0 0":
                raise Failed(f"{service}: its exit status, and its restarts, are {ended}")


def asked(query: str) -> str:
    """The answer of Postgres to a query."""
    return podman("exec", container("postgres"), "sh", "-c", PSQL, "sh", query)


def works(*words: str) -> bool:
    try:
        podman(*words)
    except Failed:
        return False
    return True


def wait_for(claim: Callable[[], bool], otherwise: str) -> None:
    """Raises Failed."""
    deadline = time.monotonic() + PATIENCE
    while not claim():
        if time.monotonic() > deadline:
            raise Failed(f"{otherwise} after {PATIENCE:.0f} s")
        time.sleep(PAUSE)

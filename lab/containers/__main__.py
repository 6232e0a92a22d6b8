"""`python -m lab.containers`: builds the images, and runs docker-compose.yml's services from them.

It uses Podman and podman-compose, as root, on Linux. It posts rides. Then both totals must become
exact, each receipt must be delivered or a dead letter, the nightly job must agree, and each service
must stop within its grace period.
"""

import argparse
import os
import shutil
import signal
import sys
from functools import partial
from urllib.request import urlopen

from lab.containers.podman import (
    API_PORT,
    NAME,
    SERVICES,
    WATCH_PORT,
    Failed,
    build,
    compose,
    podman,
    show,
)
from lab.until import until
from rocket_rides import durations

PROGRAMS = ("podman", "podman-compose", "runc", "mmdebstrap")
PATIENCE = 120.0  # seconds
PAUSE = 0.5  # seconds
PUBLISHED = (f"http://127.0.0.1:{API_PORT}/readyz", f"http://127.0.0.1:{WATCH_PORT}/healthz")
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
        position >= {newest}
        AND total_distance = (SELECT sum(distance) FROM rides WHERE id <= position)
    ) AND NOT EXISTS (
        SELECT FROM rides LEFT JOIN receipts ON ride_id = id
        WHERE id <= {newest} AND outcome IS NULL
    )
    FROM checkpoints JOIN consumer_states USING (kind, name)
"""


def main() -> None:
    """Build the images, run them, and say what was shown."""
    argparse.ArgumentParser(prog="python -m lab.containers", description=__doc__).parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        if sys.platform != "linux" or os.geteuid() != 0:
            raise Failed("it takes root, on Linux")
        if missing := [program for program in PROGRAMS if not shutil.which(program)]:
            raise Failed(f"missing (Debian: apt install {' '.join(missing)})")
        build()
        remove()
        try:
            play()
        finally:
            remove()
    except (Failed, TimeoutError) as reason:
        sys.exit(str(reason))


def say(line: str) -> None:
    print(line, flush=True)


def remove() -> None:
    """Stop and remove all services."""
    compose("down", "--volumes")
    podman("network", "rm", "--force", f"{NAME}_default")


def play() -> None:
    """Start all services, and use and stop them. Raises Failed, or TimeoutError."""
    compose("up", "--no-build", "--detach")
    wait_until_healthy()
    say("every service runs, every health check passes, and the published ports answer")
    newest = take_rides()
    say(f"both totals are exact, and each receipt is decided, up to ride {newest} at least")
    podman("exec", container("reconciler"), *RECONCILE)
    say("the nightly job agrees with both totals")
    stop()
    say("each service has stopped in time, with status 0")


def wait_until_healthy() -> None:
    """Wait until the health checks pass; then the published ports must answer."""
    for service, each in SERVICES.items():
        if check := each.get("healthcheck"):
            kind, *words = check["test"]
            shell = ["sh", "-c"] if kind == "CMD-SHELL" else []
            run = ["exec", container(service), "timeout", check["timeout"], *shell, *words]
            try:
                until(partial(works, *run), f"{service} is not healthy", PATIENCE, PAUSE)
            except TimeoutError:
                show("podman", "logs", "--tail", "5", container(service))
                raise
    for url in PUBLISHED:
        try:
            urlopen(url, timeout=3).close()  # noqa: S310 (it is of http)
        except OSError as error:
            raise Failed(f"{url} does not answer on this host: {error}") from None


def take_rides() -> int:
    """Post rides, and wait until totals and receipts have them; returns the newest."""
    compose(*POST)
    newest = int(asked(NEWEST))
    if newest < RIDES:
        raise Failed(f"the newest ride is {newest} after {RIDES} were posted")
    coped = COPED.format(newest=newest)
    late = f"totals are not exact, or receipts are undecided, up to ride {newest}"
    until(lambda: asked(coped) == "t", late, PATIENCE, PAUSE)
    return newest


def stop() -> None:
    """Stop our services, then the servers."""
    for service, each in sorted(SERVICES.items(), key=lambda item: "build" not in item[1]):
        name, grace = container(service), durations.seconds(each["stop_grace_period"])
        podman("stop", "--time", f"{grace:.0f}", name)
        ended = podman("inspect", "--format", "{{.State.ExitCode}} {{.RestartCount}}", name)
        if ended != "0 0":
            raise Failed(f"{service}: its exit status, and its restarts, are {ended}")


def container(service: str) -> str:
    return f"{NAME}_{service}_1"


def asked(query: str) -> str:
    """The answer of Postgres to a query."""
    return podman("exec", container("postgres"), "sh", "-c", PSQL, "sh", query)


def works(*words: str) -> bool:
    try:
        podman(*words)
    except Failed:
        return False
    return True


if __name__ == "__main__":
    main()

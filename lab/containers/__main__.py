"""`python -m lab.containers`: builds the images, and runs docker-compose.yml's services from them.

It uses Podman and podman-compose, as root, on Linux. It posts rides. Then both totals must become
exact, each receipt must be delivered or a dead letter, the nightly job must agree, and each service
must stop within its grace period.
"""

import argparse
import base64
import os
import secrets
import shutil
import signal
import sys
import time

from lab.containers import images
from lab.containers.fleet import Fleet
from lab.containers.podman import Failed

PROGRAMS = ("podman", "podman-compose", "runc", "mmdebstrap")


def main() -> None:
    """Build the images, run them, and say what was shown."""
    argparse.ArgumentParser(prog="python -m lab.containers", description=__doc__).parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        if sys.platform != "linux" or os.geteuid() != 0:
            raise Failed("it takes root, on Linux")
        if missing := [program for program in PROGRAMS if not shutil.which(program)]:
            raise Failed(f"missing (Debian: apt install {' '.join(missing)})")
        play()
    except Failed as reason:
        sys.exit(f"{reason}")
    except KeyboardInterrupt:
        sys.exit(130)


def play() -> None:
    """Raises Failed."""
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    made = {"POSTGRES_PASSWORD": secrets.token_hex(), "RECEIPT_SECRET": f"whsec_{key}"}
    images.build()
    fleet, began = Fleet(made), time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {line}", flush=True)

    with fleet.up():
        fleet.is_healthy()
        say("every service runs, every health check passes, and the published ports answer")
        newest = fleet.takes_rides()
        say(f"both totals are exact, and each receipt is decided, up to ride {newest} at least")
        fleet.reconciles()
        say("the nightly job agrees with both totals")
        fleet.stops()
        say("each service has stopped in time, with status 0")


if __name__ == "__main__":
    main()

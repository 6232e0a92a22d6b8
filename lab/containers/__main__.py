"""`python -m lab.containers`: builds the images, and runs docker-compose.yml's services from them.

Without Docker: buildah builds, and each service of ours runs as the file says: its command,
environment, user and rights, on a read-only root. They start in the order of `depends_on`, on
Debian's Postgres and Redis. Then rides are posted; both totals must become exact, and all receipts
be delivered; the nightly job must agree; and each service must stop within its grace period.

It can't show Docker's own network, published ports, limits and restarts. It takes root, on Linux.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from lab.containers import compose, images
from lab.containers.compose import Failed
from lab.containers.servers import postgres_programs

PROGRAMS = {
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "redis-server": "redis-server",
    "ip": "iproute2",
}
# All of it ends when the first process in it does.
NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--ipc", "--mount-proc", "--kill-child")
UNUSED = {"POSTGRES_PASSWORD": "unused", "RECEIPT_SECRET": "unused"}  # to build


def require() -> None:
    """Raises Failed if something is missing that this takes."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise Failed("it takes root, on Linux")
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    if not postgres_programs():
        missing.append("postgresql")
    if missing:
        raise Failed(f"missing (Debian: apt install {' '.join(missing)})")


def main() -> None:
    """Build, run, and tell what came of it."""
    argparse.ArgumentParser(prog="python -m lab.containers", description=__doc__).parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        require()
        services = compose.read(UNUSED)
        sizes = images.build(services)
        with (
            images.mounted(services) as mounted,
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        ):
            os.chmod(folder, 0o755)  # noqa: S103 (the services run as others)
            command = [sys.executable, "-m", "lab.containers.run", folder, json.dumps(mounted)]
            status = subprocess.run([*NAMESPACES, *command]).returncode
    except Failed as reason:
        sys.exit(f"{reason}")
    except KeyboardInterrupt:
        sys.exit(130)
    print("\n".join(f"image {name}: {size}" for name, size in sizes.items()))
    sys.exit(status)


if __name__ == "__main__":
    main()

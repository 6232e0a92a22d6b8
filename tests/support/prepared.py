"""The data folder of a migrated cluster. To copy it is a tenth of the work of making one.

The workers of a run share it: the first that needs it makes it, in the run's own folder, of which
pytest keeps the last few. Several runs share it where the environment names a folder for it.
"""

import fcntl
import shutil
import subprocess
from pathlib import Path

from demo.embedded.account import server_account
from demo.embedded.servers import Postgres
from migrations import upgrade
from rocket_rides.settings import Settings
from tests.support.folders import short_folder

SHARED_IN = "TESTS_SHARE_A_CLUSTER_IN"  # a variable


def prepared_cluster(run: Path) -> Path:
    """The data folder, inside the folder of this test run, or of several."""
    data = run / f"cluster-of-cell-{Settings().cell}"
    with (run / "cluster.lock").open("w") as making:
        fcntl.flock(making, fcntl.LOCK_EX)
        if not data.exists():
            _make(data)
    return data


def _make(data: Path) -> None:
    with short_folder() as folder:
        server = Postgres(data=folder / "data", sockets=folder / "run")
        server.start()
        upgrade(server.url, Settings().cell)
        server.stop()
        unfinished = data.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        _copy(server.folder, unfinished)
        # In its own folder, with which it goes: in /dev/shm it would outlive a killed server.
        with (unfinished / "postgresql.conf").open("a") as settings:
            settings.write("dynamic_shared_memory_type = mmap\n")
        unfinished.rename(data)


def put_into(data: Path, prepared: Path) -> None:
    """Copy it into a fleet's data folder, which has no cluster yet."""
    _copy(prepared, server_account().home(data) / "postgres")


def _copy(folder: Path, to: Path) -> None:
    subprocess.run(["/bin/cp", "-a", folder, to], check=True)

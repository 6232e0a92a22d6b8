"""Takes base backups of an embedded Postgres, and restores them, as after a disaster.

With `recovery.signal`, Postgres recovers the backup and begins a new timeline. Without it, as when
somebody copies the folder back, it takes that for a crash, and goes on in the old timeline.
"""

import shutil
import time
from pathlib import Path

from demo.embedded.servers import Postgres
from rocket_rides.settings import EMBEDDED_PORT

# There is no archive: recovery ends where the backup ends.
NO_ARCHIVE = "restore_command = 'false'\n"


class Backup:
    """A backup of `postgres` as it is now, kept beside its data folder. Raises ServerFailed."""

    def __init__(self, postgres: Postgres, name: str) -> None:
        self.began = time.monotonic()
        self._postgres = postgres
        self._folder = postgres.home / f"backup-{name}"
        base_backup(postgres, self._folder, f"--host={postgres.sockets}", f"--port={EMBEDDED_PORT}")

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def restore(self, *, recovery_signal: bool, into: Postgres | None = None) -> None:
        """Put it in place of its server's data, or that of `into`, which must not be running."""
        server = into or self._postgres
        folder = emptied(server)
        server.run(["cp", "-a", f"{self._folder}/.", str(folder)])
        if recovery_signal:
            with (folder / "postgresql.auto.conf").open("a") as settings:
                settings.write(NO_ARCHIVE)
            server.run(["touch", str(folder / "recovery.signal")])


def emptied(server: Postgres) -> Path:
    """The server's data folder, with nothing in it.

    It is the same folder as before: by that, the next start recognizes the shared memory that a
    killed server has left, and frees it.
    """
    server.account.make_private(server.folder)
    for path in server.folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    return server.folder


def base_backup(server: Postgres, folder: Path, *source: str) -> None:
    """By `server`'s program, and as its user, copy the data of `source`. Raises ServerFailed."""
    server.account.make_private(folder)
    options = ("--username=postgres", "--checkpoint=fast", "--no-sync")
    server.run([f"{server.programs}/pg_basebackup", f"--pgdata={folder}", *source, *options])

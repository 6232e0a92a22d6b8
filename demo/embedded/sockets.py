"""The folder of the servers' sockets, and the link in the data folder that may lead to it."""

import contextlib
import os
import shutil
import socket
from pathlib import Path

from demo.embedded.account import PRIVATE, Account
from demo.embedded.failures import NeverStarts
from rocket_rides import socket_folder
from unified_log.errors import in_one_line


class Sockets:
    """Those of the fleet on the folder `data`, whose lock this process holds."""

    def __init__(self, data: Path, account: Account) -> None:
        self._data, self._account = data, account
        self._expected = socket_folder.in_data(data)  # by clients: the folder, or the link to it
        is_there = (
            socket_folder.fits(self._expected)
            and account.home(data) == data.resolve()
            and holds_sockets(data)
        )
        self.folder = self._expected if is_there else socket_folder.elsewhere(data)

    def __enter__(self) -> "Sockets":
        """Make the folder, and the link. Raises NeverStarts, and leaves alone what is another's."""
        try:
            if self.folder == self._expected and self._expected.is_symlink():
                self._expected.unlink()
            self._account.make_private(self.folder)
            self._link()
        except OSError as error:
            raise NeverStarts(
                f"no sockets can be made for DATA_DIR={self._data}: {in_one_line(error)};"
                " set another DATA_DIR"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        """Remove them: a killed server leaves its socket."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder != self._expected:
            with contextlib.suppress(OSError):
                self._expected.unlink()

    def keep(self) -> None:
        """Make the link again if somebody removed it, and what the folder elsewhere was in.

        The servers' starts make the folder.
        """
        with contextlib.suppress(OSError):  # a missing data folder is said by the servers
            self._link()
            if self.folder != self._expected:
                self.folder.parent.mkdir(PRIVATE, parents=True, exist_ok=True)

    def _link(self) -> None:
        link = self._expected
        if self.folder == link or (link.is_symlink() and Path(os.readlink(link)) == self.folder):
            return
        if not link.is_symlink() and link.is_dir():
            self._account.make_private(link)  # or it is not ours to remove
            shutil.rmtree(link)
        unfinished = link.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        unfinished.symlink_to(self.folder)
        unfinished.rename(link)


def holds_sockets(folder: Path) -> bool:
    """Whether a socket can be made in the folder: a mount from another system may have none."""
    trial = folder / "trial"
    try:
        trial.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(trial))
        trial.unlink()
    except OSError:
        return False
    return True

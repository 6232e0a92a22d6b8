"""Where a warehouse is: a folder, or the URL of an object store.

pyarrow writes and reads files there, in the driver and in Spark's tasks, and delta-rs the table's
log. Object stores have one client for both, delta-rs' own. It takes credentials and endpoints from
the usual variables (AWS_*, AZURE_*, GOOGLE_*) of the process that it is in; so they are in no
setting and no closure, and `refusal` keeps its URLs, which may be signed, out of messages.

For Spark's tasks, too, which need nothing of this project.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

SCHEMES = ("s3", "s3a", "abfs", "abfss", "gs")
# By default, requests are repeated for three minutes.
OPTIONS = {
    "max_retries": "5",
    "retry_timeout": "30s",
    "connect_timeout": "5s",
    "timeout": "60s",
}
BUFFER = 1 << 16  # bytes; without one, the client takes no bytes of Python's
ENDPOINT = re.compile(r"(AWS|AZURE|AZURE_STORAGE)_ENDPOINT(_URL)?(_S3)?")
ODD = re.compile(r"%[0-9A-Fa-f]{2}|\\")
COLOUR, URL = re.compile(r"\x1b\[\d*m"), re.compile(r"\w+://\S+")
SAID = re.compile(r"<Code>(\w+)</Code>\s*(?:<Message>([^<\n]*))?")
SAID_BY_SYSTEM = re.compile(r'Os \{.*message: "([^"]*)"')


class Store:
    """What lies below `root`: all paths are relative to it. Raises OSError, with one sentence."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"
        parts = urlsplit(root) if re.match(r"\w+:/", root) else None
        if parts and parts.scheme == "file":
            if parts.netloc not in ("", "localhost"):
                raise OSError(f"{root} names a host: a folder's URL begins with file:///")
            self.root, parts = unquote(parts.path).rstrip("/"), None
        self.is_folder = parts is None
        if parts and (parts.scheme not in SCHEMES or not parts.netloc):
            raise OSError(f"{parts.scheme}://... is no place for a warehouse: set a folder, or one"
                          f" of {', '.join(SCHEMES)}")  # fmt: skip
        if parts and (parts.password or parts.query):
            raise OSError("WAREHOUSE_DIR has credentials in it: they belong into the environment")
        if parts and "#" in root:  # what follows would be left out
            raise OSError("WAREHOUSE_DIR is a URL with a # in it: set another one")
        if self.is_folder and (odd := ODD.search(self.root)):
            raise OSError(f"WAREHOUSE_DIR has {odd[0]} in it, which delta-rs takes otherwise:"
                          " set another folder")  # fmt: skip
        self.files = self._files()

    def _files(self) -> "FileSystem":
        from pyarrow import fs

        if self.is_folder:
            return fs.SubTreeFileSystem(self.root, fs.LocalFileSystem())
        from deltalake.exceptions import DeltaError
        from deltalake.fs import DeltaStorageHandler

        for name in filter(ENDPOINT.fullmatch, os.environ):
            if not re.match("https?://|$", os.environ[name]):  # the client would panic
                raise OSError(f"{name} is no URL: it begins with http:// or https://")
        try:
            with self.telling():
                return fs.PyFileSystem(DeltaStorageHandler(self.root, OPTIONS))
        except DeltaError as error:
            raise OSError(f"{self.root}: {refusal(error)}") from None

    def below(self, name: str) -> "Store":
        return Store(f"{self.root}/{name}")

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Have errors of the store, or of delta-rs, say what was refused, and where."""
        try:
            yield
        except OSError as error:
            kind = FileNotFoundError if isinstance(error, FileNotFoundError) else OSError
            raise kind(f"{self.root}: {refusal(error)}") from None

    def listed(self, folder: str = "") -> "list[FileInfo]":
        """What is in a folder, in the order of names; nothing if there is none."""
        from pyarrow.fs import FileSelector

        with self.telling():
            found = self.files.get_file_info(FileSelector(folder, allow_not_found=True))
        return sorted(found, key=lambda info: info.path)

    def has(self, path: str) -> bool:
        """Whether there is a file."""
        with self.telling():
            found: bool = self.files.get_file_info(path).is_file
        return found

    def read(self, path: str) -> bytes:
        """A file's content. Raises FileNotFoundError."""
        with self.telling(), self.files.open_input_file(path) as file:
            content: bytes = file.read()
        return content

    def write(self, path: str, content: bytes) -> None:
        """Write a file, on disk when this returns."""
        with self.telling():
            self.files.create_dir(os.path.dirname(path))
            with self.files.open_output_stream(path, buffer_size=BUFFER) as file:
                file.write(content)
        self.to_disk(path)

    def delete(self, path: str) -> None:
        """Delete a file that may be gone."""
        with self.telling(), suppress(FileNotFoundError):
            self.files.delete_file(path)

    def to_disk(self, *paths: str) -> None:
        """Sync files and the folders above them; what an object store has taken is on disk."""
        if not self.is_folder:
            return
        folders = {folder for path in paths for folder in _above(path)}
        for path in (*paths, *sorted(folders, reverse=True)):
            place = os.path.normpath(os.path.join(self.root, path))
            descriptor = os.open(place, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _above(path: str) -> Iterator[str]:
    while path:
        path = os.path.dirname(path)
        yield path
    yield os.pardir  # the root may be new


def refusal(error: BaseException) -> str:
    """What a store's client says, in one line: the store's own words if there are any."""
    said = COLOUR.sub("", str(error)).partition("   0: ")[0].strip()  # what follows is a trace
    if answered := SAID.search(said):
        code, message = answered.groups()
        return f"{message.strip()} ({code})" if message else code
    if refused := SAID_BY_SYSTEM.search(said):
        return refused[1]
    last = said.splitlines()[-1] if said else type(error).__name__
    if last.endswith("URL scheme is not allowed"):
        return "an endpoint with http:// needs AWS_ALLOW_HTTP=true, or AZURE_ALLOW_HTTP=true"
    return URL.sub("...", last).strip(" \N{DOWNWARDS ARROW WITH TIP RIGHTWARDS}")

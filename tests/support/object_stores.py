"""Object stores for tests: servers of S3's protocol and of Azure's that keep all on disk.

Their variables are in the environment before Spark starts: its workers have those of its Java.
"""

import base64
import hashlib
import hmac
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path

from tests.support.npm import installed
from tests.support.world import PATIENCE, eventually

SERVER = Path(__file__).with_name("s3_server.py")
KEY, SECRET = "rides", "a-secret-that-no-message-has"
AZURITE = "azurite@3.37.0"
# Of the one account that it has, as its documentation says.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
NODE_PATIENCE = 60  # seconds
SIGNED = (
    "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{at}\nx-ms-version:2021-08-06\n"
    "/{account}/{account}/{container}\nrestype:container"
)


SERVED = list[Path]()  # the folders that a server of S3's protocol keeps buckets in


def root_of(folder: Path) -> str:
    """The warehouse in a folder: the folder, or its URL if it is a server's."""
    for served in SERVED:
        if folder.is_relative_to(served):
            return f"s3://{folder.relative_to(served)}"
    return str(folder)


@contextmanager
def s3_server(folder: Path, *options: str) -> Iterator[Mapping[str, str]]:
    """A server that keeps each bucket as a folder in `folder`; yields a client's variables."""
    folder.mkdir(exist_ok=True)
    server = subprocess.Popen(
        [sys.executable, SERVER, folder, KEY, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # who does not read to the end, makes it complain
        text=True,
    )
    try:
        assert server.stdout
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.stdout.readline().strip()}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }
    finally:
        server.kill()
        server.wait()


def azure_variables(port: int) -> Mapping[str, str]:
    return {
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY,
        "AZURE_ENDPOINT": f"http://127.0.0.1:{port}/{ACCOUNT}",
        "AZURE_ALLOW_HTTP": "true",
    }


@contextmanager
def azurite(folder: Path, port: int) -> Iterator[None]:
    """Azure's own emulator. Skips the test, with the reason, where it can't be had."""
    program = installed(AZURITE) / "dist/src/blob/main.js"
    where = ("--blobPort", str(port), "--location", str(folder))
    server = subprocess.Popen(
        ["node", program, *where, "--silent", "--skipApiVersionCheck", "--disableTelemetry"],  # noqa: S607
        stdout=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: _answers(port), "azurite", NODE_PATIENCE)
        yield
    finally:
        server.kill()
        server.wait()


def _answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return bool(connection.getresponse().status)
    except OSError:
        return False
    finally:
        connection.close()


def make_container(port: int, name: str) -> None:
    at = f"{datetime.now(UTC):%a, %d %b %Y %H:%M:%S} GMT"
    signed = SIGNED.format(at=at, account=ACCOUNT, container=name).encode()
    key = base64.b64decode(ACCOUNT_KEY)
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    headers = {
        "x-ms-date": at,
        "x-ms-version": "2021-08-06",
        "Authorization": f"SharedKey {ACCOUNT}:{signature}",
        "Content-Length": "0",
    }
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("PUT", f"/{ACCOUNT}/{name}?restype=container", headers=headers)
    assert connection.getresponse().status == 201
    connection.close()

"""`python tests/support/s3_server.py FOLDER KEY [OPTION...]`: a server of S3's protocol.

localbucket keeps each bucket as a folder, and checks no credentials. Added here: DeleteObjects,
which delta-rs needs, and the one access key that it takes. Prints its port. Options:

    --takes-twice          it takes a second object where the client wants to put none
    --slow                 whoever races for a version has looked before the first one has it
    --first-waits          who is first to put where there is to be none waits, for FOLDER/.go

While there is a file .unreadable in FOLDER, no object is read whose URL has the text in it.
"""

import re
import sys
import time
import xml.etree.ElementTree as ET
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

import localbucket

WAIT = 0.5  # seconds
FIRST, RACE = Lock(), Lock()
TAKEN = list[str]()


class Handler(localbucket.S3Handler):  # type: ignore[misc]
    disable_nagle_algorithm = True  # or each answer waits for the acknowledgement of its header
    key = ""
    options: tuple[str, ...] = ()

    def _dispatch(self, action: Any) -> None:
        if "--slow" in self.options and self.headers["If-None-Match"]:
            time.sleep(WAIT)
        if "--first-waits" in self.options and self.headers["If-None-Match"]:
            self._wait_if_first()
        if "--takes-twice" in self.options and self.headers["If-None-Match"]:
            self._take_twice()
        if f"Credential={self.key}/" not in self.headers.get("Authorization", ""):
            action = self._refuse
        elif self.command == "GET" and self._is_unreadable():
            action = self._deny
        super()._dispatch(action)

    def _take_twice(self) -> None:
        with RACE:
            TAKEN.append(self.path)
            if TAKEN.count(self.path) <= 2:
                del self.headers["If-None-Match"]

    def _wait_if_first(self) -> None:
        """Whoever waits is told by a file .waits."""
        if FIRST.acquire(blocking=False):  # and never releases it
            (self.data_root / ".waits").touch()
            while not (self.data_root / ".go").exists():
                time.sleep(0.01)

    def _is_unreadable(self) -> bool:
        unreadable = self.data_root / ".unreadable"
        return unreadable.exists() and unreadable.read_text() in self.path.partition("?")[0]

    def _deny(self, *_: str) -> None:
        raise localbucket.S3Error(HTTPStatus.FORBIDDEN, "AccessDenied", "Access denied.")

    def _refuse(self, *_: str) -> None:
        self._read_body()
        unknown = "The AWS Access Key Id you provided does not exist in our records."
        raise localbucket.S3Error(HTTPStatus.FORBIDDEN, "InvalidAccessKeyId", unknown)

    def _post_request(self, bucket: str, key: str) -> None:
        if key or "delete" not in self.query:
            super()._post_request(bucket, key)
            return
        deleted = ET.Element("DeleteResult")
        for name in re.findall(rb"<Key>([^<]*)</Key>", self._read_body()):
            self._object_path(bucket, name.decode()).unlink(missing_ok=True)
            ET.SubElement(ET.SubElement(deleted, "Deleted"), "Key").text = name.decode()
        self._send_xml(deleted)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    folder, key, *options = sys.argv[1:]
    Handler.data_root, Handler.key, Handler.options = Path(folder), key, tuple(options)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

"""Asks Spark's web servers from within their own host: their ports are closed to all others."""

import ctypes
import json
import os
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self
from urllib.error import URLError

from cluster.network import Host

CLONE_NEWNET = 0x40000000  # a network namespace, for setns(2)
PATIENCE = 5.0  # seconds
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Within:
    """A thread of its own that has entered a host's network."""

    def __init__(self, host: Host, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._thread = ThreadPoolExecutor(1, initializer=_enter, initargs=(host.name,))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._thread.shutdown()

    def json(self, path: str) -> Any:
        """The answer; None while there is none."""
        return self._thread.submit(_ask, f"{self._url}{path}").result()


def _enter(name: str) -> None:
    """The calling thread alone."""
    namespace = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    finally:
        os.close(namespace)


def _ask(url: str) -> Any:
    try:
        with DIRECT.open(url, timeout=PATIENCE) as answer:
            return json.load(answer)
    except (URLError, OSError, ValueError):
        return None

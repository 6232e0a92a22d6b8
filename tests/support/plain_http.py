"""A client of a server on this machine. It reads no certificates: they would cost it 45 ms."""

from typing import Any

import httpx


def client(port: int, **options: Any) -> httpx.Client:
    """A client of plain HTTP, which the caller closes."""
    url = f"http://127.0.0.1:{port}"
    return httpx.Client(base_url=url, verify=False, **{"timeout": 30, **options})  # noqa: S501

"""JSON in which a decimal is a number with all of its digits, for Flask's `app.json`."""

from typing import Any

import msgspec
from flask.json.provider import JSONProvider


class ExactJson(JSONProvider):
    """Writes a decimal as a number, and a time as RFC 3339 has it."""

    _encoder = msgspec.json.Encoder(decimal_format="number")

    def dumps(self, obj: Any, **_: Any) -> str:
        return self._encoder.encode(obj).decode() + "\n"

    def loads(self, s: str | bytes, **_: Any) -> Any:
        return msgspec.json.decode(s)

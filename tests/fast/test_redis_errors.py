"""What Redis says is passed on under the name of the error, whatever redis-py makes of it."""

import pytest
import redis
from redis._parsers import BaseParser

from unified_log.errors import Refused
from unified_log.log import LogFull, naming_the_server
from unified_log.log.errors import ELSEWHERE, appending_errors

# Those that redis-py knows, and cuts off; and others.
NAMES = {*BaseParser.EXCEPTION_CLASSES, "MISCONF", "NOREPLICAS", "BUSY", "WRONGTYPE"} - {"ERR"}


@pytest.mark.parametrize("name", sorted(NAMES))
@pytest.mark.parametrize("asking", [naming_the_server, appending_errors])
def test_an_error_keeps_its_name(name: str, asking: type) -> None:
    words = "11437 127.0.0.1:6379" if name in ("MOVED", "ASK") else "as it happens"
    with pytest.raises((redis.RedisError, LogFull)) as raised, asking():
        raise BaseParser.parse_error(f"{name} {words}")  # type: ignore[no-untyped-call]
    said = str(raised.value)
    assert said.startswith("Redis")
    assert f"{name} {words}" in said or isinstance(raised.value, LogFull)
    assert isinstance(raised.value, Refused) == (name in ELSEWHERE)

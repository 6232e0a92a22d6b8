"""Appending to the log: a whole batch in one step, while the caller does something else."""

import pytest
import redis

from rocket_rides.log import LARGEST_ID, START, Log
from rocket_rides.terms import Term
from tests.support.world import World, eventually

pytestmark = pytest.mark.stream_servers

TERM = Term("0123456789abcdef", 0)
RECORDS = [(1, '{"id": 1, "distance": 5}'), (3, '{"id": 3, "distance": 0.001}')]


class Trouble(Exception):
    """What goes wrong in the meantime."""


def written(log: Log) -> list[list[bytes]]:
    return [entry.fields for entry in log.read(START, 10)]


def as_written(data: str, prev: int) -> list[bytes]:
    return [b"data", data.encode(), b"prev", b"%d" % prev, b"term", TERM.name.encode()]


CHAIN = [as_written(RECORDS[0][1], 0), as_written(RECORDS[1][1], 1)]


def test_a_batch_is_a_chain(world: World) -> None:
    log = world.log()
    log.append(RECORDS, 0, TERM)
    assert written(log) == CHAIN


def test_the_largest_ids_keep_every_digit(world: World) -> None:
    """Lua's numbers would not."""
    log = world.log()
    log.append([(LARGEST_ID - 1, "{}"), (LARGEST_ID, "{}")], LARGEST_ID - 2, TERM)
    assert [fields[3] for fields in written(log)] == [b"%d" % (LARGEST_ID - n) for n in (2, 1)]


def test_data_arrives_as_it_was_staged(world: World) -> None:
    data = '{"id": 1, "distance": 5, "name": "Zoë 🚀\\u0000 \\"quoted\\"\\r\\n"}'
    log = world.log()
    log.append([(1, data)], 0, TERM)
    assert written(log) == [as_written(data, 0)]


def test_redis_appends_while_the_caller_does_something_else(world: World) -> None:
    log, beside = world.log(), world.log()
    with log.appending(RECORDS, 0, TERM):
        eventually(lambda: written(beside) == CHAIN, "the batch in the log before the block ends")


def test_an_error_meanwhile_does_not_leave_the_answer_behind(world: World) -> None:
    """The next command on this connection would take it for its own."""
    log = world.log()
    with pytest.raises(Trouble), log.appending(RECORDS, 0, TERM):
        raise Trouble
    assert log.length() == 2


def test_an_error_meanwhile_goes_before_redis_own(world: World) -> None:
    log = world.log()
    log.redis.set(log.name, "no stream")
    with pytest.raises(Trouble), log.appending(RECORDS, 0, TERM):
        raise Trouble
    assert log.clock() > 0


def test_a_refusal_is_raised_when_the_block_ends(world: World) -> None:
    log = world.log()
    log.redis.set(log.name, "no stream")
    done = False
    refused = pytest.raises(redis.ResponseError, match="refuses to append to the log")
    with refused, log.appending(RECORDS, 0, TERM):
        done = True
    assert done


def test_a_server_that_forgot_the_script_gets_it_again_and_appends_once(world: World) -> None:
    log = world.log()
    log.redis.script_flush()
    with log.appending(RECORDS, 0, TERM):
        pass
    assert written(log) == CHAIN
    log.append([(4, "{}")], 3, TERM)
    assert log.length() == 3

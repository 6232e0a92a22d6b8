"""Appending to the log: a whole batch in one step, while the caller does something else."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from lab.chaos.proxy import Proxy
from tests.support.clusters import each_stream_server
from tests.support.entries import fields
from tests.support.world import World, eventually
from unified_log.log import LARGEST_ID, START, Log, Staged, packed
from unified_log.log.stream import APPEND
from unified_log.terms import Term

pytestmark = each_stream_server

TERM = Term("0123456789abcdef", 0)
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
# The second one has all that an encoding could spoil, and no trace; the last one's state is none.
RECORDS = [
    Staged(1, "ride.create", '{"id": 1}', TRACE, "a=1,b=2"),
    Staged(3, "Zoë.🚀", '{"id": 3, "name": "Zoë 🚀\\u0000 \\"quoted\\"\\r\\n"}', "a\r\nb", "a=1"),
    Staged(4, "ride.create", '{"id": 4}', TRACE, "a" * 10_000),
]


class Trouble(Exception):
    """What goes wrong in the meantime."""


def written(log: Log) -> list[list[bytes]]:
    return [entry.fields for entry in log.read(START, 10)]


CHAIN = [
    fields(record.position, record.data, prev, TERM.name, record.type) + trace
    for record, prev, trace in zip(
        RECORDS,
        (0, 1, 3),
        (
            [b"traceparent", TRACE.encode(), b"tracestate", b"a=1,b=2"],
            [],
            [b"traceparent", TRACE.encode()],
        ),
        strict=True,
    )
]


@pytest.mark.proves("chain")
def test_a_batch_is_a_chain(world: World) -> None:
    """Of data as it was staged, and of what is a trace; also where the script is forgotten."""
    log = world.log()
    log.redis.script_flush()
    log.append(RECORDS, 0, TERM)
    assert written(log) == CHAIN


def test_the_largest_ids_keep_every_digit(world: World) -> None:
    """Lua's numbers would not."""
    log = world.log()
    records = [Staged(LARGEST_ID - n, "ride.create", "{}") for n in (1, 0)]
    log.append(records, LARGEST_ID - 2, TERM)
    digits = [(position, prev) for _, position, *_, prev, _, _ in written(log)]
    before, last, largest = (b"%d" % (LARGEST_ID - n) for n in (2, 1, 0))
    assert digits == [(last, before), (largest, last)]


def test_redis_appends_while_the_caller_does_something_else(world: World) -> None:
    log, beside = world.log(), world.log()
    log.redis.script_load(APPEND)  # or it would be appended at the end of the block
    with log.appending(packed(RECORDS), 0, TERM):
        eventually(lambda: written(beside) == CHAIN, "the batch in the log before the block ends")


@pytest.mark.parametrize("refused", [False, True])
def test_an_error_meanwhile_goes_before_redis_own_and_does_not_leave_its_answer_behind(
    world: World, refused: bool
) -> None:
    """The next command on this connection would take it for its own."""
    log = world.log()
    if refused:
        log.redis.set(log.name, "no stream")
    with pytest.raises(Trouble), log.appending(packed(RECORDS), 0, TERM):
        raise Trouble
    if refused:
        assert log.clock() > 0
    else:
        assert written(log) == CHAIN


def test_a_refusal_is_raised_when_the_block_ends(world: World) -> None:
    log = world.log()
    log.redis.set(log.name, "no stream")
    done = False
    refused = pytest.raises(redis.ResponseError, match="refuses to append to the log")
    with refused, log.appending(packed(RECORDS), 0, TERM):
        done = True
    assert done


class LosesOneAnswer(Proxy):
    """And the connection with it; the next one is as good as any."""

    to_lose = 0

    @property
    def deaf(self) -> bool:
        lose, self.to_lose = self.to_lose > 0, 0
        return lose

    @deaf.setter
    def deaf(self, lose: bool) -> None:
        self.to_lose = int(lose)


def test_a_command_whose_answer_is_lost_is_not_sent_again(world: World) -> None:
    """Nor by redis-py: whoever sent it decides what to do, for it may have been carried out."""
    proxy = LosesOneAnswer(Path(urlsplit(world.redis.url).path))
    proxy.start()
    log = Log(f"redis://127.0.0.1:{proxy.port}", world.stream)
    log.clock()
    proxy.loses_answers = True
    with pytest.raises(redis.ConnectionError):
        log.command("XADD", world.stream, "*", "data", "once")
    proxy.stop()
    log.redis.close()
    assert written(world.log()) == [[b"data", b"once"]]


def test_a_wait_of_less_than_a_millisecond_ends(world: World) -> None:
    """For Redis, no milliseconds are a wait without an end."""
    with Log(world.redis.url, world.stream, timeout=0.5) as log:
        assert log.read(START, 1, 0.0001) == []

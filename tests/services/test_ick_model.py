"""The Ick in long random runs, beside a model, on both servers.

Two machines. In the first anybody does anything, and the Ick must do what the model in plain Python
does. The second knows nothing of how an Ick works: two producers dirty things, a consumer reserves,
works and commits, and crashes anywhere between. Nothing dirty may be forgotten; in the end all is
clean.
"""

import secrets
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from redis import Redis, ResponseError

from consumers.rollup.ick import Ick
from demo.embedded.servers import Redis as Server
from rocket_rides.log.names import ick_keys
from tests.support.ick_oracle import IckOracle, Pairs, in_order

pytestmark = pytest.mark.stream_servers

EXAMPLES = {"valkey": 50, "redis": 25}

# Few and close together, so that they meet.
members = st.sampled_from(["", "a", "b", "c", "d", "é", "🚀", "\0"])
scores = st.sampled_from([float("-inf"), -1.5, 0.0, 0.1, 0.3, 0.1 + 0.2, 7.0, float("inf")])
pairs = st.lists(st.tuples(scores | st.floats(allow_nan=False), members), max_size=6)
sizes = st.integers(0, 6) | st.just(10**6)


def flat(pairs: Pairs) -> list[float | str]:
    return [word for pair in pairs for word in pair]


class OnAServer(RuleBasedStateMachine):
    """What the machines share: a key of their own, and clients of every kind."""

    url: str

    def __init__(self) -> None:
        super().__init__()
        self.key = f"ick-{secrets.token_hex(8)}"
        self.producers = [Ick(self.client(protocol=2)), Ick(self.client(protocol=3))]
        self.consumer = Ick(self.client(protocol=3, decode_responses=True))
        self.look = self.client(protocol=2)

    def client(self, **options: Any) -> Redis:
        return Redis.from_url(self.url, retry=None, single_connection_client=True, **options)

    def teardown(self) -> None:
        self.look.delete(*ick_keys(self.key))
        for ick in *self.producers, self.consumer:
            ick.redis.close()
        self.look.close()


class Conformance(OnAServer):
    """Anybody does anything in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.model = IckOracle()

    def allowed(self, create: bool) -> bool:
        """Whether the model has the operation done; if not, the Ick must refuse it."""
        return create or self.model.there

    @rule(producer=st.integers(0, 1), pairs=pairs, create=st.booleans())
    def add(self, producer: int, pairs: Pairs, create: bool) -> None:
        ick, words = self.producers[producer], flat(pairs)
        if self.allowed(create):
            counts = ick.ickadd(self.key, *words, create=create)
            assert counts == self.model.add(pairs)
        else:
            with pytest.raises(ResponseError):
                ick.ickadd(self.key, *words, create=create)

    @rule(size=sizes, backwash=st.booleans(), create=st.booleans())
    def reserve(self, size: int, backwash: bool, create: bool) -> None:
        if self.allowed(create):
            reserved = self.consumer.ickreserve(self.key, size, backwash, create=create)
            assert reserved == self.model.reserve(size, backwash=backwash)
        else:
            with pytest.raises(ResponseError):
                self.consumer.ickreserve(self.key, size, backwash, create=create)

    @rule(some=st.lists(members, max_size=6), create=st.booleans())
    def commit(self, some: list[str], create: bool) -> None:
        if self.allowed(create):
            committed = self.consumer.ickcommit(self.key, *some, create=create)
            assert committed == self.model.commit(some)
        else:
            with pytest.raises(ResponseError):
                self.consumer.ickcommit(self.key, *some, create=create)

    @rule(size=sizes, some=st.lists(members, max_size=6), backwash=st.booleans())
    def exchange(self, size: int, some: list[str], backwash: bool) -> None:
        reserved = self.consumer.ickexchange(self.key, size, *some, backwash=backwash)
        self.model.commit(some)
        assert reserved == self.model.reserve(size, backwash=backwash)

    @rule(unlink=st.booleans(), really=st.integers(0, 3))
    def delete(self, unlink: bool, really: int) -> None:
        if really == 0:  # not too often
            delete = self.consumer.ickunlink if unlink else self.consumer.ickdel
            assert delete(self.key) == self.model.delete()

    @invariant()
    def both_hold_the_same(self) -> None:
        version, *sets = ick_keys(self.key)
        assert self.look.get(version) == (b"ick.v1" if self.model.there else None)
        for name, expected in zip(sets, (self.model.pset, self.model.cset), strict=True):
            held = self.look.zrange(name, 0, -1, withscores=True)
            assert held == [(member.encode(), score) for member, score in in_order(expected)]
        stats = self.consumer.ickstats(self.key)
        if stats is not None:
            assert [stats.pop(name) for name in ("key", "pset_key", "cset_key", "ver")] == [
                self.key,
                *sets,
                "ick.v1",
            ]
        assert stats == self.model.stats()


class Step(NamedTuple):
    """What the consumer does next, if it is the time for it."""

    crashes: bool
    size: int
    backwash: bool
    stops: bool  # after the commit, and does not reserve at once


consumers_steps = st.builds(
    Step, st.sampled_from([False] * 5 + [True]), st.integers(1, 4), st.booleans(), st.booleans()
)


class NothingIsForgotten(OnAServer):
    """One consumer, who keeps to the order, and may crash after each step.

    `changes` counts how often each thing became dirty, `seen` how many of these the finished work
    on it has seen; `since` is the lowest score that it was dirtied with since then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changes: dict[str, int] = {}
        self.seen: dict[str, int] = {}
        self.since: dict[str, float] = {}
        self.hand: list[str] | None = None  # what the consumer knows to be reserved
        self.work: dict[str, int] = {}  # what it has worked on, and the changes it saw
        self.before: dict[str, float | None] = {}  # their lowest scores before that

    @rule(producer=st.integers(0, 1), pairs=pairs, steps=st.lists(consumers_steps, max_size=3))
    def time_passes(self, producer: int, pairs: Pairs, steps: list[Step]) -> None:
        """One rule, since Hypothesis leaves out some of the rules in each example."""
        for score, member in pairs:
            self.changes[member] = self.changes.get(member, 0) + 1
            self.since[member] = min(score, self.since.get(member, score))
        self.producers[producer].ickadd(self.key, *flat(pairs))
        for step in steps:
            if step.crashes:
                self.crash()
            elif self.hand is None:
                self.took(self.consumer.ickreserve(self.key, step.size, step.backwash))
            elif not self.work:
                self.do_the_work(self.hand)
            else:
                self.commit(step)

    def took(self, reserved: list[tuple[str, float]]) -> None:
        """Only what is dirty, or was when a consumer crashed; each once, and in order."""
        self.hand, self.work = [member for member, _ in reserved], {}
        assert reserved == in_order(dict(reserved))
        assert set(self.hand) <= set(self.changes)

    def do_the_work(self, hand: list[str]) -> None:
        self.work = {member: self.changes[member] for member in hand}
        # From here on a change makes the thing dirty again.
        self.before = {member: self.since.pop(member, None) for member in hand}
        if not hand:
            self.hand = None

    def commit(self, step: Step) -> None:
        done, self.hand, self.work = self.work, None, {}
        self.seen |= done
        if step.stops:
            assert self.consumer.ickcommit(self.key, *done) == len(done)
        else:
            self.took(self.consumer.ickexchange(self.key, step.size, *done))

    def crash(self) -> None:
        """Whatever it had done, nobody knows of it."""
        for member in self.work:
            known = [self.before[member], self.since.get(member)]
            lowest = [score for score in known if score is not None]
            if lowest:
                self.since[member] = min(lowest)
        self.hand, self.work = None, {}
        self.consumer.redis.close()
        self.consumer = Ick(self.client(protocol=3, decode_responses=True))

    def waiting(self) -> dict[str, float]:
        """All that is in the Ick, each with its lowest score."""
        found: dict[str, float] = {}
        for name in ick_keys(self.key)[1:]:
            held: Any = self.look.zrange(name, 0, -1, withscores=True)
            for member, score in held:
                text = member.decode()
                found[text] = min(score, found.get(text, score))
        return found

    @invariant()
    def what_is_dirty_waits_with_its_lowest_score(self) -> None:
        waiting = self.waiting()
        for member, changes in self.changes.items():
            if changes > self.seen.get(member, 0):
                assert member in waiting
                assert waiting[member] <= self.since.get(member, float("inf"))

    def teardown(self) -> None:
        """One more consumer works until nothing is left."""
        try:
            reserved = self.consumer.ickreserve(self.key, 3)
            for _ in range(20):
                done = [member for member, _ in reserved]
                self.seen |= {member: self.changes[member] for member in done}
                reserved = self.consumer.ickexchange(self.key, 3, *done)
            assert self.waiting() == {}
            assert self.seen == self.changes
        finally:
            super().teardown()


@pytest.mark.parametrize("machine", [Conformance, NothingIsForgotten])
def test_whatever_is_done_in_whatever_order_an_ick_holds_what_it_must(
    machine: type[OnAServer], redis: Server, stream_server: str
) -> None:
    run_state_machine_as_test(
        type("OfThisTest", (machine,), {"url": redis.url}),
        settings=settings(
            max_examples=EXAMPLES[stream_server],
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )

"""The Ick in long random runs, beside a model.

Three machines. In `Conformance` anybody does anything, and the Ick must do what the model in plain
Python does. `NothingIsForgotten` knows nothing of how an Ick works: two producers dirty things, a
consumer reserves, works and commits, and crashes anywhere between. Nothing dirty may be forgotten;
in the end all is clean. In `Owned` something is lost, restored or added behind the owner's back.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from redis import Redis

from consumers.rollup.ick import Ick, IckLost, OwnedIck, writes_key
from demo.embedded.servers import Redis as Server
from rocket_rides.rollup import ick_keys
from tests.support.clusters import each_stream_server
from tests.support.ick_oracle import IckOracle, Pairs, in_order
from tests.support.icks import NOTHING, NewKeys, all_keys, contents, put_back
from tests.support.properties import briefly
from tests.support.world import PATIENCE

# Few and close together, so that they meet.
members = st.sampled_from(["", "a", "b", "c", "d", "é", "🚀", "\0"])
scores = st.sampled_from([float("-inf"), -1.5, 0.0, 0.1, 0.3, 0.1 + 0.2, 7.0, float("inf")])
pairs = st.lists(st.tuples(scores | st.floats(allow_nan=False), members), max_size=6)
sizes = st.integers(0, 6) | st.just(10**6)
some = st.lists(members, max_size=6)


def flat(pairs: Pairs) -> list[float | str]:
    return [word for pair in pairs for word in pair]


class OnAServer(RuleBasedStateMachine):
    """What the machines share: a key of their own, and clients of every kind."""

    url: str
    new = NewKeys()

    def __init__(self) -> None:
        super().__init__()
        self.key = self.new()
        self.producers = [Ick(self.client(protocol=2)), Ick(self.client(protocol=3))]
        self.consumer = Ick(self.client(protocol=3, decode_responses=True))
        self.look = self.client(protocol=2)

    def client(self, **options: Any) -> Redis:
        options |= {"single_connection_client": True, "socket_timeout": PATIENCE}
        return Redis.from_url(self.url, retry=None, **options)

    def is_as(self, model: IckOracle) -> None:
        version, *sets = ick_keys(self.key)
        assert self.look.get(version) == (b"ick.v1" if model.there else None)
        for name, expected in zip(sets, (model.pset, model.cset), strict=True):
            held = self.look.zrange(name, 0, -1, withscores=True)
            assert held == [(member.encode(), score) for member, score in in_order(expected)]

    def teardown(self) -> None:
        self.look.delete(*all_keys(self.key))
        for ick in *self.producers, self.consumer:
            ick.redis.close()
        self.look.close()


class Conformance(OnAServer):
    """Anybody does anything in any order, as a consumer that was superseded and commits late."""

    def __init__(self) -> None:
        super().__init__()
        self.model = IckOracle()

    @rule(producer=st.integers(0, 1), pairs=pairs)
    def add(self, producer: int, pairs: Pairs) -> None:
        counts = self.producers[producer].ickadd(self.key, *flat(pairs))
        assert counts == self.model.add(pairs)

    @rule(size=sizes, backwash=st.booleans())
    def reserve(self, size: int, backwash: bool) -> None:
        reserved = self.consumer.ickreserve(self.key, size, backwash)
        assert reserved == self.model.reserve(size, backwash=backwash)

    @rule(some=some)
    def commit(self, some: list[str]) -> None:
        assert self.consumer.ickcommit(self.key, *some) == self.model.commit(some)

    @rule(size=sizes, some=some, backwash=st.booleans())
    def exchange(self, size: int, some: list[str], backwash: bool) -> None:
        reserved = self.consumer.ickexchange(self.key, size, *some, backwash=backwash)
        self.model.commit(some)
        assert reserved == self.model.reserve(size, backwash=backwash)

    @rule(really=st.integers(0, 3))
    def delete(self, really: int) -> None:
        if really == 0:  # not too often
            assert self.consumer.ickdel(self.key) == self.model.delete()

    @invariant()
    def both_hold_the_same(self) -> None:
        self.is_as(self.model)
        stats = self.consumer.ickstats(self.key)
        if stats is not None:
            named = [stats.pop(name) for name in ("key", "pset_key", "cset_key", "ver")]
            assert named == [*ick_keys(self.key), "ick.v1"]
        assert stats == self.model.stats()


class Call(NamedTuple):
    """What the consumer does next, if it is the time for it."""

    crashes: bool
    size: int
    backwash: bool
    stops: bool  # after the commit, and does not reserve at once


consumers_steps = st.builds(
    Call, st.sampled_from([False] * 5 + [True]), st.integers(1, 4), st.booleans(), st.booleans()
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
    def time_passes(self, producer: int, pairs: Pairs, steps: list[Call]) -> None:
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

    def commit(self, step: Call) -> None:
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


class Behind(NamedTuple):
    """What happens behind the owner's back."""

    what: str
    keys: frozenset[int] = frozenset()  # that are lost, by their numbers
    age: int = 0  # of the state that is restored, in operations


behind = (
    st.builds(Behind, st.just("keys are lost"), st.frozensets(st.integers(0, 3), min_size=1))
    | st.builds(Behind, st.just("all is older"), age=st.integers(1, 12))
    | st.builds(Behind, st.sampled_from(["somebody adds", "somebody succeeds"]))
)
# What an owner may do next, each with whatever it takes.
operations = st.one_of(
    st.builds(lambda pairs: ("ickadd", flat(pairs)), pairs),
    st.builds(lambda *how: ("ickreserve", how), sizes, st.booleans()),
    st.builds(lambda some: ("ickcommit", some), some),
    st.builds(lambda size, some: ("ickexchange", [size, *some]), sizes, some),
    st.just(("ickstats", [])),
)


class Owned(OnAServer):
    """What its owner does is as in the model; each change behind its back is noticed at once."""

    def __init__(self) -> None:
        super().__init__()
        self.begin()

    def begin(self) -> None:
        self.owner = OwnedIck(self.consumer.redis)
        self.model = IckOracle()
        self.states = [NOTHING]  # after each operation, the newest last

    def operate(self, name: str, words: list[Any]) -> object:
        operation: Callable[..., object] = getattr(self.owner, name)
        return operation(self.key, *words)

    @rule(operation=operations)
    def the_owner_goes_on(self, operation: tuple[str, list[Any]]) -> None:
        name, words = operation
        found = self.operate(name, words)
        if name == "ickadd":
            assert found == self.model.add(list(zip(words[::2], words[1::2], strict=True)))
        elif name == "ickreserve":
            assert found == self.model.reserve(words[0], backwash=words[1])
        elif name == "ickcommit":
            assert found == self.model.commit(words)
        elif name == "ickexchange":
            self.model.commit(words[1:])
            assert found == self.model.reserve(words[0])
        self.is_as(self.model)
        self.states.append(contents(self.look, self.key))
        writes = int(self.look.get(writes_key(self.key)) or 0)
        assert writes == sum(a != b for a, b in zip(self.states, self.states[1:], strict=False))

    @rule(behind=behind, operation=operations, once_more=operations)
    def a_change_is_noticed(
        self,
        behind: Behind,
        operation: tuple[str, list[Any]],
        once_more: tuple[str, list[Any]],
    ) -> None:
        match behind.what:
            case "keys are lost":
                self.look.delete(*(all_keys(self.key)[number] for number in behind.keys))
            case "all is older":
                put_back(
                    self.look, self.key, self.states[max(0, len(self.states) - 1 - behind.age)]
                )
            case "somebody adds":
                self.producers[0].ickadd(self.key, 1, "theirs")
            case "somebody succeeds":
                OwnedIck(self.look).ickdel(self.key)
        changed = contents(self.look, self.key)
        if changed == self.states[-1]:
            return
        for name, words in operation, once_more:
            with pytest.raises(IckLost):
                self.operate(name, words)
            assert contents(self.look, self.key) == changed
        OwnedIck(self.look).ickdel(self.key)
        assert contents(self.look, self.key) == NOTHING
        self.begin()


@each_stream_server
@pytest.mark.parametrize("machine", [Conformance, NothingIsForgotten, Owned])
def test_whatever_is_done_in_whatever_order_an_ick_holds_what_it_must(
    machine: type[OnAServer], redis: Server
) -> None:
    run_state_machine_as_test(
        type("OfThisTest", (machine,), {"url": redis.url}),
        settings=settings(
            briefly,
            max_examples=15,
            stateful_step_count=30,
            phases=[Phase.generate, Phase.shrink],
        ),
    )

"""A program in Ruby, which knows the gem's protocol and not our code, works on the same Icks."""

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

import tests.support
from consumers.rollup.ick import Ick, IckLost, OwnedIck
from tests.support.clusters import each_stream_server
from tests.support.ick_oracle import IckOracle
from tests.support.ruby import RUBY, needs_ruby

PROGRAM = Path(tests.support.__file__).with_name("ick_neighbour.rb")


pytestmark = [each_stream_server, needs_ruby]


class Neighbour:
    """The program, with the operations of an Ick that it knows."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, *words: object) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps([str(word) for word in words]), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def ickadd(self, key: str, *pairs: float | str) -> tuple[int, int]:
        new, lowered = self.ask(key, "add", *pairs)
        return new, lowered

    def ickexchange(
        self, key: str, size: int, *members: str, backwash: bool = False
    ) -> list[tuple[str, float]]:
        _, flat = self.ask(key, "exchange", size, "backwash" if backwash else "", *members)
        return list(zip(flat[::2], map(float, flat[1::2]), strict=True))

    def ickcommit(self, key: str, *members: str) -> int:
        committed, _ = self.ask(key, "exchange", 0, "", *members)
        return int(committed)


@pytest.fixture
def ruby(client: Redis) -> Iterator[Neighbour]:
    socket = client.connection_pool.connection_kwargs["path"]
    command = [*RUBY, str(PROGRAM), socket]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield Neighbour(process)
        assert process.stdin
        process.stdin.close()  # it ends by itself
        assert process.wait() == 0


def test_what_one_program_adds_the_other_reserves_and_commits(
    client: Redis, ruby: Neighbour, key: str
) -> None:
    ours = Ick(client)
    for producer, consumer in (ruby, ours), (ours, ruby):
        assert producer.ickadd(key, 3, "c", 0.1 + 0.2, "ä", 7, "b", 2, "b") == (3, 1)
        assert consumer.ickexchange(key, 2) == [("ä", 0.1 + 0.2), ("b", 2.0)]
        assert producer.ickadd(key, 1, "b") == (1, 0)  # while it is reserved
        assert consumer.ickcommit(key, "ä", "b", "c") == 2
        assert consumer.ickexchange(key, 5) == [("b", 1.0), ("c", 3.0)]
        assert consumer.ickcommit(key, "b", "c") == 2
        assert ours.ickdel(key) == 1


def test_programs_that_take_turns_in_every_role_keep_one_ick(
    client: Redis, ruby: Neighbour, key: str
) -> None:
    either: list[Ick | Neighbour] = [Ick(client), ruby]
    model, chance = IckOracle(), random.Random(3)
    members = ["", "a", "b", "c", "d", "é", "🚀"]
    for _ in range(300):
        somebody = chance.choice(either)
        some = chance.sample(members, chance.randrange(4))
        size, backwash = chance.randrange(6), chance.random() < 0.3
        if chance.random() < 0.5:
            pairs = [(chance.choice([-1.5, 0.0, 0.1 + 0.2, chance.random()]), m) for m in some]
            found: object = somebody.ickadd(key, *(word for pair in pairs for word in pair))
            assert found == model.add(pairs)
        else:
            found = somebody.ickexchange(key, size, *some, backwash=backwash)
            model.commit(some)
            assert found == model.reserve(size, backwash=backwash)
        assert ruby.ask(key, "sizes") == [len(model.pset), len(model.cset)]


def test_the_other_program_may_look_at_an_owned_ick_but_not_add_to_it(
    client: Redis, ruby: Neighbour, key: str
) -> None:
    ick = OwnedIck(client)
    ick.ickadd(key, 1, "a", 2, "b")
    assert ruby.ask(key, "sizes") == [2, 0]
    assert ick.ickreserve(key, 1) == [("a", 1.0)]
    assert ruby.ickadd(key, 0, "theirs") == (1, 0)
    with pytest.raises(IckLost):
        ick.ickreserve(key, 1)

"""An Ick: a queue in Redis with two-phase commit and write-folding, after the gem Redis::Ick.

Producers add members with scores to the *producer set*. The consumer *reserves* the lowest of
them, which moves them to the *consumer set*, works on them, and *commits* them, which removes
them. Until then they are reserved again and again: a crash repeats work and loses none. A member
that is added again keeps its lowest score (this is the folding), so one that is added all the time
still gets its turn. One that is added while it is reserved is in both sets, since nobody knows
whether the work saw what made it dirty: it is reserved once more after the commit.

An Ick at `K` is three keys: `K` holds `ick.v1`; `K/ick/{K}/pset` and `K/ick/{K}/cset` are sorted
sets. In a cluster they share a slot if K has a hash tag, or is not empty and has no brace. Each
operation is one call of `ick.lua`, so one atomic step; if Redis refuses it, nothing has changed.
A full Redis refuses what makes an Ick or adds to it; reserving and committing go on.

The algorithm has hazards, which its users must avoid:

* It has one consumer, who commits only what was worked on since the *latest* reservation. To
  reserve once more before the commit, also with `backwash`, folds what was added meanwhile into
  the reservation, and the commit removes it undone.
* A commit names members, not a reservation, so a consumer that was replaced and wakes up can commit
  what its successor has reserved and not done.
* So can a command that is sent twice: `ickexchange` commits a member and reserves it again, the
  reply is lost, and the repetition commits it undone. redis-py repeats commands unless the client
  has `retry=None`. After a lost reply, begin with `ickreserve`.
* An Ick that was lost is made anew by the next operation, empty and without a word. With
  `create=False` that is refused; then one place makes it (`ickadd(key)`), and knows that it is new.
* Redis drops a sorted set that becomes empty, so one that was evicted or deleted alone looks like
  an empty one, even to `create=False`. `maxmemory-policy noeviction` never evicts. A consumer that
  commits all it has before it reserves can tell: nothing is folded then, so `total_size` is what
  was added less what was committed, and `cset_size` is the length of its reservation.
* Redis does nothing else meanwhile, and takes about a second to move 100,000 members.
"""

import hashlib
from pathlib import Path
from typing import Any

import redis
from redis.client import NEVER_DECODE

from rocket_rides.log.names import ick_keys

LUA = Path(__file__).with_name("ick.lua").read_text("ascii")
SHA = hashlib.sha1(LUA.encode(), usedforsecurity=False).hexdigest()  # Redis' name for the script

Reservation = list[tuple[str, float]]


class Ick:
    """The operations on Icks, over a client of Redis 6.2 or later, or of Valkey.

    All raise redis.RedisError: redis.ResponseError where the keys hold something else than an Ick
    of this version, or, with `create=False`, nothing. Wrong arguments raise TypeError or ValueError
    before anything is sent. Scores are doubles, exact in both directions: an int that no double
    equals is refused. Members and keys are str. The order is by score, then by the member's bytes.
    """

    def __init__(self, redis_client: redis.Redis) -> None:
        self.redis = redis_client

    def ickadd(self, key: str, *pairs: float | str, create: bool = True) -> tuple[int, int]:
        """Add score, member, score, member, ...; returns how many are new and how many got lower.

        Pairs count in turn: a member may be new by one and lower by the next. No pair at all makes
        the Ick.
        """
        if len(pairs) % 2:
            raise ValueError("scores and members come in pairs: score, member, score, member, ...")
        words = [
            _member(word) if i % 2 else _score(word)  # type: ignore[arg-type]
            for i, word in enumerate(pairs)
        ]
        added, lowered = self._call(key, "add", create, *words)
        return added, lowered

    def ickreserve(
        self, key: str, max_size: int = 0, backwash: bool = False, *, create: bool = True
    ) -> Reservation:
        """Fill the consumer set up to `max_size` from the lowest of the producer set; return it.

        What was reserved before stays reserved and counts, and the lowest `max_size` of all that is
        reserved are returned. With `backwash` it goes back to the producer set first.
        """
        return self.ickexchange(key, max_size, backwash=backwash, create=create)

    def ickcommit(self, key: str, *members: str, create: bool = True) -> int:
        """Remove members from the consumer set; returns how many were in it."""
        committed, _ = self._exchange(key, 0, members, False, create)
        return committed

    def ickexchange(
        self,
        key: str,
        reserve_size: int,
        *commit_members: str,
        backwash: bool = False,
        create: bool = True,
    ) -> Reservation:
        """`ickcommit`, then `ickreserve`, in one step; returns the reservation."""
        _, reservation = self._exchange(key, reserve_size, commit_members, backwash, create)
        return reservation

    def ickstats(self, key: str) -> dict[str, Any] | None:
        """The sizes, and the lowest and highest scores where there are any; None without an Ick."""
        reply = self._call(key, "stats", False)
        if reply is None:
            return None
        version, *measures = reply
        _, pset_key, cset_key = ick_keys(key)
        sizes = [size for size, *_ in measures]
        stats: dict[str, Any] = {
            "key": key,
            "pset_key": pset_key,
            "cset_key": cset_key,
            "ver": version.decode(),
            "pset_size": sizes[0],
            "cset_size": sizes[1],
            "total_size": sum(sizes),
        }
        in_pset, in_cset = ([float(score) for score in ends] for _, *ends in measures)
        for name, ends in ("pset", in_pset), ("cset", in_cset), ("total", in_pset + in_cset):
            if ends:
                stats |= {f"{name}_min": min(ends), f"{name}_max": max(ends)}
        return stats

    def ickdel(self, key: str) -> int:
        """Delete the Ick; returns how many keys went."""
        return int(self._call(key, "DEL", False))

    def ickunlink(self, key: str) -> int:
        """As `ickdel`, but Redis frees the memory in the background."""
        return int(self._call(key, "UNLINK", False))

    def _exchange(
        self, key: str, size: int, members: tuple[str, ...], backwash: bool, create: bool
    ) -> tuple[int, Reservation]:
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"a size is an int, not {size!r}")
        if size < 0:
            raise ValueError(f"a size is not negative: {size}")
        words = [_member(member) for member in members]
        how = "backwash" if backwash else "as it is"
        committed, flat = self._call(key, "exchange", create, size, how, *words)
        scores = map(float, flat[1::2])
        names = (member.decode() for member in flat[::2])
        return committed, list(zip(names, scores, strict=True))

    def _call(self, key: str, operation: str, create: bool, *words: bytes | str | int) -> Any:
        keys = [name.encode() for name in ick_keys(key)]
        tail = [len(keys), *keys, operation, "create" if create else "there", *words]
        options = {NEVER_DECODE: True}  # whatever the client decodes otherwise
        try:
            return self.redis.execute_command("EVALSHA", SHA, *tail, **options)  # type: ignore[no-untyped-call]
        except redis.exceptions.NoScriptError:  # the server was restarted, or never saw it
            return self.redis.execute_command("EVAL", LUA, *tail, **options)  # type: ignore[no-untyped-call]


def _score(score: float) -> str:
    if not isinstance(score, int | float) or isinstance(score, bool):
        raise TypeError(f"a score is an int or a float, not {score!r}")
    try:
        double = float(score)
    except OverflowError:
        raise ValueError("a score is too large for a double") from None
    if double != score:  # as NaN is not even to itself
        raise ValueError(f"no double is equal to the score {score}")
    return repr(double + 0.0)  # zero without a sign, which Redis keeps in large sets only


def _member(member: str) -> bytes:
    if not isinstance(member, str):
        raise TypeError(f"a member is a str, not {member!r}")
    return member.encode()

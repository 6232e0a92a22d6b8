"""An Ick: a queue in Redis with two-phase commit and write-folding, after the gem Redis::Ick.

Producers add members with scores to the *producer set*. The consumer *reserves* the lowest of them,
which moves them to the *consumer set*, works on them, and *commits* them, which removes them. Until
then they are reserved again and again, so a crash repeats work and loses none. A member that is
added again keeps its lowest score: that is the folding, and it keeps a member that is added all the
time from never being the lowest. One that is added while it is reserved is in both sets: whether
the work saw what made it dirty is not known, so it is reserved once more after the commit.

An Ick at `K` is three keys: `K` holds `ick.v1`; `K/ick/{K}/pset` and `K/ick/{K}/cset` are sorted
sets. In a cluster all three lie in one slot if K has a hash tag, or else no brace and any character.
Each operation is one call of `ick.lua`: one atomic step, and where Redis refuses it, nothing changed.

The algorithm has hazards of its own, and they are the caller's to avoid:

* There is one consumer, and it strictly reserves, works and commits. If it reserves more before it
  commits, a member that was added again meanwhile is folded into the reservation, and the commit
  removes that, too. A backwash before the commit is harmless for members still dirty; work on them is
  only repeated.
* Commits name members, not reservations: a stale consumer can commit what its successor reserved.
* So does a command that is sent twice: `ickexchange` commits, reserves a member that was added again,
  the reply is lost, and the second time it commits that. redis-py repeats commands by itself unless
  the client has `retry=None`; after a lost reply, begin with `ickreserve`.
* An Ick that was lost is made anew by the next operation, without a word, and empty. `create=False`
  refuses that (and so the one who makes the Ick is one place, which knows what belongs in it).
* Redis removes a sorted set that becomes empty, so one that was evicted or deleted alone looks like
  an empty one, and `create=False` does not notice. Who is the only user can: the sizes of `ickstats`
  change by what was added, committed, and folded, and by nothing else. A Redis with
  `maxmemory-policy noeviction` never evicts.
* Redis does nothing else meanwhile, and moving 100,000 members takes it about a second: reserve less.
"""

import math
from pathlib import Path
from typing import Any

import redis
from redis.client import NEVER_DECODE

VERSION = "ick.v1"
LUA = Path(__file__).with_name("ick.lua").read_text()

Reservation = list[tuple[str, float]]


class Ick:
    """The operations on Icks, over any client of Redis 6.2 or later, or Valkey.

    All raise redis.RedisError; redis.ResponseError where the keys hold something that is no Ick of
    this version, or with `create=False` no Ick at all. Wrong arguments raise TypeError or ValueError
    before anything is sent. Scores are doubles, exact in both directions; an int that no double is
    equal to is refused. Members and keys are str. The order is by score, then by the member's bytes.
    """

    def __init__(self, redis_client: redis.Redis) -> None:
        self.redis = redis_client
        self._sha = redis_client.register_script(LUA).sha

    def ickadd(self, key: str, *pairs: float | str, create: bool = True) -> tuple[int, int]:
        """Add score, member, score, member, ...; returns how many are new, and how many became lower.

        Both count the pairs in turn: a member may be new by one and lower by the next.
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

        What was reserved before counts and comes first, in that it stays reserved; returned are the
        lowest `max_size`. With `backwash` it goes back to the producer set first, so that all compete.
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
        _, pset_key, cset_key = keys_of(key)
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
        scores = [[float(score) for score in range_] for _, *range_ in measures]
        for name, of in zip(("pset", "cset", "total"), (*scores, sum(scores, [])), strict=True):
            if of:
                stats |= {f"{name}_min": min(of), f"{name}_max": max(of)}
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
        keys = [name.encode() for name in keys_of(key)]
        tail = [len(keys), *keys, operation, "create" if create else "there", *words]
        options = {NEVER_DECODE: True}  # whatever the client decodes otherwise
        try:
            return self.redis.execute_command("EVALSHA", self._sha, *tail, **options)  # type: ignore[no-untyped-call]
        except redis.exceptions.NoScriptError:  # the server was restarted, or never saw it
            return self.redis.execute_command("EVAL", LUA, *tail, **options)  # type: ignore[no-untyped-call]


def keys_of(key: str) -> tuple[str, str, str]:
    """The keys of the Ick at `key`: its version, the producer set, the consumer set."""
    if not isinstance(key, str):
        raise TypeError(f"a key is a str, not {key!r}")
    return key, f"{key}/ick/{{{key}}}/pset", f"{key}/ick/{{{key}}}/cset"


def _score(score: float) -> str:
    if not isinstance(score, int | float) or isinstance(score, bool):
        raise TypeError(f"a score is an int or a float, not {score!r}")
    try:
        double = float(score)
    except OverflowError:
        raise ValueError("a score is too large for a double") from None
    if math.isnan(double):
        raise ValueError("a score is not NaN")
    if double != score:
        raise ValueError(f"no double is equal to the score {score}")
    return repr(double + 0.0)  # zero without a sign, which Redis keeps in large sets only


def _member(member: str) -> bytes:
    if not isinstance(member, str):
        raise TypeError(f"a member is a str, not {member!r}")
    return member.encode()

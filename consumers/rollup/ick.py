"""An Ick: a queue in Redis that folds writes and commits in two phases.

The pattern is that of the Ruby gem Redis::Ick (https://github.com/ProsperWorks/redis-ick), with its
six operations and its three keys: programs that use the gem can work on the same Ick.

It is for things that become dirty, often many times before somebody gets to them, and must be
worked on at least once after the last time. Producers add members, each with a score, to the
*producer set*. A member that is added again keeps its lower score, so many additions fold into
one, and a member that is added all the time still gets its turn. The consumer *reserves* the
members with the lowest scores, which moves them to the *consumer set*; it works on them; it
*commits* them, which removes them. What is reserved and not committed is reserved again: a crash
repeats work and loses none. A member that is added while it is reserved is in both sets, and is
reserved once more after the commit, since the work may have begun before the addition.

The Ick at `K` is three keys: `K` holds the version, `ick.v1`; `K/ick/{K}/pset` and `K/ick/{K}/cset`
are sorted sets. In a cluster they share a slot if K has a hash tag, or no brace and is not empty.
Each operation is one call of `ick.lua`, done whole or refused whole. A full Redis refuses
additions; reservations and commits go on.

Hazards:

* There is one consumer, and it commits only what it worked on since its *latest* reservation. Each
  reservation, also one with `backwash`, may take in what was added to a reserved member meanwhile;
  a commit of work that began before it loses that addition.
* A commit names members, not a reservation. A consumer that was superseded and commits late removes
  what its successor has reserved and not worked on.
* A call that is sent twice can lose work: `ickexchange` commits a member and reserves it again, the
  reply is lost, and the second call commits it. redis-py sends again unless the client has
  `retry=None`. After a lost reply, begin with `ickreserve`.
* Redis can lose an Ick, or one of its sets, and an Ick looks the same when it is empty: the next
  operation makes it anew without an error. `OwnedIck` notices.
* Redis does nothing else during a call: about a second for 100,000 members.
"""

import hashlib
import threading
from pathlib import Path
from typing import Any

import redis
from redis.client import NEVER_DECODE

from rocket_rides.rollup import ick_keys

LUA = Path(__file__).with_name("ick.lua").read_text("ascii")
SHA = hashlib.sha1(LUA.encode(), usedforsecurity=False).hexdigest()  # Redis' name for the script

ABSENT = b"none 0 0 0"  # the state of an Ick that is not there

Reservation = list[tuple[str, float]]


class IckLost(redis.ResponseError):
    """The Ick at this key is not as we left it, or we can't know how we left it."""

    def __init__(self, ick_key: str) -> None:
        super().__init__(f"the Ick at {ick_key} is not as we left it")


def writes_key(ick_key: str) -> str:
    """The key at which an owned Ick counts the operations that wrote."""
    return f"{ick_key}/ick/{{{ick_key}}}/writes"


class Ick:
    """The operations on Icks, over a client of Redis 6.2 or later, or of Valkey.

    All raise redis.RedisError; redis.ResponseError where the keys hold something that is no Ick of
    this version. Wrong arguments raise TypeError or ValueError, and nothing is sent. Keys and
    members are str. Scores are doubles, and exact: an int that no double equals is refused. The
    order is by score, then by the member's bytes. Every operation but `ickstats` and `ickdel` makes
    the Ick where there is none.
    """

    def __init__(self, redis_client: redis.Redis) -> None:
        self.redis = redis_client

    def ickadd(self, ick_key: str, *score_member_pairs: float | str) -> tuple[int, int]:
        """Add score, member, score, member, ...; returns how many are new and how many got lower.

        The pairs count one after the other: a member may be new by one and lower by the next.
        """
        if len(score_member_pairs) % 2:
            raise ValueError("scores and members come in pairs: score, member, score, member, ...")
        words = [
            _member(word) if i % 2 else _score(word)  # type: ignore[arg-type]
            for i, word in enumerate(score_member_pairs)
        ]
        added, lowered = self._call(ick_key, "add", *words)
        return added, lowered

    def ickreserve(self, ick_key: str, max_size: int = 0, backwash: bool = False) -> Reservation:
        """Fill the consumer set up to `max_size` from the lowest of the producer set.

        Returns the lowest `max_size` of the consumer set, which keeps what was reserved before.
        With `backwash` that goes back to the producer set first, so the lowest of all come.
        """
        return self.ickexchange(ick_key, max_size, backwash=backwash)

    def ickcommit(self, ick_key: str, *members: str) -> int:
        """Remove members from the consumer set; returns how many were in it."""
        committed, _ = self._exchange(ick_key, 0, members, backwash=False)
        return committed

    def ickexchange(
        self, ick_key: str, reserve_size: int, *commit_members: str, backwash: bool = False
    ) -> Reservation:
        """`ickcommit`, then `ickreserve`, in one step; returns the reservation."""
        _, reservation = self._exchange(ick_key, reserve_size, commit_members, backwash)
        return reservation

    def ickstats(self, ick_key: str) -> dict[str, Any] | None:
        """The sizes, and the lowest and highest scores where there are any; None without an Ick."""
        reply = self._call(ick_key, "stats")
        if reply is None:
            return None
        (pset_size, *pset), (cset_size, *cset) = reply
        _, pset_key, cset_key = ick_keys(ick_key)
        stats = {
            "key": ick_key,
            "pset_key": pset_key,
            "cset_key": cset_key,
            "ver": "ick.v1",
            "pset_size": pset_size,
            "cset_size": cset_size,
            "total_size": pset_size + cset_size,
        }
        for name, ends in ("pset", pset), ("cset", cset), ("total", pset + cset):
            if scores := [float(score) for score in ends]:
                stats |= {f"{name}_min": min(scores), f"{name}_max": max(scores)}
        return stats

    def ickdel(self, ick_key: str) -> int:
        """Delete the Ick; returns how many keys went. Redis frees the memory in the background."""
        return int(self._call(ick_key, "delete"))

    def _exchange(
        self, ick_key: str, size: int, members: tuple[str, ...], backwash: bool
    ) -> tuple[int, Reservation]:
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"a size is an int, not {size!r}")
        if size < 0:
            raise ValueError(f"a size is not negative: {size}")
        words = [_member(member) for member in members]
        how = "backwash" if backwash else "keep"
        committed, flat = self._call(ick_key, "exchange", size, how, *words)
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return committed, [(member.decode(), float(score)) for member, score in pairs]

    def _call(self, ick_key: str, operation: str, *words: bytes | str | int) -> Any:
        result, _ = self._run(ick_keys(ick_key), operation, b"", *words)
        return result

    def _run(self, keys: tuple[str, ...], *words: bytes | str | int) -> Any:
        """One call of the script; returns its result and the state that it leaves."""
        tail = [len(keys), *(key.encode() for key in keys), *words]
        options = {NEVER_DECODE: True}  # whatever the client decodes otherwise
        try:
            return self.redis.execute_command("EVALSHA", SHA, *tail, **options)  # type: ignore[no-untyped-call]
        except redis.exceptions.NoScriptError:  # the server was restarted, or never saw it
            return self.redis.execute_command("EVAL", LUA, *tail, **options)  # type: ignore[no-untyped-call]


class OwnedIck(Ick):
    """The operations for the only process that writes to its Icks; threads may share it.

    It remembers how each operation left the Ick, and the next one is refused whole, with IckLost,
    unless the Ick is still so. That shows the loss of a key, an older state that was restored, and
    what another client added. (Another client may exchange members and leave both sizes as they
    were: this does not show, and no member is lost by it.) `K/ick/{K}/writes` counts the operations
    that changed something. An Ick that this object has not used yet must not be there.

    When an operation fails, it may have been done or not, so each later one on that Ick raises
    IckLost: begin with another key. A key is never used twice, or whoever used it before might take
    the new Ick for its own. `ickdel` checks nothing and deletes the count, too, so that a successor
    can delete what its predecessor left; `Ick.ickdel` would leave the count.
    """

    def __init__(self, redis_client: redis.Redis) -> None:
        super().__init__(redis_client)
        self._lock = threading.Lock()
        self._left: dict[str, bytes | None] = {}  # as the script says it; None: unknown

    def size(self, ick_key: str) -> int:
        """How many members both sets have, as the last operation left them. Asks nobody."""
        with self._lock:  # until an operation under way has ended
            left = self._left.get(ick_key, ABSENT)
        if left is None:
            raise IckLost(ick_key)
        return sum(map(int, left.split()[2:]))

    def _call(self, ick_key: str, operation: str, *words: bytes | str | int) -> Any:
        keys = *ick_keys(ick_key), writes_key(ick_key)
        with self._lock:
            expected = self._left.get(ick_key, ABSENT)
            if operation == "delete":
                expected = b""
            elif expected is None:
                raise IckLost(ick_key)
            self._left[ick_key] = None  # until the reply is here
            try:
                result, left = self._run(keys, operation, expected, *words)
            except redis.ResponseError as error:
                if str(error).startswith("ICKLOST"):
                    raise IckLost(ick_key) from None
                raise
            if operation != "delete":  # else a thread that has not heard of it would begin anew
                self._left[ick_key] = left
            return result


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

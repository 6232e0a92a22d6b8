"""Which blocks of the warehouse a run compares with Postgres once more.

Always: the newest one, which is not full yet; those in which a total stands; those of which the
last run found something. Then eight at random, so that nobody knows which; and in rotation those at
which nobody has looked for longest, as many as bring all round within REREAD_DAYS. Each block says
when it was looked at, so there is no cursor that could be lost, or be set.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from analytics.ledger import Block, Ledger

AT_RANDOM = 8
MOST = 10  # in rotation at most one in so many rides, however long the last run is ago


def chosen(
    known: Ledger,
    marks: Sequence[int],
    findings: Sequence[Mapping[str, Any]],
    days_ago: float,
    reread_days: int,
    chance: random.Random,
) -> list[Block]:
    """The blocks to compare, in order. `days_ago` is when the last run was."""
    if not known.blocks:
        return []
    first = known.blocks[0].first
    always = known.blocks[-1:]
    always += [known.block_of(mark) for mark in marks if first <= mark <= known.position]
    found = set[Block]()
    for finding in findings:
        if finding.get("after") is not None:
            found |= {*known.within(finding["after"], finding["upto"])}
    some = chance.sample(known.blocks, min(AT_RANDOM, len(known.blocks)))
    due = in_rotation(known, days_ago / reread_days, found)
    return sorted({*always, *found, *some, *due}, key=lambda block: block.upto)


def in_rotation(known: Ledger, share: float, found: Collection[Block] = ()) -> list[Block]:
    """The blocks at which nobody has looked for longest: this share of all rides, one at least.

    Not those of which something was `found`: they are read anyway, and would come first each time.
    """
    wanted = known.total.rides * min(share, 1 / MOST)
    blocks, rides = [], 0
    for block in sorted(known.blocks, key=lambda block: (block.looked_at, block.after)):
        if block in found:
            continue
        blocks.append(block)
        rides += block.rides
        if rides >= wanted:
            break
    return blocks


def elapsed(since: datetime | None, now: datetime) -> float:
    """Days since the last run; a first one counts as a day after it."""
    return 1.0 if since is None else max((now - since).total_seconds() / 86_400, 0.0)

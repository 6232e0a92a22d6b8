"""What the terminal and the page say alike: numbers as people read them, and the sentences.

Mind the context: Python's `-d` and `abs(d)` round a Decimal to 28 digits, and totals have 38.
Formatting does not round, nor do `copy_abs` and `copy_negate`.
"""

from decimal import Decimal

from analytics.result import Compared, Result

REBUILD = "python -m analytics.reconcile --full"


def metres(distance: Decimal) -> str:
    """A distance with all its digits: 1,234.500."""
    return f"{distance:,.3f}"


def signed(drift: Decimal) -> str:
    """A difference of distances: +0.001, -1,234.500, and 0.000 for none."""
    return f"{drift:+,.3f}" if drift else "0.000"


def count(number: int, noun: str) -> str:
    """1 ride, 2,000 rides."""
    return f"{number:,} {noun}" if number in (1, -1) else f"{number:,} {noun}s"


def printable(name: str) -> str:
    """A consumer's name, which is anybody's string, without what moves a terminal's cursor."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


def outcome(result: Result, consumer: Compared) -> str:
    """What a consumer's comparison came to, and what follows."""
    if not consumer.wrong:
        return "agrees"
    what = "stands past every ride sent" if consumer.stray else "wrong"
    if consumer.name in result.resets:
        return f"{what}: reset asked for"
    if consumer.stray:
        return what  # there is no exact total up to a ride that was never sent
    return "wrong: not repaired" if result.repairing else "wrong: not repaired (--check)"


def consequence(result: Result) -> str:
    """What follows from a warehouse that differs from Postgres; a colon wants REBUILD after it."""
    if result.rebuilt:
        return "Postgres is the truth: the warehouse has been rebuilt from it."
    return "Postgres is the truth; no resets were issued. Rebuild the warehouse from it:"


def verdict(result: Result) -> str:
    """The whole run in one sentence."""
    total, wrong = len(result.consumers), [c for c in result.consumers if c.wrong]
    reset = sum(consumer.name in result.resets for consumer in wrong)
    whose = f"{len(wrong)} of {total} consumers" if total > 1 else "the only consumer"
    are, were = ("is", "was") if len(wrong) == 1 else ("are", "were")
    if result.rebuilt:
        said = "the warehouse and Postgres disagreed: it has been rebuilt."
        if wrong:
            said = f"{said[:-1]}, and {whose} {were} wrong and will be reset."
    elif result.mismatches and wrong:
        said = (
            f"the warehouse and Postgres disagree, and {whose} {are} wrong: nothing was repaired."
        )
    elif result.mismatches:
        said = "the warehouse and Postgres disagree: nothing was repaired."
    elif not wrong:
        said = "all totals agree." if total else "there is no consumer to compare."
    elif reset == len(wrong):
        said = f"{whose} {were} wrong and will be reset."
    elif not result.repairing:
        said = f"{whose} {are} wrong; nothing was repaired (--check)."
    else:
        will = f"{reset} of them will be reset" if reset else "none will be reset"
        said = f"{whose} {are} wrong; {will}."
    return said[0].upper() + said[1:]

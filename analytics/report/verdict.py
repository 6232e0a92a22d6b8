"""The outcome of a run, in sentences that the terminal and the page share."""

from analytics.result import Compared, Result

REBUILD = "python -m analytics.reconcile --full"


def outcome(result: Result, consumer: Compared) -> str:
    """The outcome of a consumer's comparison, and what happens next."""
    if not consumer.wrong:
        return "agrees"
    what = "stands past every record sent" if consumer.stray else "wrong"
    if consumer.name in result.resets:
        return f"{what}: reset requested"
    if consumer.stray:
        return what  # there is no exact total up to a record that was never sent
    return "wrong: not repaired" if result.repairing else "wrong: not repaired (--check)"


def consequence(result: Result) -> str:
    """What follows from a mismatch with Postgres. If that ends in a colon, REBUILD comes next."""
    if result.rebuilt:
        return "Postgres is right: the warehouse was rebuilt from it."
    return "Postgres is right; no resets were requested. Rebuild the warehouse from it:"


def verdict(result: Result, *clauses: str) -> str:
    """The whole run in one sentence, which ends with the `clauses` on all but the totals."""
    total, wrong = len(result.consumers), [c for c in result.consumers if c.wrong]
    reset = sum(consumer.name in result.resets for consumer in wrong)
    whose = f"{len(wrong)} of {total} consumers" if total > 1 else "the only consumer"
    are, were = ("is", "was") if len(wrong) == 1 else ("are", "were")
    if result.rebuilt:
        sentence = "the warehouse disagreed with Postgres and was rebuilt."
        if wrong:
            sentence = f"{sentence[:-1]}, and {whose} {were} wrong and will be reset."
    elif result.mismatches and wrong:
        sentence = (
            f"the warehouse and Postgres disagree, and {whose} {are} wrong: nothing was repaired."
        )
    elif result.mismatches:
        sentence = "the warehouse and Postgres disagree: nothing was repaired."
    elif not wrong:
        sentence = "all totals agree." if total else "there is no consumer to compare."
    elif reset == len(wrong):
        sentence = f"{whose} {were} wrong and will be reset."
    elif not result.repairing:
        sentence = f"{whose} {are} wrong; nothing was repaired (--check)."
    else:
        will = f"{reset} of them will be reset" if reset else "none will be reset"
        sentence = f"{whose} {are} wrong; {will}."
    sentence = "; ".join([sentence[:-1], *clauses]) + "."
    return sentence[0].upper() + sentence[1:]

"""Mutants of closings: who begins at them, what is refused, what a run compares."""

from functools import partial

from tests.mutants.mutant import Mutant

total = partial(Mutant, file="consumers/totals/total.py", tests="services/test_closings.py")
closing = partial(Mutant, file="consumers/totals/closing.py", tests="services/test_closings.py")
REOPENED = "services/test_closings_reopened.py"
schema = partial(Mutant, file="migrations/versions/0011_closings.sql", tests=REOPENED)
closings = partial(Mutant, file="analytics/closings.py", tests="fast/test_closings_compared.py")
balances = partial(Mutant, file="analytics/balances.py", tests="fast/test_closings_compared.py")
ALL_REASONS = (
    "analytics/test_closing.py::test_only_what_is_right_and_old_and_past_what_is_closed_is_closed"
)
HELD = (
    "analytics/test_closings_proved.py::"
    "test_once_an_altered_ride_is_approved_its_closing_is_named_and_held"
)
sentences = partial(Mutant, file="analytics/report/sentences.py", tests="fast/test_report.py")
closable = partial(Mutant, file="analytics/closable.py", tests="services/test_closable.py")
LOCKS = """    if one_row(connection.execute(LOCK, [Lock.CLOSINGS])) != (True,):
        raise Unavailable("closings are being reopened")"""
LOOKS_AGAIN = "    row = connection.execute(NEWEST, [after, upto]).fetchone()"

MUTANTS = [
    closing(
        "a total begins at a closing that was reopened",
        "WHERE reopened_at IS NULL AND position > %s",
        "WHERE position > %s",
        tests=REOPENED,
    ),
    closing(
        "a total looks for the last time before it has the lock",
        f"{LOCKS}\n{LOOKS_AGAIN}",
        f"{LOOKS_AGAIN}\n{LOCKS}",
        tests=f"{REOPENED}::test_a_closing_that_was_reopened_is_not_used",
    ),
    closing(
        "a total begins at a closing that was altered",
        "AND hash = closing_hash(closings)",
        "AND hash <> ''",
        tests=REOPENED,
    ),
    closing(
        "a total may begin while closings are reopened",
        "SELECT pg_try_advisory_xact_lock_shared(%s)",
        "SELECT %s > 0",
        tests=REOPENED,
    ),
    closing(
        "a new total reads all rides",
        "return Closing(*row) if row else None",
        "return None",
        tests="services/test_closings.py::"
        "test_a_new_total_reads_few_rides_before_its_first_new_one",
    ),
    closing(
        "a total begins at the oldest closing",
        "ORDER BY position DESC",
        "ORDER BY position",
    ),
    total(
        "a total that has drifted becomes right unseen",
        "         = (proven.rides + since.rides, proven.total_distance + since.distance)",
        "         <= (proven.rides + since.rides, proven.total_distance + since.distance)",
    ),
    total(
        "a closing in a gap relies on what a total remembers",
        "(state.rides, state.total_distance) = (%(rides)s, %(distance)s)",
        "%(rides)s >= 0 AND %(distance)s >= 0",
    ),
    total(
        "whether a total is right is seen from the first ride on",
        "FROM reconciliations WHERE position <= %(after)s",
        "FROM reconciliations WHERE position < %(after)s - %(after)s",
    ),
    total(
        "what a total had counted counts again",
        "rides += closing.rides - self.rides",
        "rides += closing.rides",
    ),
    Mutant(
        "a consumer that joins begins at the first record",
        "self.checkpoint.begin_at(closed)",
        "pass",
        "unified_log/readers/taking.py",
        "services/test_closings.py",
    ),
    schema(
        "a repair leaves the closing that ends with its record",
        "WHERE position >= ride_id AND",
        "WHERE position > ride_id AND",
    ),
    schema(
        "a closing can be changed",
        "BEFORE UPDATE OR DELETE ON closings",
        "BEFORE DELETE ON closings",
    ),
    closings("nobody asks for a closing's own hash", "if not row.has_its_hash:", "if False:"),
    closings("a chain may be broken", "elif row.previous != before:", "elif False:"),
    closings(
        "a run compares the closing that was inserted last",
        "sorted(of, key=lambda closing: closing.position)",
        "list(of)",
    ),
    closings(
        "a closing that is given up is held",
        "now.hash != was.hash and not now.reopened",
        "now.hash != was.hash",
    ),
    closings("a closing may be gone", "for was in known:", "for was in ():"),
    closings(
        "a period's digest is of its sums",
        'f"{number} {each}\\n" for number, each in parts',
        'f"{number}\\n" for number, each in parts',
    ),
    balances(
        "a closing that differs agrees",
        "AGREES if balance == closings.says(each) else DIFFERS",
        "AGREES if balance else DIFFERS",
        tests=HELD,
    ),
    balances(
        "only a closing's sums are compared",
        "if balance == closings.says(each)",
        "if balance.tally == closings.says(each).tally",
    ),
    balances(
        "what a run has seen of closings is forgotten by the next",
        "{**before, **new, **reopened}",
        "{**before, **now}",
    ),
    balances(
        "an approval is for whatever a closing is altered to",
        'f"{number} {what} {now}"',
        'f"{number} {what}"',
    ),
    Mutant(
        "a closing that is broken can be approved",
        "kind = CLOSING_WRONG if is_broken else CLOSING_CHANGED",
        "kind = CLOSING_CHANGED",
        "analytics/balances.py",
        "fast/test_closings_compared.py::test_a_row_that_is_not_what_it_was_is_held",
    ),
    closable(
        "a period is closed that no total was compared with",
        "if stood and max(stood) < position:",
        "if stood and max(stood) < 0:",
    ),
    closable(
        "what is found need not be decided before a close",
        '        raise Unavailable(f"run {last.id} has found',
        '        return last\n        raise Unavailable(f"run {last.id} has found',
    ),
    closable("a period may be closed past a reader", "if at < position:", "if at < 0:"),
    closable(
        "a period that clients may repeat is closed",
        "if ends > now - timedelta(days=days):",
        "if ends > now + timedelta(days=days):",
    ),
    closable(
        "a period may be closed twice",
        "position <= last.position",
        "position < last.position",
    ),
    Mutant(
        "a period has the first ride of the next day",
        "return min(later) - 1 if",
        "return min(later) if",
        "analytics/upto.py",
        "services/test_closable.py",
    ),
    sentences(
        "a closing that is gone may be reopened",
        "doubted & {each.id for each in result.closings}",
        "doubted",
    ),
    sentences(
        "of several closings the last is to be reopened",
        "_reopening(min(closings))",
        "_reopening(max(closings))",
    ),
    Mutant(
        "a ride that differs is closed",
        "if look.postgres != look.warehouse:",
        "if False:",
        "analytics/closing.py",
        ALL_REASONS,
    ),
    Mutant(
        "earlier closings are reopened, too",
        "WHERE id >= %s AND reopened_at IS NULL",
        "WHERE %s > 0 AND reopened_at IS NULL",
        "analytics/close.py",
        f"{REOPENED}::test_a_closing_is_reopened_with_all_later_ones_and_no_earlier_one",
    ),
]

"""Mutants of the judge: who is right, what is held, who is missed, and what is read once more."""

from functools import partial

from tests.mutants.mutant import Mutant

votes = partial(Mutant, file="analytics/votes.py", tests="fast/test_votes.py")
judgement = partial(Mutant, file="analytics/judgement.py", tests="analytics/test_rides_changed.py")
records = partial(
    Mutant,
    file="analytics/judgement.py",
    tests="analytics/test_readers_missing.py::test_a_record_that_was_sent_and_has_no_row_is_missed",
)
readers = partial(Mutant, file="analytics/readers.py", tests="services/test_readers_missing.py")
rotation = partial(Mutant, file="analytics/rotation.py", tests="fast/test_rotation.py")
rows = partial(Mutant, file="analytics/rows.py", tests="fast/test_rows.py")
findings = partial(Mutant, file="analytics/findings.py", tests="fast/test_findings.py")

MUTANTS = [
    votes(
        "Postgres decides where nobody else does",
        "decided.pop() if len(decided) == 1 else Right.NOBODY",
        "decided.pop() if len(decided) == 1 else Right.POSTGRES",
    ),
    votes(
        "the ledger has no vote beside a total",
        "if said[after] in (Right.POSTGRES, Right.WAREHOUSE):",
        "if False:",
        tests="fast/test_votes.py::test_a_change_of_fresh_rides_hides_none_of_old_ones",
    ),
    votes(
        "a ledger that is like neither copy is outvoted",
        "if votes and not (proven.get(after) and said[after] is Right.NOBODY):",
        "if votes:",
    ),
    votes(
        "no total has a vote",
        "            if position > after and",
        "            if False and",
    ),
    votes(
        "a total votes by its metres alone",
        "if sums.upto(one.position, of_warehouse) == has:",
        "if sums.upto(one.position, of_warehouse)[1] == has[1]:",
    ),
    votes(
        "totals are reset because Postgres says so",
        "max(each.position, reset_to) <= confirmed for each",
        "True for each",
    ),
    judgement(
        "a reset takes in rides that nobody confirms",
        "self._counted, self.confirmed, self.frozen.position)",
        "self._counted, self.confirmed)",
        tests="analytics/test_fresh_rides.py::test_a_reset_takes_in_no_ride_that_nobody_confirms",
    ),
    judgement(
        "totals are compared with what is held as Postgres has it",
        "[look.after for look in self.held_looks if look.after < position]",
        "[]",
        tests="analytics/test_witnesses.py::"
        "test_a_total_is_reset_below_a_held_block_and_not_above_it",
    ),
    votes(
        "the judge is never suspect",
        "if suspect and any(",
        "if False and any(",
    ),
    votes(
        "rides that are held count twice",
        "            parts.append(_negative(_upto(look.of_postgres, position)))\n",
        "",
    ),
    judgement(
        "what was copied from Postgres is a witness",
        "known = proven if self._remembers else 0",
        "known = self.evidence.known.extent",
        tests="analytics/test_fresh_rides.py",
    ),
    judgement(
        "rides that are held are replaced in full",
        "replaced = self.evidence.known.everything and self.held_looks",
        "replaced = False",
        tests="analytics/test_rides_changed.py::"
        "test_rides_that_were_changed_in_postgres_are_named_and_held_and_nothing_is_repaired",
    ),
    judgement(
        "rides that were held are forgotten with the warehouse",
        "if self.approved or known.is_witness or known.is_proven or not self.last:",
        "if True:",
        tests="analytics/test_warehouse_lost.py::"
        "test_rides_that_are_held_stay_so_without_a_warehouse_until_they_are_approved",
    ),
    Mutant(
        "minutes that were held are forgotten",
        'days |= {date.fromisoformat(day) for day in finding.get("days", ())}',
        "days |= set[date]()",
        "analytics/case.py",
        "analytics/test_minutes_held.py::"
        "test_a_wrong_minute_of_rides_that_are_held_is_found_once_they_were_put_back",
    ),
    Mutant(
        "a consumer below a block whose ratings were changed is for the change",
        "return at >= rated.upto and not lacks and exact(at) == claim",
        "return not lacks and exact(at) == claim",
        "analytics/proofs/ratings.py",
        "analytics/test_ratings_changed.py::"
        "test_a_consumer_that_stands_below_a_changed_block_says_nothing_of_it",
    ),
    judgement(
        "totals are reset past rides that are held",
        "return held is not None and one.position > held",
        "return False",
        tests="analytics/test_witnesses.py::"
        "test_a_total_is_reset_below_a_held_block_and_not_above_it",
    ),
    judgement(
        "a checkpoint past every ride is compared with what is not settled",
        "exact.distance, one.position > at,",
        "exact.distance, False,",
        tests="analytics/test_reconcile.py::"
        "test_each_consumer_is_judged_at_its_own_ride_and_whoever_is_wrong_is_reset",
    ),
    Mutant(
        "an approval moves no ride from one minute to another",
        "is_moved = _cancel(wrong) and not judgement.approved",
        "is_moved = _cancel(wrong)",
        "analytics/judged_minutes.py",
        "analytics/test_minutes_held.py",
    ),
    records(
        "nobody compares the records with those that were sent",
        "return self.evidence.records != expected",
        "return False",
    ),
    readers(
        "nobody misses a reader that is gone",
        "            if (kind, name) not in removed:",
        "            if False:",
    ),
    readers(
        "a reader that was removed is missed",
        "            if (kind, name) not in removed:",
        "            if True:",
    ),
    readers(
        "a reader that was set back is not behind",
        "if reader.position < due:",
        "if False:",
    ),
    readers(
        "a reader without a state agrees",
        "if not each.has_state",
        "if False",
    ),
    rotation(
        "the newest blocks are in rotation first",
        "key=lambda block: (block.looked_at, block.after)",
        "key=lambda block: -block.after",
    ),
    rotation(
        "what was found is forgotten",
        "for finding in findings:",
        "for finding in findings[:0]:",
    ),
    rotation(
        "after a pause everything is read",
        "min(share, 1 / MOST)",
        "share",
    ),
    rows(
        "a ride that is there twice is the same",
        "if others != [one]:",
        "if others[:1] != [one]:",
    ),
    rows(
        "the key is of the ids alone",
        "key.update(repr((ride, one, others)).encode())",
        "key.update(repr(ride).encode())",
    ),
    findings(
        "an approval is for whatever is held",
        'f"{each.kind} {each.key}" for each',
        'f"{each.kind}" for each',
    ),
]

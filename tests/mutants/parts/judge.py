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
        "return {what: min(before.get(what, 0), end) for what, end in upto.items()}",
        "return upto",
        tests="analytics/test_fresh_rides.py",
    ),
    judgement(
        "an earlier run confirms what the warehouse has lost",
        "min(before.get(what, 0), end)",
        "before.get(what, 0)",
        tests="analytics/test_fresh_rides.py::"
        "test_no_run_remembers_rides_that_the_warehouse_has_lost",
    ),
    Mutant(
        "what a run has seen that never published is handed on",
        "        if not judgement.may_publish:\n",
        "        if not judgement.is_proven:\n",
        "analytics/case.py",
        tests="analytics/test_fresh_rides.py::"
        "test_what_a_run_has_seen_that_died_before_it_published_is_no_witness",
    ),
    judgement(
        "what was held is decided without the ledger",
        "voted | dict.fromkeys(self._held_before, Right.NOBODY)",
        "voted",
        tests="analytics/test_fresh_rides.py::test_what_is_held_stays_so_without_the_ledger",
    ),
    Mutant(
        "a run that has died confirms what it has copied",
        "WHERE later.id = runs.id OR later.id > runs.id AND later.ledgers <> '{}'",
        "WHERE later.id = runs.id",
        "analytics/runs.py",
        "analytics/test_fresh_rides.py::test_no_run_remembers_rides_that_the_warehouse_has_lost",
    ),
    votes(
        "a total below the first ride is compared with a block above it",
        "elif block.first <= position:",
        "else:",
    ),
    Mutant(
        "ratings that are held are in the ledger",
        "base if changed else taken",
        "taken",
        "analytics/proofs/ratings.py",
        "analytics/test_ratings_changed.py::"
        "test_a_star_that_was_altered_in_postgres_resets_nobody_until_that_is_approved",
    ),
    Mutant(
        "what is read again need not be what was judged",
        "if any(now[look.after] != look.postgres for look in looks):",
        "if False:",
        "analytics/reread.py",
        "analytics/test_witnesses.py",
    ),
    Mutant(
        "two moved rides hide beside a minute that is wrong by itself",
        "sums |= {off, *(off.plus(other) for other in sums)}",
        "sums = {off.plus(*sums)} if sums else {off}",
        "analytics/judged_minutes.py",
        "analytics/test_minutes_held.py::test_a_ride_whose_time_was_moved_before_any_run_has_read_it"
        "_changes_no_minute_unless_approved",
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
        "_cancel([*wrong, *verdict.later])) and not judgement.approved",
        "_cancel([*wrong, *verdict.later]))",
        "analytics/judged_minutes.py",
        "analytics/test_minutes_held.py",
    ),
    records(
        "nobody compares the records with those that were sent",
        "return not expected - counted <= self.evidence.records <= expected",
        "return False",
    ),
    judgement(
        "new rides are taken that a total contradicts and the other has not counted",
        "votes.denied(self.compared, max(known, self.confirmed, self._counted_past(known)))",
        "self.is_suspect",
        tests="analytics/test_fresh_rides.py::"
        "test_nor_are_those_that_one_total_contradicts_and_the_other_has_not_counted",
    ),
    readers(
        "who was put past every record sent is waited for",
        "position=min(furthest[key], frozen.position)",
        "position=furthest[key]",
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

"""Lies about what is proved each night beside the totals, and about what follows."""

from functools import partial

from tests.mutants.mutant import Mutant

minutes = partial(Mutant, file="analytics/minutes.py", tests="fast/test_minutes_compared.py")
rollup = partial(
    Mutant, file="analytics/proofs/rollup.py", tests="services/test_rollup_compared.py"
)
receipts = partial(
    Mutant, file="analytics/proofs/receipts.py", tests="services/test_receipts_proved.py"
)
outbox = partial(
    Mutant, file="analytics/proofs/outbox.py", tests="services/test_receipts_proved.py"
)
session = partial(
    Mutant, file="rocket_rides/session_settings.py", tests="analytics/test_hostile_defaults.py"
)
proofs = partial(Mutant, file="analytics/report/proofs.py", tests="fast/test_proofs_told.py")
result = partial(Mutant, file="analytics/result.py", tests="fast/test_proofs_told.py")
emit = partial(Mutant, file="analytics/emit.py", tests="services/test_receipts_proved.py")
rides = partial(Mutant, file="analytics/rides.py", tests="analytics/test_rollup_proved.py")
job = partial(Mutant, file="analytics/job.py", tests="analytics/test_rollup_proved.py")
set_back = partial(
    Mutant, file="rocket_rides/receipts.py", tests="services/test_receipts_proved.py"
)
requests = partial(
    Mutant, file="consumers/rollup/recomputations.py", tests="services/test_recomputations.py"
)
computing = partial(
    Mutant, file="consumers/rollup/minutes.py", tests="services/test_recomputations.py"
)

MUTANTS = [
    minutes(
        "a minute's last ride is its first",
        'f.max("id").alias("last")',
        'f.min("id").alias("last")',
        tests="analytics/test_sums_in_spark.py",
    ),
    rollup(
        "a minute is compared while it has rides above complete_to",
        "{*exact, *rows.kept} - rows.set_aside - rows.later",
        "{*exact, *rows.kept} - rows.set_aside",
        tests="fast/test_minutes_compared.py services/test_rollup_compared.py",
    ),
    rollup(
        "only rides above the frozen one keep a minute from being compared",
        'above = {"upto": upto,',
        'above = {"upto": frozen,',
    ),
    rollup(
        "a day that Python lacks is looked at",
        "sorted(day for day in days if FIRST <= day < END)",
        "sorted(days)",
    ),
    rollup(
        "a ride below the first one counts in Postgres",
        "AND id > 0 AND id <= %(upto)s",
        "AND id <= %(upto)s",
    ),
    rollup(
        "what was set aside is not looked at again",
        "WHERE status <> 'done' OR reconciliation_id = (",
        "WHERE status = 'pending' OR reconciliation_id = (",
        tests="analytics/test_rollup_proved.py",
    ),
    session(
        "times come in the server's time zone",
        '    "timezone": "UTC",\n',
        "",
        tests="services/test_rollup_compared.py",
    ),
    session(
        "dates come as the server writes them",
        '    "datestyle": "ISO, MDY",\n',
        "",
    ),
    session(
        "the warning that a commit has reached no standby may stay away",
        '    "client_min_messages": "notice",\n',
        "",
        tests="services/test_failover.py::"
        "test_a_ride_whose_wait_was_cancelled_is_not_answered_before_the_standby_has_it",
    ),
    rollup(
        "a minute that was set aside is drift",
        "{*exact, *rows.kept} - rows.set_aside - rows.later",
        "{*exact, *rows.kept} - rows.later",
    ),
    rollup(
        "a minute that is missing is not looked for",
        "sorted({*exact, *rows.kept} -",
        "sorted({*rows.kept} -",
        tests="fast/test_minutes_compared.py",
    ),
    rollup(
        "a minute without rides is not looked at",
        "sorted({*exact, *rows.kept} -",
        "sorted({*exact} -",
        tests="fast/test_minutes_compared.py",
    ),
    rollup(
        "a minute is wrong although Postgres says that it is right",
        "if differs(minute, recounted, rows):",
        "if True:",
    ),
    rollup(
        "what Spark has is the truth",
        "if tally(exact, minute) != truth:",
        "if False:",
    ),
    rollup(
        "a request for a minute without rides holds complete_to down to nothing",
        "else max(rows.upto, 1)\n",
        "else rows.upto\n",
        tests="fast/test_minutes_compared.py",
    ),
    rollup(
        "the rows are those of several moments",
        "            connection.execute(ONE_SNAPSHOT)\n",
        "",
    ),
    rollup(
        "what the rollup has become complete to meanwhile is called proved",
        "upto, compared = min(upto, rows.upto), compared",
        "upto, compared = rows.upto, compared",
    ),
    rollup(
        "the rollup is proved past the frozen ride",
        "upto = min(frozen, complete_to(connection))",
        "upto = complete_to(connection)",
    ),
    rollup(
        "days are those of the session's time zone",
        "SELECT DISTINCT (created_at AT TIME ZONE 'UTC')::date FROM rides",
        "SELECT DISTINCT created_at::date FROM rides",
    ),
    rollup(
        "what was found wrong is not looked at again",
        "WHERE status <> 'done' OR reconciliation_id = (",
        "WHERE reconciliation_id < 0 AND reconciliation_id = (",
        tests="analytics/test_rollup_proved.py",
    ),
    receipts(
        "a ride without an outcome is only one without a row",
        "count(*) FILTER (WHERE is_due AND outcome IS NULL),",
        "count(*) FILTER (WHERE is_due AND ride_id IS NULL),",
    ),
    receipts(
        "a ride above complete_to must have its outcome",
        "id <= (SELECT complete_to FROM receipts_state) AS is_due",
        "true AS is_due",
    ),
    receipts(
        "the first ride that was not proved is left out",
        "for start in range(after, upto, PIECE):",
        "for start in range(after + 1, upto, PIECE):",
    ),
    receipts(
        "an outcome of a ride to come is not looked for",
        "    strange = _with(strange, *one_row(connection.execute(STRANGE, [upto])))\n",
        "",
    ),
    receipts(
        "the oldest receipts are never in the sample",
        "numbers = range(upto // SAMPLED)",
        "numbers = range(1, upto // SAMPLED)",
    ),
    receipts(
        "an outcome below every ride is not looked for",
        "(ride_id <= 0 OR ride_id > %s)",
        "ride_id > %s",
    ),
    receipts(
        "what a repair kept from being judged is called proved",
        "if wrong[0] or wrong[2] or now < stretch.upto:",
        "if wrong[0] or wrong[2]:",
    ),
    receipts(
        "what is wrong now is not looked at the next night",
        "if wrong[0] or wrong[2] or now < stretch.upto:",
        "if now < stretch.upto:",
    ),
    receipts(
        "an outcome of no ride is not looked at the next night",
        "if wrong[0] or wrong[2] or now < stretch.upto:",
        "if wrong[0] or now < stretch.upto:",
    ),
    receipts(
        "the receipts are said to be complete to where they no longer are",
        "least, rides = min(least, now), rides + due",
        "rides += due",
    ),
    receipts(
        "while the sweep is on its way up, all that it has passed is looked at once more",
        "upto = max(known.upto, complete_to)",
        "upto = complete_to",
    ),
    receipts(
        "a ride that is looked at again may be in the sample, too",
        "again += apart(sample(min(known.upto, complete_to), chance), again)",
        "again += sample(min(known.upto, complete_to), chance)",
    ),
    outbox(
        "the record of last_sent itself may be staged",
        "staged.id <= last_sent_id AS sent",
        "staged.id < last_sent_id AS sent",
    ),
    outbox(
        "a record without a distance is right",
        "IS DISTINCT FROM to_jsonb(distance)",
        "<> to_jsonb(distance)",
    ),
    outbox(
        "a record without a ride is not looked for",
        "FROM staged_log_records staged LEFT JOIN rides",
        "FROM staged_log_records staged JOIN rides",
    ),
    result(
        "a receipt of no ride is no drift",
        "return not self.missing.rides and not self.strange.rides",
        "return not self.missing.rides",
    ),
    result(
        "a record without a ride is no drift",
        "return not (self.sent.rides or self.orphans.rides or self.different.rides)",
        "return not (self.sent.rides or self.different.rides)",
    ),
    result(
        "a run may agree although a minute is wrong",
        "and all(proof is None or proof.agrees for proof in proofs)",
        "and all(proof is None or proof.agrees for proof in proofs[1:])",
    ),
    emit(
        "the sweep looks from the last missing receipt on",
        "[missing[0]]",
        "[missing[-1]]",
    ),
    proofs(
        "what could not be compared agrees",
        'parts.append("agrees" if rollup.minutes else NOTHING_TO_COMPARE)',
        'parts.append("agrees")',
    ),
    proofs(
        "a minute of the warehouse is a range of rides",
        "    if mismatch.minute:\n",
        "    if False:\n",
    ),
    emit(
        "nobody asks for minutes",
        "    if minutes:",
        "    if False:",
        tests="analytics/test_rollup_proved.py",
    ),
    requests(
        "a request that was fulfilled is taken again",
        "WHERE status = 'pending' ORDER BY id",
        "WHERE status IS NOT NULL ORDER BY id",
    ),
    requests(
        "a minute that was set aside stays asked for",
        "SET status = 'set aside', changed_at = now()",
        "SET lowest_ride_id = lowest_ride_id",
    ),
    computing(
        "a request is fulfilled under a generation that is over",
        "changed_at = now() FROM mine, wanted",
        "changed_at = now() FROM wanted",
    ),
    computing(
        "a minute that was set aside keeps a label that lies ahead",
        "WHERE recomputations.minute = wanted.minute AND status <> 'done'",
        "WHERE recomputations.minute = wanted.minute AND status = 'pending'",
    ),
    computing(
        "a ride below the first one counts",
        "count(*) FILTER (WHERE id > 0 AND id <= upto) AS rides",
        "count(*) FILTER (WHERE id <= upto) AS rides",
        tests="services/test_rollup_compared.py",
    ),
    computing(
        "a minute that was asked for stays as it is if its label lies ahead",
        "           OR ride_minutes.minute IN (SELECT minute FROM asked_for)\n",
        "",
    ),
    rides(
        "a night compares the minutes of its new rides alone",
        "old = [file for file in files if file.day in days]",
        "old: list[File] = []",
    ),
    job(
        "rides that were repaired since the freeze make the warehouse wrong",
        "            # A repair changes sums that are taken above.\n"
        "            ownership.require_no_repair(self.connection, frozen.history)\n",
        "",
        tests="analytics/test_ownership.py::"
        "test_rides_that_are_repaired_meanwhile_are_no_mismatch_and_the_job_is_run_again",
    ),
    job(
        "workers wait while the warehouse is written",
        "            files = self.warehouse.place(",
        "            set_back(self.connection, result)\n            files = self.warehouse.place(",
        tests="analytics/test_receipts_of_a_night.py",
    ),
    job(
        "a reset that lacks a repaired ride undoes the repair",
        "            ownership.require_no_repair(self.connection, frozen.history)\n"
        "            files",
        "            files",
        tests="analytics/test_ownership.py::"
        "test_rides_that_are_repaired_meanwhile_are_no_mismatch_and_the_job_is_run_again",
    ),
    job(
        "a repaired ride's receipt is not looked at",
        "known = receipts.proved(self.connection) if rides.base.blocks else Proved()",
        "known = receipts.proved(self.connection)",
        tests="analytics/test_receipts_of_a_night.py",
    ),
]

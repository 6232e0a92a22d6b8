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
result = partial(Mutant, file="analytics/result.py", tests="fast/test_proofs_told.py")
emit = partial(Mutant, file="analytics/emit.py", tests="services/test_receipts_proved.py")
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
        "an hour has the rides of its last minute only",
        "hours[hour] = hours.get(hour, NOTHING).plus(minutes[minute].tally)",
        "hours[hour] = minutes[minute].tally",
    ),
    minutes(
        "a minute's last ride is its first",
        'f.max("id").alias("last")',
        'f.min("id").alias("last")',
        tests="analytics/test_minutes.py",
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
        "        if differs(minute, recounted, rows)\n",
        "",
    ),
    rollup(
        "what Spark has is the truth",
        "            if tally(exact, minute) != tally(recounted, minute)\n",
        "            if False\n",
    ),
    rollup(
        "a request for a minute without rides holds complete_to down to nothing",
        "else max(rows.upto, 1),",
        "else rows.upto,",
        tests="fast/test_minutes_compared.py",
    ),
    rollup(
        "the rows are those of several moments",
        "            connection.execute(ONE_SNAPSHOT)\n",
        "",
    ),
    rollup(
        "what the rollup has become complete to meanwhile is called proved",
        "            min(proved.upto, rows.upto),",
        "            rows.upto,",
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
        "WHERE status = 'pending' OR reconciliation_id = (",
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
        "id > since AND id <= complete_to AS is_due",
        "id > since AS is_due",
    ),
    receipts(
        "a ride from before there were receipts must have one",
        "id > since AND id <= complete_to AS is_due",
        "id <= complete_to AS is_due",
    ),
    receipts(
        "the first ride that was not proved is left out",
        "for start in range(after, upto, PIECE):",
        "for start in range(after + 1, upto, PIECE):",
    ),
    receipts(
        "an outcome of a ride to come is not looked for",
        "    return ReceiptsVerdict(complete_to, rides, missing, _with(strange, *above))",
        "    return ReceiptsVerdict(complete_to, rides, missing, strange)",
    ),
    receipts(
        "the oldest receipts are never in the sample",
        "numbers = range(upto // SAMPLED)",
        "numbers = range(1, upto // SAMPLED)",
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
    result(
        "what is wrong now is not looked at the next night",
        "return min([self.upto, *(ride - 1 for ride in self.missing.ids + self.strange.ids)])",
        "return self.upto",
        tests="services/test_receipts_proved.py",
    ),
    emit(
        "the sweep looks from the last missing receipt on",
        "[result.receipts.missing.ids[0]]",
        "[result.receipts.missing.ids[-1]]",
    ),
    emit(
        "nobody asks for minutes",
        "if result.rollup and result.rollup.wrong:",
        "if False:",
        tests="analytics/test_rollup_proved.py",
    ),
    set_back(
        "rides from before there were receipts are looked at",
        "complete_to = greatest(since, least(complete_to, %s - 1))",
        "complete_to = least(complete_to, %s - 1)",
    ),
    requests(
        "a request that was fulfilled is taken again",
        "WHERE status = 'pending' AND id > %s",
        "WHERE id > %s",
        explained="a minute that is computed once more is as right as before",
    ),
    requests(
        "a minute that is dirty already is marked in every round",
        "self._upto = max((number for number, _, _ in found), default=self._upto)",
        "self._upto = 0",
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
        "a minute that was asked for stays as it is if its label lies ahead",
        "           OR ride_minutes.minute IN (SELECT minute FROM asked_for)\n",
        "",
    ),
    job(
        "a night compares the minutes of its new rides alone",
        "old = [file for file in files if file.day in days]",
        "old: list[File] = []",
    ),
]

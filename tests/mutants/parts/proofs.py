"""Mutants of what is proved each night beside the totals, and about what follows."""

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
    Mutant, file="unified_log/session_settings.py", tests="analytics/test_hostile_defaults.py"
)
proofs = partial(Mutant, file="analytics/report/proofs.py", tests="fast/test_proofs_told.py")
requests = partial(
    Mutant, file="consumers/rollup/recomputations.py", tests="services/test_recomputations.py"
)

MUTANTS = [
    minutes(
        "a minute's last ride is its first",
        '"last": "max"}',
        '"last": "min"}',
        tests="analytics/test_added_up.py",
    ),
    rollup(
        "a minute is compared while it has rides above complete_to",
        "{*exact, *rows.kept} - rows.set_aside - rows.later",
        "{*exact, *rows.kept} - rows.set_aside",
        tests="fast/test_minutes_compared.py services/test_rollup_compared.py",
    ),
    session(
        "times come in the server's time zone",
        '    "timezone": "UTC",\n',
        "",
        tests="services/test_rollup_compared.py",
    ),
    rollup(
        "what was found wrong is not looked at again",
        "WHERE status <> 'done' OR reconciliation_id = (",
        "WHERE reconciliation_id < 0 AND reconciliation_id = (",
        tests="analytics/test_rollup_proved.py",
    ),
    receipts(
        "a watermark past all that was sent is believed",
        "complete_to, known = min(complete_to, frozen), ",
        "complete_to, known = complete_to, ",
    ),
    receipts(
        "where something is wrong, it is as much as was sampled",
        "if (wrong[0] or wrong[2]) and known.upto > start:",
        "if (wrong[0] or wrong[2]) and known.upto > frozen:",
    ),
    receipts(
        "a ride lacks an outcome only where it lacks a row",
        "count(*) FILTER (WHERE is_due AND outcome IS NULL),",
        "count(*) FILTER (WHERE is_due AND ride_id IS NULL),",
    ),
    receipts(
        "what was wrong is not looked at again the next night",
        "if wrong[0] or wrong[2] or now < stretch.upto:",
        "if now < stretch.upto:",
    ),
    outbox(
        "the record of last_sent itself may be staged",
        "staged.id <= last_sent_id AS sent",
        "staged.id < last_sent_id AS sent",
    ),
    proofs(
        "what could not be compared agrees",
        'parts.append("agrees" if rollup.minutes else NOTHING_TO_COMPARE)',
        'parts.append("agrees")',
    ),
    requests(
        "a request that was fulfilled is taken again",
        "WHERE status = 'pending' ORDER BY id",
        "WHERE status IS NOT NULL ORDER BY id",
    ),
]

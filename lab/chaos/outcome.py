"""The end of a run: the evidence is collected, and both judges say what they find in it."""

import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass

from lab.chaos import logs
from lab.chaos.books.judge import check
from lab.chaos.books.tables import WHEN_SETTLED, broken, missed, most_of
from lab.chaos.evidence import Evidence, read_final_state, read_receipts
from lab.chaos.fleet import STREAM
from lab.chaos.nights import read_warehouse
from lab.chaos.options import LOSE_ENTRIES
from lab.chaos.play import Play
from lab.chaos.recovery import Recovery, too_slow
from lab.chaos.settling import left_over
from lab.chaos.trace.judge import Verdict, judge
from lab.chaos.trace.recording import read
from rocket_rides.errors import in_one_line

# With these faults alone every reader reads every entry in time.
STOP_NO_READER = {"stranger", "slow-writer", "lost-writer", "receiver-fails"}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run."""

    evidence: Evidence
    findings: list[str]
    faults: Counter[str]
    moot: set[str]  # faults that could not be injected when their turn came
    drifts: int  # that were made, or tried
    looks: int  # at the tables, on the way
    recoveries: list[Recovery]
    played: float  # seconds with clients
    seconds: float  # until everything had settled
    checked: float  # seconds that the check took
    verdict: Verdict  # of the specification


def judged(play: Play) -> Outcome:
    """Collect the evidence of a run that is over, and ask both judges."""
    began = time.monotonic()
    evidence = collected(play)
    struck, recovered = play.nemesis.struck, play.recoveries.all
    found = [*check(evidence), *most_of(too_slow(recovered, play.options.recovery))]
    if struck and not recovered:
        found.append("no recovery was seen")
    checked = time.monotonic() - began
    verdict = judge(lambda: read(play.trace))
    return Outcome(
        evidence,
        found + verdict.findings,
        Counter(fault.kind for fault in struck),
        play.nemesis.moot,
        play.scene.drifts.made if play.scene.drifts else 0,
        play.tables.looks,
        recovered,
        play.played,
        play.seconds,
        checked,
        verdict,
    )


def collected(play: Play) -> Evidence:
    """Everything that there is to know of a run. Raises psycopg.Error or redis.RedisError."""
    fleet, scene, faults = play.fleet, play.scene, set(play.options.faults)
    services = fleet.services.values()
    errors = play.errors + play.journal.troubles
    errors += [f"a fault failed: {failure}" for failure in play.nemesis.failures]
    errors += [onlooker.error for onlooker in play.onlookers if onlooker.error]
    errors += [failure for server in fleet.servers for failure in server.failures]
    errors += [f"invalid entry in the log: {entry}" for entry in play.reader.invalid]
    errors += [f"{one.name} said: {line}" for one in services for line in logs.unexpected(one)]
    server_logs = [server.log for server in fleet.servers]
    errors += logs.broken(server_logs, disks_are_filled="disk-full" in faults)
    if not play.tables.looks:
        errors.append("nobody has looked at the tables on the way")
    if play.nemesis.moot and not play.nemesis.struck:
        errors.append("no fault could be injected on this machine")
    with closing(fleet.connect()) as connection, fleet.redis_client() as client:
        tables = [*play.tables.found, *broken(connection, WHEN_SETTLED)]
        if play.nights:
            full = play.told_by_nights.last[0].result.get("reconciliation") or 0
            tables += missed(connection, play.there, full)
        tables += left_over(connection, client, STREAM)
        final, receipts = read_final_state(connection), read_receipts(connection, scene.jumps)
    if play.nights:
        try:
            play.told_by_nights.warehouse = [*read_warehouse(fleet.warehouse_dir)]
        except Exception as error:  # whatever the library raises
            errors.append(f"the warehouse can't be read: {in_one_line(error)}")
    return Evidence(
        play.journal.asks,
        final,
        play.reader.told,
        [end for service in services for end in service.exits],
        play.reader.readings,
        errors,
        tables,
        restores=scene.restores,
        in_vain=scene.in_vain,
        foreign=scene.foreign,
        blamed=[line for service in services for line in logs.blamed(service)],
        read_again=bool(LOSE_ENTRIES & faults),
        left_unread=bool(faults - STOP_NO_READER),
        keeps_log=play.options.keeps_log,
        receipts=receipts,
        lost_outcomes=scene.drifts.outcomes if scene.drifts else set(),
        deliveries=fleet.receiver.deliveries,
        nights=play.told_by_nights,
    )

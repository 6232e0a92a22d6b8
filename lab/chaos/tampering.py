"""Tamperings: what somebody may do to the witnesses of the nightly job, and what it must say then.

They come after all faults, when nothing moves: so each run has one right answer, and nobody heals
or recounts from rides that are wrong. Each is undone as a person would undo it:

* Old rides are altered, swapped and deleted in Postgres: the run holds exactly these. They are put
  back by the statements of `python -m analytics.approve RUN --put-back`. The same run misses the
  state of a total that was deleted, of which its consumer says so. The row comes back.
* A policy hides half of the rides from the job's role: the job can't run.
* A number in the warehouse's ledger is altered, and its sum: the run reads all rides again.

No run may change a total or a minute meanwhile, or ask for that.
"""

import json
import random
import signal
import subprocess
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from lab import processes
from lab.chaos.fleet import CONSUMERS, Fleet
from lab.chaos.runs import AGREED, COULD_NOT_RUN, DRIFTED, Run, Runs
from lab.until import until
from unified_log.database import one_row

RIDES, STATE, POLICY, LEDGER = "rides", "state", "policy", "ledger"
LIMIT = 60.0  # seconds

TRUTH = "SELECT string_agg(rides::text, ' ' ORDER BY id) FROM rides"
REPAIRABLE = """
    SELECT (SELECT string_agg(concat_ws(' ', name, total_distance, states.rides, position, recount),
                              ', ' ORDER BY name)
            FROM consumer_states states JOIN checkpoints USING (kind, name)),
           (SELECT string_agg(minutes::text, ' ' ORDER BY minute) FROM ride_minutes minutes),
           (SELECT count(*) FROM resets), (SELECT count(*) FROM recomputations)
"""
# Of those that the warehouse has, too: any, as their hash has it.
OLD_RIDES = """
    SELECT id FROM rides
    WHERE id <= (SELECT position FROM reconciliations ORDER BY id DESC LIMIT 1)
    ORDER BY md5(concat(id, %s::text)) LIMIT 4
"""
TAMPER = "INSERT INTO chaos.tamperings SELECT %s, coalesce(max(id), 0) FROM runs"
UNDO = "UPDATE chaos.tamperings SET upto_run = (SELECT max(id) FROM runs) WHERE what = '{}';"
ALTER = "UPDATE rides SET distance = distance + 1 WHERE id = %s"
SWAP = """
    UPDATE rides SET distance = other.distance FROM rides other
    WHERE (rides.id, other.id) IN ((%(one)s, %(other)s), (%(other)s, %(one)s))
"""
DELETE = "DELETE FROM rides WHERE id = %s"
LOSE = "DELETE FROM consumer_states WHERE name = %s RETURNING name, total_distance, rides"
FIND = "INSERT INTO consumer_states (name, total_distance, rides) VALUES (%s, %s, %s)"
# The role of the fleet is a superuser, whom no policy binds.
HIDE = """
    CREATE ROLE reconciler LOGIN;
    GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO reconciler;
    CREATE POLICY half ON rides USING (id % 2 = 0);
    ALTER TABLE rides ENABLE ROW LEVEL SECURITY
"""
SHOW = """
    ALTER TABLE rides DISABLE ROW LEVEL SECURITY;
    DROP POLICY half ON rides;
    DROP OWNED BY reconciler;
    DROP ROLE reconciler
"""


@dataclass
class Tampering:
    """Tampers with a fleet that has come to rest; `found` are the wrong answers of the job."""

    fleet: Fleet
    runs: Runs
    dice: random.Random
    found: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Tamper with everything in turn. The last run agrees again."""
        rides = self._ask(TRUTH)
        for tamper in (self._with_rides_and_a_state, self._with_a_policy, self._with_ledger):
            tamper()
            if self._ask(TRUTH) != rides:
                self.found.append(f"after {self.runs.all[-1]}, the rides are not as they were")

    def _with_rides_and_a_state(self) -> None:
        name = self.dice.choice(CONSUMERS)
        service = self.fleet.services[name]
        with closing(self.fleet.connect()) as connection:
            chosen = [ride for (ride,) in connection.execute(OLD_RIDES, [self.dice.random()])]
            if len(chosen) < 4:  # hardly anybody has posted
                return
            altered, one, other, deleted = chosen
            with connection.transaction():
                for what in (RIDES, STATE):
                    connection.execute(TAMPER, [what])
                connection.execute(ALTER, [altered])
                connection.execute(SWAP, {"one": one, "other": other})
                connection.execute(DELETE, [deleted])
                lost = one_row(connection.execute(LOSE, [name]))
            misses_it = service.says(f"{name} has a checkpoint, at position")
            service.end_by(signal.SIGTERM)  # and is started again
            until(misses_it, f"{name} does not say that its state is gone", LIMIT)
            run = self._reconcile(f"{RIDES}, {STATE}", DRIFTED)
            goes_on = service.says(f"{name} stands at")
            put_back = ("analytics.approve", str(run.report.get("run")), "--put-back")
            script = processes.run(
                put_back, self.fleet.environment, LIMIT, complaints=subprocess.PIPE
            )
            script.check_returncode()
            with_row = script.stdout.replace("COMMIT;", f"{UNDO.format(RIDES)} COMMIT;")
            connection.execute(with_row, prepare=False)
            with connection.transaction():
                connection.execute(FIND, lost)
                connection.execute(UNDO.format(STATE))
        findings = run.report.get("findings", [])
        changed = [each for each in findings if each["kind"] == "rides_changed"]
        named = sorted(ride["id"] for finding in changed for ride in finding["rides"])
        if run.report.get("status") != "held" or named != sorted(chosen):
            self._finds(run, f"names rides {named}, and {sorted(chosen)} were changed")
        gone = [each["about"] for each in findings if each["kind"] == "reader_gone"]
        if [name in about for about in gone] != [True]:
            self._finds(run, f"does not miss {name}, or not only that")
        until(goes_on, f"{name} does not go on with the state that came back", LIMIT)

    def _with_a_policy(self) -> None:
        url = self.fleet.environment["DATABASE_URL"].replace("//postgres@", "//reconciler@")
        with closing(self.fleet.connect()) as connection:
            connection.execute(HIDE, prepare=False)
            run = self._reconcile(POLICY, COULD_NOT_RUN, DATABASE_URL=url)
            connection.execute(SHOW, prepare=False)
        if "row-level security" not in run.said:
            self._finds(run, "does not name the policy")

    def _with_ledger(self) -> None:
        ledgers = self.fleet.warehouse_dir.glob("rides/_ledgers/*.json")
        newest = max(ledgers, key=lambda file: file.stat().st_mtime_ns)
        ledger = json.loads(newest.read_bytes())
        rides, metres = ledger["total"]
        ledger["total"] = [rides, str(Decimal(metres) + 1)]
        block = ledger["blocks"][-1]
        block["distance"] = str(Decimal(block["distance"]) + 1)
        newest.write_text(json.dumps(ledger))
        run = self._reconcile(LEDGER, AGREED)
        if "its ledger was altered" not in run.said:
            self._finds(run, "does not say that its ledger was altered")

    def _reconcile(self, what: str, end: str, **settings: str) -> Run:
        """A run over what was tampered with, which must end so, and leave all as it is."""
        before = self._ask(REPAIRABLE)
        run = self.runs.play((), what, settings)
        if run.end != end:
            self._finds(run, f"{run.end}, and should have: {end}")
        if self._ask(REPAIRABLE) != before:
            self._finds(run, "has changed a total or a minute, or asked for that")
        return run

    def _ask(self, question: str) -> tuple[Any, ...]:
        with closing(self.fleet.connect()) as connection:
            return one_row(connection.execute(question))

    def _finds(self, run: Run, sentence: str) -> None:
        what = f"{run}, after tampering with the {run.tampered}, {sentence}"
        self.found.append(f"{what}: {run.said[-500:]}")

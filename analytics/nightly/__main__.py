"""`python -m analytics.nightly`: reconciles the rides every night.

It guarantees that `python -m analytics.reconcile` runs every day at RECONCILE_AT, local time, in a
process of its own, so that no JVM stays resident; that a night missed while the machine slept or
this process was down is made up for, once; and that a run which could not do its work (a server was
down, another run was in progress, Spark or Java is not there yet) is retried until the next night.
What a run prints appears among our own lines, and how it ended is logged. This process ends
only when told to: without Java it logs a warning every night, and a TZ that means nothing is UTC.

A crash leaves behind, by the step at which it comes:

* before a run, or before a retry: a night without a row in `reconciliations`. The next start
  notices that, and makes up for it.
* during a run: the same. On Linux the kernel ends the run with this process; elsewhere the run goes
  on to its end. `analytics.reconcile` says what it leaves behind.
* after a run: nothing. The run itself has committed its result.

SIGTERM ends a run in progress, and this process, in little more than two seconds.
"""

import logging
import sys
from collections.abc import Sequence
from datetime import datetime, time

import psycopg

from analytics.nightly import attempts, schedule
from analytics.nightly.local_time import local_zone
from rocket_rides import revisions, service, settings
from unified_log import database, process, waiting

logger = logging.getLogger("reconciler")

RECONCILE = (sys.executable, "-m", "analytics.reconcile")


class Reconciler:
    """The schedule, and the command that it starts. Tests pass other commands and pauses."""

    def __init__(
        self,
        config: settings.Settings,
        stop: process.Stop,
        command: Sequence[str] = RECONCILE,
        first_pause: float = attempts.FIRST_PAUSE,
        install: attempts.Install = lambda *_: None,
    ) -> None:
        self._config = config
        self._stop = stop
        self._command = command
        self._first_pause = first_pause
        self._install = install
        self._at = time.fromisoformat(config.reconcile_at)
        self._zone = local_zone()

    def now(self) -> datetime:
        """The local time."""
        return datetime.now(self._zone)

    def run(self) -> None:
        """Make up for a missed night, then start each run when it is due, until told to stop."""
        logger.info("reconciling every day at %s (%s)", self._config.reconcile_at, self._zone)

        def session(_progress: waiting.Progress) -> None:
            due = schedule.newest_due(self.now(), self._at)
            with database.connect(self._config.postgres_url, "reconciler") as connection:
                revisions.require_schema(connection, self._config.cell)
                missed = schedule.missed(connection, due)
            if missed:
                local = f"{due.astimezone(self._zone):%F %H:%M}"
                logger.info("the reconciliation of %s was missed; starting it now", local)
                self.reconcile()
            else:
                logger.debug("no night was missed")
            while not self._stop:
                attempts.wait_until(schedule.next_due(self.now(), self._at), self._stop)
                if not self._stop:
                    self.reconcile()

        process.keep_running(session, self._stop, psycopg.Error)

    def reconcile(self) -> None:
        """Start a run, and retry while it can't do its work, until shortly before the next night.

        If this returned any later, the next night would be left out.
        """
        until = schedule.next_due(self.now(), self._at) - attempts.TO_END
        attempts.run_with_retries(
            self._command, until, self._stop, self._first_pause, self._install
        )


def main(install: attempts.Install = lambda *_: None) -> None:
    """Run the reconciler until SIGTERM or SIGINT; `install` may install what a run lacks."""
    process.take_no_arguments("analytics.nightly", __doc__)
    config = settings.load()
    service.configure(config)
    stop = service.stop_on_signals()
    Reconciler(config, stop, install=install).run()


if __name__ == "__main__":
    service.run(main)

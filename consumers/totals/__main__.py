"""`python -m consumers.totals NAME`: reads the log and keeps the running total of all rides.

Beside the metres it counts the rides: a lost and a doubled ride of one length would cancel in them.
It guarantees that every ride counts once. The log may repeat a ride (it is skipped), lose one (the
chain shows the gap, which is summed from the rides), or contain entries that are malformed, foreign
or uncommitted (they are ignored: `unified_log.readers.committed`); the total and the checkpoint
move in one transaction. Nothing counts before the streamer has committed it, so everything that is
counted or healed is settled. Should the total be wrong anyway, a reconciliation
asks for a reset, which is applied once, before the next batch and in a transaction of its own, and
leaves the exact total of the rides up to the checkpoint.

A crash leaves behind, by the step at which it comes:

* before the commit: nothing. The batch is read again from the checkpoint; the reset is pending.
* after the commit: nothing. The next batch starts after this one; the reset is marked as applied.

An idle consumer blocks on the stream, outside any transaction, and every IDLE_ROUND seconds checks
for what no entry would tell it: a missing tail, a log that was wiped or restored, and a reset.
"""

from consumers.totals.report import RideByRide, resets
from consumers.totals.total import Total
from rocket_rides import service
from unified_log.readers import running
from unified_log.readers.report import Report


def main() -> None:
    """Run the consumer NAME until SIGTERM or SIGINT."""
    name = running.parse_name("consumers.totals", __doc__)
    config, stop = service.configure_consumer(name)
    report = RideByRide(name) if config.print_rides else Report(name)
    running.run(name, Total, [report, resets], config, stop, config.crash_rate)


if __name__ == "__main__":
    service.run(main)

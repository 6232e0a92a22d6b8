"""`python -m consumers.receipts NAME`: delivers each ride's receipt, together with other workers.

It guarantees that the receipt of every ride is delivered at least once, or is a dead letter:
refused, or tried RECEIPT_ATTEMPTS times. The log is read into an *inbox*; a *queue* is worked off;
a *sweep* proves that the inbox is complete. Inbox and queue are one table
(`consumers.receipts.statements`). The workers share the reading as members of a consumer group,
this one as NAME, and the work by leases. A receiver tells a repetition by its `webhook-id`. Only
what `rides` says of a ride that the streamer has committed is ever sent.

What a crash leaves behind is said at each statement. In short: entries that were read are claimed
after CLAIM_AFTER seconds, or at once by a worker of the same name; attempts that were begun count,
and their receipts are taken up again after RECEIPT_LEASE seconds.

Neither an outage of ours nor a receiver that can't be reached costs an attempt (`delivery`,
`breaker`). SIGTERM waits some seconds for what is in flight, and writes down that the rest was
stopped. Two processes may have one NAME: each does its share.
"""

import logging
import os

from consumers.receipts.worker import Worker
from rocket_rides import service, settings, telemetry
from unified_log.errors import Refused, in_one_line
from unified_log.readers import running


def main() -> None:
    """Run the worker NAME until SIGTERM or SIGINT."""
    name = running.parse_name("consumers.receipts", __doc__)
    config, stop = service.configure_consumer(name, "receipts")
    telemetry.instrument_client()
    secrets = settings.require_signing_secrets(config)
    try:
        Worker(name, config, secrets, stop).run()
    except Refused as refused:
        raise SystemExit(in_one_line(refused)) from None
    finally:
        stop.ask()  # else Python would wait for the thread that reads
    telemetry.end()
    # A look-up of the receiver's address may hang in a thread, and Python would wait for it.
    logging.shutdown()
    os._exit(0)


if __name__ == "__main__":
    service.run(main)

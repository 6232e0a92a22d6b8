"""The receiver of receipts, when it fails."""

import time
from urllib.parse import urlsplit

import psutil

from demo.breaking.healing import LOOK_EVERY
from demo.breaking.target import Target, count
from demo.simulator.mood import BAD_MOOD, BEGIN_BAD_MOOD, IN_A_BAD_MOOD
from rocket_rides.database import one_row
from rocket_rides.errors import Unavailable

# Of the rides that were taken since. It refuses some with a 503 at any time, for another reason.
REFUSED = """
    SELECT count(*) FROM receipts
    WHERE ride_id > %s AND outcome IS NULL AND reason = %s
"""
REASON = f"status 503: {IN_A_BAD_MOOD}"


def fail_receiver(target: Target) -> None:
    """Have the receiver of receipts fail for five seconds: they wait, and are delivered."""
    receiver = _receiver(target)
    target.say(
        f"The receiver of receipts (process {receiver.pid}) answers 503 to everything"
        f" for {BAD_MOOD:g} s."
    )
    target.say("Watch receipts wait. Totals and minutes don't depend on them.")
    before = target.newest_ride()
    receiver.send_signal(BEGIN_BAD_MOOD)
    ends = time.monotonic() + BAD_MOOD
    refused = 0
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(LOOK_EVERY, left))
        refused = max(refused, *one_row(target.connection.execute(REFUSED, [before, REASON])))
    newest = target.newest_ride()
    if not refused:
        raise Unavailable(
            "nothing was broken, because no receipt was refused: is the simulator posting rides?"
        )
    waiting = count(refused, "refused receipt waits", "refused receipts wait")
    target.say(f"The receiver works again; {waiting}.")
    target.healing.wait(newest)


def _receiver(target: Target) -> psutil.Process:
    """The simulator, where it receives. Raises Unavailable.

    What does not receive yet may not know the signal yet, which would end it, and the fleet.
    """
    url = urlsplit(target.config.receiver_url)
    port = url.port or (443 if url.scheme == "https" else 80)
    for process in target.fleet.simulators:
        for each in process.net_connections("tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr.port == port:
                return process
    raise Unavailable(f"no simulator receives the receipts at {target.config.receiver_url}")

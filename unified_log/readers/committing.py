"""How long a reader waits until the streamer has committed what it has just sent.

An entry is in the log before the streamer's commit, and counts only after it. To look sooner is in
vain, and keeps the streamer waiting for a processor; to look later is late. How long the commit
takes depends on disks and on the load, so each reader learns it: a look that came too soon makes
the wait longer, and each other one makes it a little shorter, down to what any commit takes. So
about one look in twelve is still too soon.
"""

import time

SHORTEST, LONGEST = 0.0003, 0.003  # seconds
TOO_SOON, IN_TIME = 1.25, 0.98  # factors


class Committing:
    """The wait, as it has been learned so far."""

    def __init__(self) -> None:
        self.seconds = SHORTEST

    def wait(self) -> None:
        """Sleep for that long."""
        time.sleep(self.seconds)

    def learn(self, *, too_soon: bool) -> None:
        """Take note of what the look after a `wait` has shown."""
        learned = self.seconds * (TOO_SOON if too_soon else IN_TIME)
        self.seconds = min(max(learned, SHORTEST), LONGEST)

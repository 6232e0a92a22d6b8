"""Reading the log by time: the entries of a range, and those that are yet to come.

An entry's time is the one that Redis put into its id when it was appended. Ids only rise: after
Redis' clock was set back, times stand still until it has caught up.
"""

from rocket_rides.log import GREATEST, START, Entry, Log, as_numbers

BATCH = 1000


class Tail:
    """The entries with `since <= time`, and `time < until` if that is given, in milliseconds.

    With `since=None`, only those that are appended from now on. Raises redis.RedisError.
    """

    def __init__(self, log: Log, since: int | None, until: int | None = None) -> None:
        self.ended = False
        self._log = log
        self._until = until
        self._start = f"{since - 1}-{GREATEST}" if since else START
        self._after = self._start if since is not None else log.last_id()

    def next(self, count: int = BATCH, wait: float = 0) -> list[Entry]:
        """The next entries, up to `count`; waits up to `wait` seconds for the first.

        Sets `ended` when none can follow. Raises redis.RedisError, and goes on where it was when it
        is called again.
        """
        left = wait if self._until is None else (self._until - self._log.clock()) / 1000
        found = self._log.read(self._after, min(count, BATCH), max(0, min(wait, left)))
        if found:
            self._after = found[-1].redis_id
        elif self._until is not None and left <= 0:
            self.ended = True
        kept = [entry for entry in found if self._until is None or time_of(entry) < self._until]
        self.ended = self.ended or len(kept) < len(found)
        return kept

    def starts_over(self) -> bool:
        """Whether the log was deleted and has not grown past here again; if so, go to its start."""
        begun = self._after != self._start
        if begun and as_numbers(self._log.last_id()) < as_numbers(self._after):
            self._after = self._start
            return True
        return False


def time_of(entry: Entry) -> int:
    """When it was appended, in milliseconds."""
    return as_numbers(entry.redis_id)[0]

"""A restore, as the judge of the books sees it: what it may have undone, and left in the log.

To promote a standby that is behind comes to the same.
"""

from typing import NamedTuple

from lab.chaos.journal import Answer, Ask

# A streamer that was stopped sends its current batch when it wakes up, even after a restore.
LATE = 15.0  # seconds


class Restore(NamedTuple):
    """Postgres was killed at `killed` and restored from a backup that began at `began`.

    Both are monotonic. The backup has everything that was committed before it began. So has the
    standby that was promoted, `by_failover`, instead.
    """

    began: float
    killed: float
    by_failover: bool = False

    def may_undo(self, answer: Answer) -> bool:
        """Whether the old server may have committed the answer's ride after the backup began.

        A request that was sent after that server had ended was served by the restored one. One sent
        earlier may have been served by either, whenever its answer came: the API may have been
        stopped between the old server's answer and its own.
        """
        return answer.sent < self.killed and answer.came > self.began

    def may_explain(self, appended: float, ask: Ask | None) -> bool:
        """Whether an entry appended then, about this ride, can be from the past that was lost."""
        return (
            ask is not None
            and ask.whole
            and ask.asked_at < self.killed
            and self.began < appended < self.killed + LATE
        )

"""What a restore may have undone, for the judge of the books.

The promotion of a standby that lags is judged like a restore.
"""

from typing import NamedTuple

from lab.chaos.journal import Answer


class Restore(NamedTuple):
    """Postgres was killed at `killed` and restored from a backup that began at `began`.

    Both are on the monotonic clock. The backup has all that was committed before it began. A
    promoted standby counts as a backup that began when it was cut off.
    """

    began: float
    killed: float

    def may_undo(self, answer: Answer) -> bool:
        """Whether the old server may have committed the answer's ride after the backup began.

        A request that was sent after that server had ended was served by the restored one. One sent
        earlier may have been served by either, whenever its answer came: the API may have been
        stopped between the old server's answer and its own.
        """
        return answer.sent < self.killed and answer.came > self.began

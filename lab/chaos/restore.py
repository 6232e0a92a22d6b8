"""A restore, as the judge of the books sees it: what it may have undone.

To promote a standby that is behind comes to the same.
"""

from typing import NamedTuple

from lab.chaos.journal import Answer


class Restore(NamedTuple):
    """Postgres was killed at `killed` and restored from a backup that began at `began`.

    Both are monotonic. The backup has everything that was committed before it began. So has a
    standby that was promoted instead.
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

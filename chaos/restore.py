"""A restore, as the judgement sees it: what it may have undone, and what it left in the log."""

from typing import NamedTuple

from chaos.journal import Answer, Ask

# A streamer that was stopped sends the batch in its hands when it wakes up, whatever came between.
LATE = 15.0  # seconds


class Restore(NamedTuple):
    """Postgres went back to a backup that began at `began`, when its server had ended at `killed`.

    Both are monotonic. All that was committed before the backup began is in it.
    """

    began: float
    killed: float

    def may_undo(self, answer: Answer) -> bool:
        """Whether what was answered can have been committed since the backup, by the old server.

        A request that was sent when that server had ended was served by the restored one. One that
        was sent before may have been served by either, whenever its answer came: the API may have
        been stopped with the old server's answer in its hands.
        """
        return answer.sent < self.killed and answer.came > self.began

    def may_explain(self, appended: float, ask: Ask | None) -> bool:
        """Whether an entry of that moment, about this ride, can be of the past that was lost."""
        return (
            ask is not None
            and ask.whole
            and ask.asked_at < self.killed
            and self.began < appended < self.killed + LATE
        )

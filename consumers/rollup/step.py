"""Where the rollup can be made to crash."""

from enum import Enum


class RollupStep(Enum):
    """In the order in which one minute meets them."""

    AFTER_DELETION = "after the last lead's Ick was deleted and before a generation was drawn"
    AFTER_DRAW = "after a generation was drawn and before anything was marked"
    AFTER_MARKS = "after minutes were marked and before the checkpoint moved"
    AFTER_MOVE = "after the checkpoint moved"
    AFTER_RESERVATION = "after minutes were reserved and before they were computed"
    AFTER_COMPUTING = "after minutes were computed and before they were committed"
    AFTER_COMMIT = "after minutes were committed and before complete_to rose"


# Where CRASH_RATE strikes, in each of the two loops.
MARKING = (RollupStep.AFTER_MARKS, RollupStep.AFTER_MOVE)
INDEXING = (RollupStep.AFTER_RESERVATION, RollupStep.AFTER_COMPUTING, RollupStep.AFTER_COMMIT)

"""Where the rollup can be made to crash."""

from enum import Enum


class Step(Enum):
    """In order."""

    AFTER_DELETION = "after the last dirty set was deleted and before a generation was drawn"
    AFTER_DRAW = "after a generation was drawn and before anything was marked"
    AFTER_MARKS = "after minutes were marked and before the checkpoint moved"
    AFTER_MOVE = "after the checkpoint moved and before the minutes were computed"
    AFTER_COMPUTING = "after minutes were computed and before they left the dirty set"
    AFTER_REMOVAL = "after computed minutes left the dirty set and before complete_to rose"


# Where CRASH_RATE strikes.
IN_A_ROUND = (Step.AFTER_MARKS, Step.AFTER_MOVE, Step.AFTER_COMPUTING, Step.AFTER_REMOVAL)

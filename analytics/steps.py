"""The steps of a run at which it can be made to crash, in order."""

from enum import Enum


class RunStep(Enum):
    """What a crash leaves behind is told in `analytics.reconcile`."""

    AFTER_FREEZE = "after the freeze"
    AFTER_EXTRACT = "after the rides were written and before they were added up"
    BEFORE_PUBLISH = "before the new files are in their places"
    AFTER_PLACING = "after the new files are in their places and before the table names them"
    BEFORE_COMMIT = "after the table names them and before the commit"
    AFTER_COMMIT = "after the commit"

"""The steps of a run at which it can be made to crash, in order."""

from enum import Enum


class RunStep(Enum):
    """What a crash leaves behind is told in `analytics.reconcile`."""

    AFTER_FREEZE = "after the freeze"
    AFTER_EXTRACT = "after the new files are written"
    BEFORE_PUBLISH = "before the ledger is written"
    PUT_ASIDE = "after a file of an unreadable log is put aside"
    AFTER_LEDGER = "after the ledger is written and before the table names the new files"
    BEFORE_COMMIT = "after the table names them and before the commit"
    AFTER_COMMIT = "after the commit"

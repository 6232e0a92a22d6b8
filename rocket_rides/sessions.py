"""Application names of the services' sessions, beside those of `unified_log.sessions`.

The rollup and the receipts' workers, `receipts NAME`, have the suffix of a session that is
starting, too. Nobody asks about their other sessions, `rollup indexer` and `inbox NAME`.
"""

from unified_log.sessions import lasting

API = "api"
ROLLUP, INDEXER = "rollup", "rollup indexer"
RECEIPTS, INBOX = "receipts ", "inbox "


def receipts(name: str) -> str:
    """The application name of the receipts' worker `name`; no other session has it."""
    return RECEIPTS + lasting(name)


def inbox(name: str) -> str:
    """The application name of that worker's other session, which reads the log."""
    return INBOX + lasting(name)

"""No two sorts of work share an advisory lock: the application's, and the library's."""

from rocket_rides.locks import Lock
from unified_log import locks


def test_every_lock_of_the_library_is_in_the_one_table() -> None:
    """Whose numbers differ, or it could not be imported."""
    numbers = {
        value for name, value in vars(locks).items() if name.isupper() and value != locks.TRY
    }
    assert numbers == {Lock.LEADER, Lock.LOG_SCHEMA, Lock.LOG_CODE}
    assert len({*Lock}) == len(Lock.__members__)

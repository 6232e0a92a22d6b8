"""One step: whether a revision is still to be applied, who has to end first, and what is noted."""

import logging
from typing import Any

import psycopg
from alembic.util import CommandError

from migrations.waiting import exclude_older
from rocket_rides import revisions
from rocket_rides.revisions import APPLICATION
from unified_log.schema import LOG
from unified_log.schema.serving import Version, versions

logger = logging.getLogger("migrations")

NOTE = """
    INSERT INTO schema_versions VALUES (%s, %s, %s, %s)
    ON CONFLICT (component) DO UPDATE
    SET (revision, serves_from, digest) = (excluded.revision, excluded.serves_from, excluded.digest)
"""


def begin(session: psycopg.Connection, script: Any, cell: int | None) -> bool:
    """Whether this revision is still to be applied; from now on older code is kept out.

    Raises CommandError where the database is another one's, Refused where it is another cell, or
    InTheWay.
    """
    there = versions(session)
    found, log = there.get(APPLICATION.name), there.get(LOG.name)
    number = int(script.revision)
    if found:
        _require_ours(found)
        if log and LOG.differs(log):
            raise CommandError(LOG.another(log))
        revisions.require_cell(session, cell)
        if found.revision >= number:
            return False
    elif session.execute(revisions.IS_EARLIER).fetchone() == (True,):
        raise CommandError(revisions.EARLIER)
    serves_from = _serves_from(script)
    if found and serves_from > found.serves_from:
        exclude_older(session, serves_from)
    return True


def note(session: psycopg.Connection, script: Any) -> None:
    """Write down what the database has now."""
    number = int(script.revision)
    values = number, _serves_from(script), revisions.digest(number)
    session.execute(NOTE, [APPLICATION.name, *values])


def _require_ours(found: Version) -> None:
    if found.revision > APPLICATION.revision:
        if why := APPLICATION.refusal(found):
            raise CommandError(why)
        logger.info("the schema is %s, newer than this code", APPLICATION.number(found.revision))
    elif found.digest != revisions.digest(found.revision):
        raise CommandError(APPLICATION.another(found))


def _serves_from(script: Any) -> int:
    """The oldest code that its schema serves, as the revision says it."""
    said = getattr(script.module, "serves_from", "")
    if not str(said).isdecimal() or not 1 <= int(said) <= int(script.revision):
        raise CommandError(
            f"the revision {script.revision} has to say which code it serves, as in"
            f' serves_from = "{script.revision}"'
        )
    return int(said)

"""`python -m migrations.rights`: gives the role of each process its rights, as the tables' owner.

They are those of `rights.sql`; `deploy/postgres/roles.sql` makes the roles. Run it after each
migration. It is one transaction.
"""

import logging

import psycopg

from rocket_rides import service, settings
from rocket_rides.locks import Lock
from rocket_rides.settings import PROJECT
from unified_log import database, errors, process

RIGHTS = PROJECT / "migrations/rights.sql"
ALONE = "SELECT pg_advisory_xact_lock(%s)"  # two at once would refuse one another

logger = logging.getLogger("migrations.rights")


def main() -> None:
    """Give the rights in the database that the settings name."""
    process.take_no_arguments("migrations.rights", __doc__)
    config = settings.load()
    service.configure(config)
    try:
        with (
            database.connect(config.postgres_url, "migrations") as connection,
            connection.transaction(),
        ):
            connection.execute(ALONE, [Lock.MIGRATION])
            connection.execute(RIGHTS.read_text().encode(), prepare=False)
    except (psycopg.Error, errors.Unavailable) as error:
        denied = isinstance(error, psycopg.errors.InsufficientPrivilege)
        advice = ": run it as the tables' owner" if denied else ""
        raise SystemExit(f"no rights were given: {database.why(error)}{advice}") from None
    logger.info("each role has its rights")


if __name__ == "__main__":
    service.run(main)

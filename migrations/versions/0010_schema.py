"""The whole schema, as the SQL beside this file says and explains it."""

from pathlib import Path

from alembic import context, op
from alembic.util import CommandError

import migrations
from rocket_rides.cells import CELL_SIZE

revision = "0010"
down_revision = None

# The log's tables, then the application's: the kinds of records, in the order of their numbers.
SCHEMA = Path(__file__).with_suffix(".sql")
KINDS = sorted(
    (Path(migrations.__file__).parent / "kinds").glob("*.sql"),
    key=lambda file: int(file.name.split("_")[0]),
)


# Where an application had its tables before this schema, its sequence may be past the start.
BEGIN_THERE = """
    ALTER SEQUENCE log_position START {first} MAXVALUE {last};
    SELECT setval('log_position', {first}, false) FROM log_position WHERE last_value < {first}
"""
OLDER = "SELECT EXISTS (SELECT FROM log_records WHERE id <= cell_start())"


def upgrade() -> None:
    # Through psycopg: SQLAlchemy would prepare it, and Postgres prepares only single statements.
    execute = op.get_bind().connection.driver_connection.execute
    cell = context.config.attributes["cell"] or 0
    execute("SELECT set_config('rocket_rides.cell', %s, true)", [str(cell)])
    for file in (SCHEMA, *KINDS):
        execute(file.read_text(), prepare=False)
    [older] = execute(OLDER).fetchone()
    if older:
        raise CommandError(f"CELL={cell} is refused: the records that are there have cell 0's ids")
    ends = {"first": cell * CELL_SIZE + 1, "last": (cell + 1) * CELL_SIZE - 1}
    execute(BEGIN_THERE.format(**ends), prepare=False)

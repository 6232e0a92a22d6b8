"""The doorbell: a ride that is taken while the streamer sleeps wakes it (`streamer.doorbell`).

An API of the version before goes on without it: the streamer finds those rides when it next looks.
"""

from alembic import op

revision = "0007"
down_revision = "0006"

UP = [
    # A flag: the bell is armed while the sequence has a last value. Sequences are outside of
    # transactions, so everyone sees at once what setval() wrote. Reading one waits for nobody, and
    # a SERIALIZABLE transaction takes no predicate lock for it.
    "CREATE SEQUENCE doorbell",
    # Whoever rings disarms it too, so that the next ones need not.
    """
    CREATE FUNCTION ring_doorbell() RETURNS void LANGUAGE sql VOLATILE
    RETURN CASE WHEN pg_sequence_last_value('doorbell'::regclass) IS NOT NULL
                THEN pg_notify('doorbell', setval('doorbell'::regclass, 1, false)::text) END
    """,
]

DOWN = ["DROP FUNCTION ring_doorbell", "DROP SEQUENCE doorbell"]


def upgrade() -> None:
    for statement in UP:
        op.execute(statement)


def downgrade() -> None:
    for statement in DOWN:
        op.execute(statement)

"""A key is written with its ride, in one statement: who could add the ride later may now do that.

An API of the version before goes on as it did: it keeps the right to update.
"""

from alembic import op

revision = "0008"
down_revision = "0007"

UP = """
    DO $$ DECLARE who text; BEGIN
        FOR who IN
            SELECT DISTINCT CASE grantee WHEN 'PUBLIC' THEN grantee ELSE quote_ident(grantee) END
            FROM information_schema.column_privileges
            WHERE table_schema = current_schema AND table_name = 'idempotency_keys'
              AND column_name = 'ride_id' AND privilege_type = 'UPDATE'
        LOOP
            EXECUTE format('GRANT INSERT (ride_id) ON idempotency_keys TO %s', who);
        END LOOP;
    END $$
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    """Nothing: the right to insert does no harm to what comes before."""

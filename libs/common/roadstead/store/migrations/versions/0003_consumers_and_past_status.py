"""Consumers that STATUS does not tell yet, and since when history keeps how resources stood.

The document says from what time on questions about the past can be answered; what changed before was not kept.
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE resource ADD COLUMN untold_since timestamptz")
    op.execute("CREATE INDEX resource_untold ON resource (untold_since) WHERE untold_since IS NOT NULL")
    op.execute(
        "INSERT INTO document (name, body) VALUES ('history.status', jsonb_build_object('since',"
        " to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')))"
    )

"""An index of the outbox by subject: a relay asks of each message that it takes whether an earlier one of its subject waits."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE INDEX outbox_subject ON outbox (subject, id)")

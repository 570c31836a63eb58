"""Work is a resource's: a row of work without its resource would be claimed for ever and read by nobody.

None was ever made by this product; what somebody's hand left goes, for nothing can be done for it.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "DELETE FROM work w WHERE NOT EXISTS (SELECT FROM resource r WHERE r.kind = w.kind AND r.id = w.id)"
    )
    op.execute(
        "ALTER TABLE work ADD CONSTRAINT work_resource FOREIGN KEY (kind, id) REFERENCES resource (kind, id)"
    )

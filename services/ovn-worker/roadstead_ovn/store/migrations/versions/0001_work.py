"""Work rows, the subnets whose probes they need, and leases."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    # calls: operation id -> what is needed to report it.  told: object id -> operating status last reported.  uses: what a later pass
    # must give back when it is not wanted any more.
    """
    CREATE TABLE work (
        load_balancer_id varchar(36) PRIMARY KEY,
        revision bigint NOT NULL DEFAULT 0,
        done bigint NOT NULL DEFAULT 0,
        due_at timestamptz,
        reason text NOT NULL DEFAULT '',
        wakes bigint NOT NULL DEFAULT 0,
        lease_owner text,
        lease_until timestamptz,
        epoch bigint NOT NULL DEFAULT 0,
        failures integer NOT NULL DEFAULT 0,
        fault text,
        calls jsonb NOT NULL DEFAULT '{}',
        told jsonb NOT NULL DEFAULT '{}',
        uses jsonb NOT NULL DEFAULT '{}',
        changed_at timestamptz NOT NULL DEFAULT now()
    ) WITH (fillfactor = 70)
    """,
    "CREATE INDEX work_due ON work (due_at) WHERE due_at IS NOT NULL",
    "CREATE INDEX work_lease ON work (lease_owner) WHERE lease_owner IS NOT NULL",
    """
    CREATE TABLE probe (
        subnet_id varchar(36) NOT NULL,
        load_balancer_id varchar(36) NOT NULL,
        PRIMARY KEY (subnet_id, load_balancer_id)
    )
    """,
    "CREATE INDEX probe_load_balancer ON probe (load_balancer_id)",
    """
    CREATE TABLE duty (
        name text PRIMARY KEY,
        owner text,
        until timestamptz,
        next_at timestamptz NOT NULL DEFAULT now()
    )
    """,
)


def upgrade() -> None:
    for statement in TABLES:
        op.execute(statement)


def downgrade() -> None:
    for table in ("work", "probe", "duty"):
        op.execute(f"DROP TABLE {table}")

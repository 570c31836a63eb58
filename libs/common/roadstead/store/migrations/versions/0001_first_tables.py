"""The first tables: resource, work, outbox, history by days, document.

Written out and not taken from the table definitions: a revision must do the same for ever.
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE resource (
        kind text COLLATE "C" NOT NULL,
        id text COLLATE "C" NOT NULL,
        region text COLLATE "C" NOT NULL,
        project text COLLATE "C" NOT NULL,
        identity text COLLATE "C" NOT NULL,
        metadata jsonb NOT NULL,
        spec jsonb NOT NULL,
        generation bigint NOT NULL,
        incarnation bigint NOT NULL,
        epoch bigint NOT NULL,
        sequence bigint NOT NULL,
        born_epoch bigint NOT NULL,
        born_sequence bigint NOT NULL,
        deleting boolean NOT NULL,
        "cascade" boolean NOT NULL,
        deletion_timestamp timestamptz,
        gone_at timestamptz,
        next_spec jsonb,
        warnings jsonb NOT NULL,
        refusal jsonb NOT NULL,
        observed jsonb,
        observed_at timestamptz,
        status jsonb NOT NULL,
        resource_version bigint NOT NULL,
        consumers jsonb NOT NULL,
        "references" jsonb NOT NULL,
        record text COLLATE "C",
        record_version bigint NOT NULL,
        intents jsonb NOT NULL,
        decided jsonb,
        written_at timestamptz,
        failures integer NOT NULL,
        ever_provisioned boolean NOT NULL,
        paused_until timestamptz,
        paused boolean NOT NULL,
        created_at timestamptz,
        PRIMARY KEY (kind, id)
    ) WITH (fillfactor = 80)
    """,
    "CREATE INDEX resource_project ON resource (kind, project, id)",
    "CREATE INDEX resource_identity ON resource (kind, identity, id)",
    "CREATE INDEX resource_gone ON resource (gone_at) WHERE gone_at IS NOT NULL",
    # Small and rewritten all the time: vacuumed early, or claims walk over dead rows.
    """
    CREATE TABLE work (
        kind text COLLATE "C" NOT NULL,
        id text COLLATE "C" NOT NULL,
        region text COLLATE "C" NOT NULL,
        project text COLLATE "C" NOT NULL,
        identity text COLLATE "C" NOT NULL,
        gone boolean NOT NULL,
        due_at timestamptz,
        wake_seq bigint NOT NULL,
        lease_owner text COLLATE "C",
        lease_until timestamptz,
        lease_epoch bigint NOT NULL,
        cause jsonb NOT NULL,
        PRIMARY KEY (kind, id)
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0)
    """,
    "CREATE INDEX work_fair ON work (identity, due_at) WHERE due_at IS NOT NULL",
    "CREATE INDEX work_due ON work (due_at) WHERE due_at IS NOT NULL",
    "CREATE INDEX work_leased ON work (lease_until) WHERE lease_until IS NOT NULL",
    """
    CREATE TABLE outbox (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        subject text COLLATE "C" NOT NULL,
        payload bytea NOT NULL,
        headers jsonb NOT NULL,
        message_id text COLLATE "C" NOT NULL,
        purge_to bigint,
        hidden_until timestamptz
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)
    """,
    "CREATE SEQUENCE history_seq",
    """
    CREATE TABLE history (
        resource_kind text COLLATE "C" NOT NULL,
        resource_id text COLLATE "C" NOT NULL,
        at timestamptz NOT NULL,
        seq bigint NOT NULL DEFAULT nextval('history_seq'),
        kind text COLLATE "C" NOT NULL,
        body jsonb NOT NULL
    ) PARTITION BY RANGE (at)
    """,
    "CREATE INDEX history_of_resource ON history (resource_kind, resource_id, at)",
    'CREATE TABLE document (name text COLLATE "C" PRIMARY KEY, body jsonb NOT NULL)',
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)

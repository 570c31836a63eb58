"""The first tables: the original's 39 with their look-up and placeholder rows, operations and claims of VIP ports; and the function that
keeps quotas.

Written out and not taken from the table definitions: a revision must do the same for ever.
"""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

LOOKUPS = {
    "algorithm": "LEAST_CONNECTIONS ROUND_ROBIN SOURCE_IP SOURCE_IP_PORT",
    "amphora_roles": "BACKUP MASTER STANDALONE",
    "client_authentication_mode": "MANDATORY NONE OPTIONAL",
    "health_monitor_type": "HTTP HTTPS PING SCTP TCP TLS-HELLO UDP-CONNECT",
    "l7policy_action": "REDIRECT_PREFIX REDIRECT_TO_POOL REDIRECT_TO_URL REJECT",
    "l7rule_compare_type": "CONTAINS ENDS_WITH EQUAL_TO REGEX STARTS_WITH",
    "l7rule_type": "COOKIE FILE_TYPE HEADER HOST_NAME PATH SSL_CONN_HAS_CERT SSL_DN_FIELD SSL_VERIFY_RESULT",
    "lb_topology": "ACTIVE_STANDBY SINGLE",
    "operating_status": "DEGRADED DRAINING ERROR NO_MONITOR OFFLINE ONLINE",
    "protocol": "HTTP HTTPS PROMETHEUS PROXY PROXYV2 SCTP TCP TERMINATED_HTTPS UDP",
    "provisioning_status": (
        "ACTIVE ALLOCATED BOOTING DELETED ERROR FAILOVER_STOPPED PENDING_CREATE PENDING_DELETE PENDING_UPDATE READY"
    ),
    "session_persistence_type": "APP_COOKIE HTTP_COOKIE SOURCE_IP",
    "vrrp_auth_method": "AH PASS",
}

NIL = "00000000-0000-0000-0000-000000000000"
PLACEHOLDERS = f"""
    INSERT INTO flavor_profile (id, name, provider_name, flavor_data)
    VALUES ('{NIL}', 'DELETED-PLACEHOLDER', 'DELETED', '{{}}');
    INSERT INTO flavor (id, name, description, enabled, flavor_profile_id)
    VALUES ('{NIL}', 'DELETED-PLACEHOLDER', 'Placeholder for DELETED LBs with DELETED flavors', false, '{NIL}');
    INSERT INTO availability_zone_profile (id, name, provider_name, availability_zone_data)
    VALUES ('{NIL}', 'DELETED-PLACEHOLDER', 'DELETED', '{{}}');
    INSERT INTO availability_zone (name, description, enabled, availability_zone_profile_id)
    VALUES ('{NIL}', 'Placeholder for DELETED LBs with DELETED availability zones', false, '{NIL}');
"""  # noqa: S608 - constants

# Names the first kind of which the project would have too many, or nothing.  Where a limit is finite the project's row is locked until
# the transaction ends, and the count that follows sees all that was committed before: VOLATILE, so each statement has a view of its own.
QUOTA = """
    CREATE FUNCTION quota_refusal(project varchar, wanted jsonb, standard jsonb) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path FROM CURRENT AS $body$
    DECLARE
        limits jsonb;
        kind text;
        most bigint;
        used bigint;
        locked boolean := false;
    BEGIN
        SELECT to_jsonb(q) INTO limits FROM quotas q WHERE q.project_id = project;
        IF limits IS NULL THEN
            INSERT INTO quotas (project_id) VALUES (project) ON CONFLICT DO NOTHING;
            SELECT to_jsonb(q) INTO limits FROM quotas q WHERE q.project_id = project;
        END IF;
        FOREACH kind IN ARRAY ARRAY['load_balancer', 'pool', 'health_monitor', 'member', 'listener', 'l7policy', 'l7rule']
        LOOP
            CONTINUE WHEN coalesce((wanted ->> kind)::bigint, 0) <= 0;
            most := coalesce((limits ->> kind)::bigint, (standard ->> kind)::bigint, -1);
            CONTINUE WHEN most < 0;
            IF NOT locked THEN
                PERFORM 1 FROM quotas q WHERE q.project_id = project FOR UPDATE;
                SELECT to_jsonb(q) INTO limits FROM quotas q WHERE q.project_id = project;
                most := coalesce((limits ->> kind)::bigint, (standard ->> kind)::bigint, -1);
                locked := true;
                CONTINUE WHEN most < 0;
            END IF;
            EXECUTE format(
                'SELECT count(*) FROM %I WHERE project_id = $1 AND provisioning_status <> ''DELETED''', kind
            ) INTO used USING project;
            IF used + (wanted ->> kind)::bigint > most THEN
                RETURN kind;
            END IF;
        END LOOP;
        RETURN NULL;
    END
    $body$
"""


def statements(text: str) -> list[str]:
    """The statements of an SQL text."""
    lines = (line for line in text.splitlines() if not line.startswith("--"))
    return [part.strip() for part in "\n".join(lines).split(";\n") if part.strip()]


def upgrade() -> None:
    for statement in statements(Path(__file__).with_suffix(".sql").read_text()):
        op.execute(statement)
    for table, names in LOOKUPS.items():
        rows = ", ".join(f"('{name}')" for name in names.split())
        op.execute(f"INSERT INTO {table} (name) VALUES {rows}")  # noqa: S608 - constants
    for statement in statements(PLACEHOLDERS):
        op.execute(statement)
    op.execute(QUOTA.replace(":=", r"\:="))

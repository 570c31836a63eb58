"""Many due rows at once, written by two statements: for measurements of claims and for their plans."""

WORK = "kind, id, region, project, identity, gone, due_at, wake_seq, lease_epoch, cause"
RESOURCE = (
    "kind, id, region, project, identity, metadata, spec, generation, incarnation, epoch, sequence, born_epoch, born_sequence,"
    ' deleting, "cascade", warnings, refusal, status, resource_version, consumers, "references", record_version, intents,'
    " failures, ever_provisioned, paused"
)


def due_rows(schema: str, select: str) -> tuple[str, str]:
    """Statements that make servers and their work, to be executed in this order.

    select: a query of (id, region, identity, age), age being the seconds for which the row is due.  A row is as wide as a new one is,
    because a claim brings its resource.
    """
    resources = (
        f"INSERT INTO {schema}.resource ({RESOURCE}) SELECT 'server', id, region, 'p', identity, '{{}}', '{{}}', 1, 1, 1, 1, 1, 1,"
        " false, false, '[]', '[]', '{}', 1, '[]', '{}', 0, '[]', 0, false, false"
        f" FROM ({select}) s"
    )
    work = (
        f"INSERT INTO {schema}.work ({WORK}) SELECT 'server', id, region, 'p', identity, false,"
        f" now() - age * interval '1 s', 1, 0, '{{}}' FROM ({select}) s"
    )
    return resources, work

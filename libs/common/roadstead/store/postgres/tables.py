"""The tables as they are after the newest migration; a test compares the two.

Texts that are compared or ordered use the "C" collation, so that the database orders ids as Python does.  `work` is narrow,
because every wake, claim and renewal rewrites a row of it; `resource` is wide and changes at the pace of passes.
"""

from functools import cache

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Sequence,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP


def _text(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text(collation="C"), nullable=nullable)


def _json(name: str, *, nullable: bool = False) -> Column[object]:
    return Column(name, JSONB(none_as_null=True), nullable=nullable)


def _time(name: str, *, nullable: bool = True) -> Column[object]:
    return Column(name, TIMESTAMP(timezone=True), nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False)


@cache
def tables_of(schema: str | None) -> MetaData:
    """All tables in that schema (None: unqualified)."""
    made = MetaData(schema=schema)
    _work(made, _resource(made))
    Table(
        "outbox",
        made,
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        _text("subject"),
        Column("payload", LargeBinary, nullable=False),
        _json("headers"),
        _text("message_id"),
        _number("purge_to", nullable=True),
        _time("hidden_until"),
        Index("outbox_subject", "subject", "id"),
    )
    Table(
        "history",
        made,
        _text("resource_kind"),
        _text("resource_id"),
        _time("at", nullable=False),
        Column(
            "seq",
            BigInteger,
            Sequence("history_seq"),
            nullable=False,
            server_default=text("nextval('history_seq')"),
        ),
        _text("kind"),
        _json("body"),
        Index("history_of_resource", "resource_kind", "resource_id", "at"),
        postgresql_partition_by="RANGE (at)",
    )
    Table("document", made, _text("name"), _json("body"), PrimaryKeyConstraint("name"))
    return made


def _resource(made: MetaData) -> Table:
    return Table(
        "resource",
        made,
        _text("kind"),
        _text("id"),
        _text("region"),
        _text("project"),
        _text("identity"),
        _json("metadata"),
        _json("spec"),
        _number("generation"),
        _number("incarnation"),
        _number("epoch"),
        _number("sequence"),
        _number("born_epoch"),
        _number("born_sequence"),
        _flag("deleting"),
        _flag("cascade"),
        _time("deletion_timestamp"),
        _time("gone_at"),
        _json("next_spec", nullable=True),
        _json("warnings"),
        _json("refusal"),
        _json("observed", nullable=True),
        _time("observed_at"),
        _json("status"),
        _number("resource_version"),
        _json("consumers"),
        _json("references"),
        _text("record", nullable=True),
        _number("record_version"),
        _json("intents"),
        _json("decided", nullable=True),
        _time("written_at"),
        Column("failures", Integer, nullable=False),
        _flag("ever_provisioned"),
        _time("paused_until"),
        _flag("paused"),
        _time("created_at"),
        _time("untold_since"),
        PrimaryKeyConstraint("kind", "id"),
        Index("resource_project", "kind", "project", "id"),
        Index("resource_identity", "kind", "identity", "id"),
        Index("resource_gone", "gone_at", postgresql_where=text("gone_at IS NOT NULL")),
        Index("resource_untold", "untold_since", postgresql_where=text("untold_since IS NOT NULL")),
    )


def _work(made: MetaData, resource: Table) -> None:
    Table(
        "work",
        made,
        _text("kind"),
        _text("id"),
        _text("region"),
        _text("project"),
        _text("identity"),
        _flag("gone"),
        _time("due_at"),
        _number("wake_seq"),
        _text("lease_owner", nullable=True),
        _time("lease_until"),
        _number("lease_epoch"),
        _json("cause"),
        PrimaryKeyConstraint("kind", "id"),
        ForeignKeyConstraint(
            ["kind", "id"], [resource.c.kind, resource.c.id], name="work_resource"
        ),  # a claim reads both
        Index("work_fair", "identity", "due_at", postgresql_where=text("due_at IS NOT NULL")),
        Index("work_due", "due_at", postgresql_where=text("due_at IS NOT NULL")),
        Index("work_leased", "lease_until", postgresql_where=text("lease_until IS NOT NULL")),
    )

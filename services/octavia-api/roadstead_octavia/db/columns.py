"""How a table is written down: short makers of columns, and `Maker`, which puts tables into one MetaData."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP


def varchar(name: str, length: int, **more: Any) -> Column[str]:
    more.setdefault("nullable", not more.get("primary_key", False))
    return Column(name, String(length, collation="C"), **more)


def key(name: str = "id", length: int = 36) -> Column[str]:
    return varchar(name, length, primary_key=True)


def needed(name: str, length: int, **more: Any) -> Column[str]:
    return varchar(name, length, nullable=False, **more)


def integer(name: str, *, nullable: bool = True) -> Column[int]:
    return Column(name, Integer, nullable=nullable)


def bigint(name: str, **more: Any) -> Column[int]:
    return Column(name, BigInteger, nullable=False, **more)


def flag(name: str, *, nullable: bool = False, default: bool | None = None) -> Column[bool]:
    given = None if default is None else text(str(default).lower())
    return Column(name, Boolean, nullable=nullable, server_default=given)


def plain_text(name: str) -> Column[str]:
    return Column(name, Text(collation="C"))


def time(name: str, *, nullable: bool = True, **more: Any) -> Column[Any]:
    return Column(name, TIMESTAMP(timezone=False), nullable=nullable, **more)


def json(name: str, *, nullable: bool = True) -> Column[Any]:
    return Column(name, JSONB(none_as_null=True), nullable=nullable)


def times() -> tuple[Column[Any], Column[Any]]:
    return time("created_at"), time("updated_at")


def named() -> tuple[Column[str], Column[str]]:
    return varchar("name", 255), varchar("description", 255)


def statuses() -> tuple[Column[str], Column[str]]:
    return needed("provisioning_status", 16), needed("operating_status", 16)


class Maker:
    """Puts tables into one MetaData; foreign keys name their target without a schema."""

    def __init__(self, schema: str | None) -> None:
        self.made = MetaData(schema=schema)

    def table(self, name: str, *parts: Any) -> Table:
        return Table(name, self.made, *parts)

    def to(self, name: str, column: str, target: str, ondelete: str | None = None) -> ForeignKeyConstraint:
        """A foreign key of that name from the column to `table.column`."""
        schema = f"{self.made.schema}." if self.made.schema else ""
        return ForeignKeyConstraint([column], [f"{schema}{target}"], name=name, ondelete=ondelete)

    def states(self, table: str) -> tuple[ForeignKeyConstraint, ForeignKeyConstraint]:
        return (
            self.to(
                f"fk_{table}_provisioning_status_name", "provisioning_status", "provisioning_status.name"
            ),
            self.to(f"fk_{table}_operating_status_name", "operating_status", "operating_status.name"),
        )

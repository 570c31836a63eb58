"""Names and addresses as PostgreSQL takes them."""

import re

_SCHEMA = re.compile(r"^[a-z][a-z0-9_]{0,47}$")


def checked_schema(schema: str) -> str:
    """The name itself; ValueError unless it can stand unquoted in a statement."""
    if not _SCHEMA.match(schema):
        raise ValueError(
            f"the schema name {schema!r} must be a lower-case letter and up to 47 more of a-z, 0-9 and _"
        )
    return schema


def driver_url(url: str) -> str:
    """The address as asyncpg takes it: `postgresql://...`."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.partition("+")[0] not in ("postgresql", "postgres"):
        raise ValueError("the database address must begin with postgresql://; check ROADSTEAD_DATABASE_URL")
    return f"postgresql://{rest}"


def sqlalchemy_url(url: str) -> str:
    """The address as SQLAlchemy takes it for asyncpg."""
    return driver_url(url).replace("postgresql://", "postgresql+asyncpg://", 1)


def quoted(name: str) -> str:
    """A name in double quotes."""
    return '"' + name.replace('"', '""') + '"'

"""What clients are told when only the database could see it: values that cannot be stored, keys in use, rows that are gone or still needed.

Rules look before they write, so these are races (and values that slipped through); the texts are those of the rules.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import asyncpg

from roadstead_octavia.db.port import Delete, Insert, Update, Write
from roadstead_octavia.db.rows import table_of
from roadstead_octavia.errors import ApiError, invalid, not_found, refuse

NOUNS = {
    "flavor": "Flavor",
    "flavor_profile": "Flavor profile",
    "availability_zone": "Availability Zone",
    "availability_zone_profile": "Availability Zone Profile",
}


def storable(value: Any) -> bool:
    """Whether the database can hold the text; what it cannot hold equals nothing in it."""
    if not isinstance(value, str):
        return True
    return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)


def not_storable() -> ApiError:
    return invalid("a value is too long or holds characters that cannot be stored")


def now() -> datetime:
    """UTC without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)


def exists_already(error: asyncpg.UniqueViolationError, writes: Sequence[Write]) -> ApiError:
    """409 for a key that another row has."""
    table = str(error.table_name)
    for write in writes:
        values = write.row if isinstance(write, Insert) else write.values if isinstance(write, Update) else {}
        if write.table == table and table in NOUNS and "name" in values:
            return refuse("RecordAlreadyExists", field=NOUNS[table].lower(), name=values["name"])
    return refuse("IDAlreadyExists")


def refers_wrongly(error: asyncpg.ForeignKeyViolationError, writes: Sequence[Write]) -> ApiError:
    """409 for a row that goes while another one needs it, 404 for one that is needed and has gone."""
    table = str(error.table_name)
    for write in writes:
        if isinstance(write, Delete) and write.table != table:
            identifier = next(iter(write.key.values()))
            return refuse("ObjectInUse", object=NOUNS.get(write.table, write.table), id=identifier)
    for reference in table_of(table).foreign_key_constraints:
        if reference.name != error.constraint_name:
            continue
        column, target = reference.column_keys[0], reference.referred_table.name
        for write in writes:
            values = (
                write.row if isinstance(write, Insert) else write.values if isinstance(write, Update) else {}
            )
            if write.table == table and column in values:
                return not_found(NOUNS.get(target, target), str(values[column]))
    return refuse("IDAlreadyExists")

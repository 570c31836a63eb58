"""From the names and forms of the wire to those of the tables.

Attributes that are rows of other tables (tags, CIDRs, children...) are not here: the operation writes them.
"""

from collections.abc import Mapping
from typing import Any

from roadstead_octavia.wire.describe import NO_COLUMN, Body, Field, Kind, Resource

VIP = "vip."


def to_row(resource: Resource, values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the resource's own table that the values set; absent attributes are absent.

    `values` have been read, with null replaced where it means something else (`put_values`).
    """
    return _row(_fields(resource), values, "")


def to_vip(resource: Resource, values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the VIP that the values set."""
    return _row(_fields(resource), values, VIP)


def new_row(body: Body, values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """All columns that a body can set, None for those that were not sent: of the object that it makes (`prefix` VIP: of its VIP)."""
    blank = {column: None for name, field in body.fields.items() if (column := _column(name, field, prefix))}
    return {**blank, **_row(body.fields, values, prefix)}


def stored(field: Field, value: Any) -> Any:
    """A value in the form that its column holds: lists are text with commas."""
    if field.kind is Kind.ARRAY and value is not None:
        return ",".join(value)
    return value


def _fields(resource: Resource) -> Mapping[str, Field]:
    fields: dict[str, Field] = {}
    for body in (resource.post, resource.put):
        fields.update(body.fields if body else {})
    return fields


def _row(fields: Mapping[str, Field], values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    # Sorted, so that of two names for one column (quotas) always the same one counts.
    return {
        column: stored(fields[name], values[name])
        for name in sorted(values)
        if name in fields and (column := _column(name, fields[name], prefix))
    }


def _column(name: str, field: Field, prefix: str) -> str | None:
    """The column in the table that the prefix means, or None."""
    if field.alias_of or field.column == NO_COLUMN:
        return None
    column = field.column or name
    if prefix:
        return column.removeprefix(prefix) if column.startswith(prefix) else None
    return None if "." in column else column

"""Rows as fresh reads give them: what the columns of a table are, their defaults, and how a table's rows are ordered."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Table

from roadstead_octavia.db.port import Row
from roadstead_octavia.db.tables import tables_of

# Ours alone: never part of a row that operations see.
HIDDEN = {"load_balancer": frozenset(("version", "revision"))}
_DEFAULTS: dict[str, Mapping[str, Any]] = {
    "amphora": {"cert_busy": False},
    "amphora_health": {"busy": False},
    "amphora_build_request": {"status": "WAITING"},
    "l7rule": {"invert": False},
    "listener": {"client_authentication": "NONE"},
    "operation": {"state": "SENT", "sends": 1},
    "pool": {"tls_enabled": False},
}


def table_of(name: str) -> Table:
    """The table, unqualified; KeyError for a name that is none."""
    return tables_of(None).tables[name]


@cache
def columns_of(table: str) -> tuple[str, ...]:
    """The columns of a row."""
    hidden = HIDDEN.get(table, frozenset())
    return tuple(str(c.name) for c in table_of(table).columns if c.name not in hidden)


@cache
def _names(table: str) -> frozenset[str]:
    return frozenset(columns_of(table))


@cache
def key_of(table: str) -> tuple[str, ...]:
    """The primary key's columns."""
    return tuple(str(c.name) for c in table_of(table).primary_key.columns)


@cache
def blank(table: str) -> Mapping[str, Any]:
    """A row with nothing given."""
    return dict.fromkeys(columns_of(table)) | dict(_DEFAULTS.get(table, {}))


@cache
def has_times(table: str) -> bool:
    """Whether rows know when they were made and last changed."""
    return "updated_at" in columns_of(table)


def made(table: str, row: Row, at: datetime, number: int) -> dict[str, Any]:
    """The whole row that inserting `row` makes.  number: how many rows the change made before it, so that the times of rows made
    together tell their order.  KeyError for a column that the table has not."""
    whole = {**blank(table), **row}
    if len(whole) != len(blank(table)):
        unknown = sorted(set(row) - set(columns_of(table)))
        raise KeyError(f"{table} has no column {', '.join(unknown)}")
    if "created_at" in whole and whole["created_at"] is None and "created_at" not in row:
        whole["created_at"] = at + timedelta(microseconds=number)
    return whole


def changed(table: str, values: Row, at: datetime) -> dict[str, Any]:
    """The values that an update writes: `updated_at` comes by itself unless it is given."""
    if not values.keys() <= _names(table):
        raise KeyError(f"{table} has no column {', '.join(sorted(values.keys() - _names(table)))}")
    if has_times(table) and "updated_at" not in values:
        return {**values, "updated_at": at}
    return dict(values)


def order(table: str) -> tuple[str, ...]:
    """The columns that rows of the table are ordered by where nobody asks for another order; NULL comes first."""
    if table == "l7policy":
        return ("position", "created_at", "id")
    if table == "sni":
        return ("position", "tls_container_id")
    columns = columns_of(table)
    if "created_at" in columns and "id" in columns:
        return ("created_at", "id")
    return key_of(table)


def sort_key(table: str) -> Callable[[Row], tuple[Any, ...]]:
    """Function of a row for `sorted`, in that order."""
    columns = order(table)

    def place(row: Row) -> tuple[Any, ...]:
        # Two of None compare as equal and are never compared with anything else: what stands before them has decided.
        return tuple((row[c] is not None, row[c]) for c in columns)

    return place

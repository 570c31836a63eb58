"""Rows of the original's database as rows of ours: types by column, what is not taken over, and what must not be."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Boolean, DateTime, Float, Integer
from sqlalchemy.dialects.postgresql import JSONB

from roadstead_octavia.db.importer.pickled import read_headers
from roadstead_octavia.db.importer.problem import ImportRefused
from roadstead_octavia.db.rows import blank, columns_of, key_of, table_of
from roadstead_octavia.db.tables import LOOKUPS, NIL, PLACEHOLDERS, tables_of

OWN = frozenset(("operation", "vip_port_claim"))
# The original's tables, each after those it refers to.
TABLES = tuple(name for name in tables_of(None).tables if name not in OWN)
PENDING = "PENDING_"


@dataclass
class Notes:
    """What a person should know about the import.  dropped: values of columns that ours have not, by `table.column`.

    pending: objects whose operation is under way, by table and status.
    """

    dropped: Counter[str] = field(default_factory=Counter)
    pending: Counter[str] = field(default_factory=Counter)


def fitted(table: str, row: Mapping[str, Any], notes: Notes) -> dict[str, Any] | None:
    """The whole row as it is stored, or None for one that is there already (look-up values, placeholders).

    Values come as bytes, str, int, float, datetime or None.  ImportRefused names table, key and column.
    """
    if _is_there(table, row):
        return None
    whole = dict(blank(table))
    for name, value in row.items():
        if name not in whole:
            if value is not None:
                notes.dropped[f"{table}.{name}"] += 1
            continue
        try:
            whole[name] = None if value is None else _reader(table, name)(value)
        except (ValueError, UnicodeDecodeError, ImportRefused) as error:
            raise ImportRefused(f"{_place(table, row)}: {name} cannot be taken over: {error}") from None
    for name in columns_of(table):
        if whole[name] is None and not table_of(table).columns[name].nullable:
            raise ImportRefused(f"{_place(table, row)}: {name} is NULL or missing and must not be")
    if table == "quotas":
        # What a project uses is counted from its rows.
        whole |= {name: None for name in whole if name.startswith("in_use_")}
    status = whole.get("provisioning_status")
    if status is not None and status.startswith(PENDING):
        notes.pending[f"{table} {status}"] += 1
    return whole


def _is_there(table: str, row: Mapping[str, Any]) -> bool:
    if table in LOOKUPS:
        return _text(row.get("name")) in LOOKUPS[table]
    return table in PLACEHOLDERS and _text(row.get(key_of(table)[0])) == NIL


def _place(table: str, row: Mapping[str, Any]) -> str:
    key = ", ".join(f"{name} {_text(row.get(name))}" for name in key_of(table))
    return f"{table} ({key})"


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


@cache
def _reader(table: str, name: str) -> Callable[[Any], Any]:
    kind = table_of(table).columns[name].type
    if isinstance(kind, Boolean):
        return _boolean
    if isinstance(kind, Integer | BigInteger):
        return int
    if isinstance(kind, Float):
        return lambda value: round(float(value), 6)  # 1.1 of a FLOAT of four bytes is 1.1
    if isinstance(kind, DateTime):
        return _time
    if isinstance(kind, JSONB):
        return _headers
    longest = getattr(kind, "length", None)
    return lambda value: _string(value, longest)


def _string(value: Any, longest: int | None) -> str:
    text = value.decode("utf-8") if isinstance(value, bytes) else str(value)
    if "\0" in text:
        raise ValueError("it holds a NUL")
    if longest is not None and len(text) > longest:
        raise ValueError(f"it has {len(text)} characters and at most {longest} are held")
    return text


def _boolean(value: Any) -> bool:
    if isinstance(value, bytes):
        value = int.from_bytes(value, "big") if len(value) == 1 and value < b"\x02" else int(value)
    number = int(value)
    if number not in (0, 1):
        raise ValueError(f"{number} is no boolean")
    return bool(number)


def _time(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    return datetime.fromisoformat(str(_text(value))).replace(tzinfo=None)


def _headers(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, bytes):
        raise ImportRefused("insert_headers is no bytes: dump with --hex-blob")
    return read_headers(value)

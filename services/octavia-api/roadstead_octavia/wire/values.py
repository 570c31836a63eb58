"""Functions of a shown row: how each kind of attribute is taken out of it for an answer.

`operator.itemgetter` where it does, since lists of a thousand objects call these tens of thousands of times.
"""

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

Getter = Callable[[Mapping[str, Any]], Any]


def column(name: str) -> Getter:
    """The value as it is stored; times stay times (`wire.write.dumps` writes them without a fraction)."""
    return itemgetter(name)


def text_of(name: str) -> Getter:
    """A text that is empty where nothing is stored."""
    return lambda row: row[name] or ""


def flag(name: str) -> Getter:
    """A boolean that is false where nothing is stored."""
    return lambda row: bool(row[name])


def inside(relation: str, name: str) -> Getter:
    """A column of a related row; None without one."""

    def value(row: Mapping[str, Any]) -> Any:
        related = row[relation]
        return related[name] if related else None

    return value


def ids(relation: str) -> Getter:
    """`[{"id": ...}, ...]` of a relation that is a list of ids."""
    return lambda row: [{"id": identifier} for identifier in row[relation]]


def only(name: str) -> Getter:
    """`[{"id": ...}]` of a column that holds the one related id."""
    return lambda row: [{"id": row[name]}] if row[name] else []


def commas(name: str) -> Getter:
    """The list that a column holds as text with commas; None where nothing is stored, empty for an empty text."""

    def value(row: Mapping[str, Any]) -> Any:
        stored = row[name]
        return stored.split(",") if stored else (None if stored is None else [])

    return value


def filled(name: str) -> Getter:
    """A list that is None when it is empty."""
    return lambda row: row[name] or None

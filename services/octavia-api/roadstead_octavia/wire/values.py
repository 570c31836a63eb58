"""Functions of a shown row: how each kind of attribute is taken out of it for an answer.

Each is an expression of `row`, compiled once; `writer` puts those of a whole answer into one function, since lists of a thousand objects
would call tens of thousands of them.  An expression is made of names that stand in the resources' descriptions, never of what was sent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Getter = Callable[[Mapping[str, Any]], Any]
Writer = Callable[[Sequence[Mapping[str, Any]]], list[dict[str, Any]]]

_EXPRESSIONS: dict[Getter, str] = {}


def _getter(expression: str) -> Getter:
    made: Getter = eval(f"lambda row: {expression}")  # noqa: S307 - see the module
    _EXPRESSIONS[made] = expression
    return made


def writer(shape: Sequence[tuple[str, Getter]]) -> Writer:
    """A function that gives for each row the object with these attributes in this order."""
    others = {f"g{number}": get for number, (_, get) in enumerate(shape)}
    parts = (
        f"{name!r}: {_EXPRESSIONS.get(get) or f'g{number}(row)'}" for number, (name, get) in enumerate(shape)
    )
    made: Writer = eval(f"lambda rows: [{{{', '.join(parts)}}} for row in rows]", others)  # noqa: S307 - see the module
    return made


def column(name: str) -> Getter:
    """The value as it is stored; times stay times (`wire.write.dumps` writes them without a fraction)."""
    return _getter(f"row[{name!r}]")


def text_of(name: str) -> Getter:
    """A text that is empty where nothing is stored."""
    return _getter(f"row[{name!r}] or ''")


def flag(name: str) -> Getter:
    """A boolean that is false where nothing is stored."""
    return _getter(f"bool(row[{name!r}])")


def inside(relation: str, name: str) -> Getter:
    """A column of a related row; None without one."""
    return _getter(f"row[{relation!r}][{name!r}] if row[{relation!r}] else None")


def ids(relation: str) -> Getter:
    """`[{"id": ...}, ...]` of a relation that is a list of ids."""
    return _getter(f"[{{'id': one}} for one in row[{relation!r}]] if row[{relation!r}] else []")


def only(name: str) -> Getter:
    """`[{"id": ...}]` of a column that holds the one related id."""
    return _getter(f"[{{'id': row[{name!r}]}}] if row[{name!r}] else []")


def commas(name: str) -> Getter:
    """The list that a column holds as text with commas; None where nothing is stored, empty for an empty text."""
    return _getter(f"row[{name!r}].split(',') if row[{name!r}] else None if row[{name!r}] is None else []")


def filled(name: str) -> Getter:
    """A list that is None when it is empty."""
    return _getter(f"row[{name!r}] or None")

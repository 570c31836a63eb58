"""JSON columns as plain values: what both stores accept, and copies that share nothing.

PostgreSQL and memory must agree to the letter on what goes in and what comes out, or a simulated history proves
nothing about production.  So both pass every incoming value through `to_plain`.
"""

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any
from uuid import UUID

import orjson

SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**63 - 1
DEEPEST = 100
_STRICT = (
    orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


def to_plain(value: Any, depth: int = 0) -> Any:
    """A copy made of dict, list, str, int, float, bool and None only.

    Tuples become lists, enums their values, UUIDs their text.  ValueError for anything that JSON in PostgreSQL
    cannot hold: NUL or lone surrogates in a text, NaN, integers beyond 64 bits, keys that are no texts, other types.
    """
    kind = type(value)
    if kind is str:
        return check_text(value)
    if value is None or kind is bool:
        return value
    if depth == 0 and (kind is dict or kind is list):
        try:
            return _copied_by_json(value)
        except (TypeError, ValueError):
            pass  # a value that needs a change, or that is to be refused with its reason
    if kind is dict or isinstance(value, Mapping):
        _check_depth(depth)
        return {_key(key): to_plain(item, depth + 1) for key, item in value.items()}
    if kind is list or kind is tuple:
        _check_depth(depth)
        return [to_plain(item, depth + 1) for item in value]
    if isinstance(value, Enum):
        return to_plain(value.value, depth)
    return _scalar(value)


def _copied_by_json(value: Any) -> Any:
    """The copy of a value that is plain already, ten times as fast.  TypeError or ValueError when it may not be plain."""
    raw = orjson.dumps(value, option=_STRICT)
    if b"\\u0000" in raw or raw.count(b"{") + raw.count(b"[") > DEEPEST:
        raise ValueError
    copy = orjson.loads(raw)
    if copy != value:
        raise ValueError  # NaN, which JSON turns into null, or a tuple
    return copy


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return check_text(str(value))
    if isinstance(value, int):
        if not SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
            raise ValueError(
                f"cannot store the integer {value}: it needs more than 64 bits; store it as text"
            )
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"cannot store {value}: JSON has no such number; store null or a text")
        return float(value)
    if isinstance(value, UUID):
        return str(value)
    raise ValueError(f"cannot store a value of type {type(value).__name__}: convert it to plain JSON first")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        problem = f"cannot store the key {key!r}: keys of JSON objects are texts"
        raise ValueError(problem)
    return check_text(str(key))


def _check_depth(depth: int) -> None:
    if depth > DEEPEST:
        raise ValueError(f"cannot store a value nested deeper than {DEEPEST} levels: flatten it")


def check_text(text: str) -> str:
    """The text itself; ValueError when PostgreSQL cannot hold it."""
    if "\0" in text:
        raise ValueError("cannot store a text with a NUL character: remove it at the door")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError("cannot store a text with a lone surrogate: it is not UTF-8") from None
    return text


def copy_plain(value: Any) -> Any:
    """A copy of a value that `to_plain` made."""
    kind = type(value)
    if kind is dict:
        return {key: copy_plain(item) for key, item in value.items()}
    if kind is list:
        return [copy_plain(item) for item in value]
    return value


def same_json(one: Any, other: Any) -> bool:
    """Whether two plain values are the same JSON; unlike `==` it tells true from 1 and 1 from 1.0."""
    if one is other:
        return True
    if one != other:
        return False
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)

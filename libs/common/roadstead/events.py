"""The envelopes of the bus (events.md section 2): how bytes become values, and values bytes.

Reading is strict about what could hurt (size, depth, NUL, types that other code relies on) and lenient about the rest: unknown
fields are kept.  A refusal is a value with every reason in it, never an exception, so that nothing is lost on the way to the
dead letters.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from roadstead.subjects import MAX_SPEC_BYTES

MAX_DEPTH = 64


@dataclass(frozen=True)
class Refusal:
    """Why a message cannot be read: a stable code and one line for a person."""

    code: str
    message: str


@dataclass(frozen=True)
class SpecMessage:
    """A spec envelope.  delete: a deletion by `{"delete": true}` or metadata.deletionTimestamp."""

    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    delete: bool = False
    cascade: bool = False
    deletion_timestamp: str | None = None
    unknown: tuple[str, ...] = ()  # top-level fields nobody knows


def depth_of(raw: bytes) -> int:
    """The deepest nesting of brackets outside strings; linear, no recursion."""
    deepest = depth = 0
    in_string = escaped = False
    for byte in raw:
        if in_string:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_string = False
        elif byte == 0x22:
            in_string = True
        elif byte in (0x5B, 0x7B):
            depth += 1
            deepest = max(deepest, depth)
        elif byte in (0x5D, 0x7D):
            depth -= 1
    return deepest


def read_json(raw: bytes, limit: int = MAX_SPEC_BYTES) -> dict[str, Any] | Refusal:
    """The JSON object in `raw`, or why there is none."""
    if len(raw) > limit:
        return Refusal("TOO_LARGE", f"the message has {len(raw)} bytes, the limit is {limit}")
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and depth_of(raw) > MAX_DEPTH:
        return Refusal("TOO_DEEP", f"the message is nested deeper than {MAX_DEPTH} levels")
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return Refusal("NOT_JSON", f"the message is not JSON in UTF-8: {error.msg} at byte {error.pos}")
    if not isinstance(value, dict):
        return Refusal("NOT_AN_OBJECT", "the message must be a JSON object with metadata and spec")
    if b"\\u0000" in raw and _has_nul(value):
        return Refusal("NUL", "text must not contain the NUL character")
    return value


def _has_nul(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if "\x00" in item:
                return True
        elif isinstance(item, dict):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return False


def read_spec(raw: bytes) -> SpecMessage | Refusal:
    """A spec or delete envelope."""
    value = read_json(raw)
    return value if isinstance(value, Refusal) else spec_of(value)


def spec_of(value: Mapping[str, Any]) -> SpecMessage | Refusal:
    """The same from an object that is already read."""
    metadata, spec = value.get("metadata", {}), value.get("spec", {})
    for name, part in (("metadata", metadata), ("spec", spec)):
        if not isinstance(part, dict):
            return Refusal("BAD_ENVELOPE", f"{name} must be an object")
    for name in ("delete", "cascade"):
        if not isinstance(value.get(name, False), bool):
            return Refusal("BAD_ENVELOPE", f"{name} must be true or false")
    stamp = metadata.get("deletionTimestamp")
    if stamp is not None and not isinstance(stamp, str):
        return Refusal("BAD_ENVELOPE", "metadata.deletionTimestamp must be a time as text")
    delete = bool(value.get("delete")) or stamp is not None
    if not delete and "spec" not in value:
        return Refusal("BAD_ENVELOPE", 'the message has no spec (a deletion says {"delete": true})')
    known = {"metadata", "spec", "delete", "cascade", "kind", "apiVersion"}
    unknown = tuple(sorted(str(k) for k in value if k not in known))
    clean = {
        k: v
        for k, v in metadata.items()
        if k not in ("deletionTimestamp", "generation", "incarnation", "creationTime")
    }
    return SpecMessage(clean, spec, delete, bool(value.get("cascade")), stamp, unknown)


@dataclass(frozen=True)
class ObservedMessage:
    """What the monitor saw: facts as read.  read_started_at orders observations against each other and our writes."""

    present: bool
    read_started_at: datetime
    sweep: str
    known_resource_version: int
    facts: Mapping[str, Any] = field(default_factory=dict)


def dump(value: Any) -> bytes:
    """JSON bytes with sorted keys, so that equal values are equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z)


def canonical(value: Any) -> str:
    """Text that is equal exactly when two JSON values are; for comparing specs."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

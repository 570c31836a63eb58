"""The envelopes of the bus (events.md section 2): how bytes become values, and values bytes.

Reading is strict about what could hurt (size, depth, NUL, types that other code relies on) and lenient about the rest: unknown
fields are kept.  A refusal is a value with every reason in it, never an exception, so that nothing is lost on the way to the
dead letters.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from roadstead.subjects import MAX_SPEC_BYTES

MAX_DEPTH = 64
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class Refusal:
    """Why a message cannot be read: a stable code and one line for a person.  field: the path that is wrong, where there is one."""

    code: str
    message: str
    field: str = ""

    @property
    def details(self) -> tuple[dict[str, str], ...]:
        """The same as an error's details have it."""
        return ({"code": self.code, "field": self.field, "message": self.message},) if self.field else ()


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


def read_json(raw: bytes, limit: int = MAX_SPEC_BYTES, *, strict: bool = False) -> dict[str, Any] | Refusal:
    """The JSON object in `raw`, or why there is none.  strict: people wrote it, so a field that stands twice is a mistake."""
    if len(raw) > limit:
        return Refusal("TOO_LARGE", f"the message has {len(raw)} bytes, the limit is {limit}")
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and depth_of(raw) > MAX_DEPTH:
        return Refusal("TOO_DEEP", f"the message is nested deeper than {MAX_DEPTH} levels")
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return Refusal("NOT_JSON", f"the message is not JSON in UTF-8: {error.msg} at byte {error.pos}")
    if not isinstance(value, dict):
        return Refusal("NOT_AN_OBJECT", "the message must be a JSON object")
    if b"\\u0000" in raw and _has_nul(value):
        return Refusal("NUL", "text must not contain the NUL character")
    if strict and (path := _repeated(raw)):
        return Refusal("DUPLICATE_FIELD", f"{path} stands twice in the message; which one counts?", path)
    return value


class _Repeated(Exception):
    """An object has a name twice."""


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written."""


def _repeated(raw: bytes) -> str:
    """The path of the first field that stands twice in valid JSON; empty when there is none."""

    def look(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) > 1 and len({name for name, _ in pairs}) < len(pairs):
            raise _Repeated

    # Numbers are not looked at, and may have more digits than Python takes.
    numbers: dict[str, Any] = {"parse_int": str, "parse_float": str}
    try:
        json.loads(raw, object_pairs_hook=look, **numbers)
    except _Repeated:
        return _first_repeated(json.loads(raw, object_pairs_hook=_Pairs, **numbers), "")
    return ""


def _first_repeated(value: Any, path: str) -> str:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, inner in value:
            place = f"{path}.{name}" if path else name
            if name in seen:
                return place
            seen.add(name)
            if found := _first_repeated(inner, place):
                return found
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if found := _first_repeated(inner, f"{path}[{index}]"):
                return found
    return ""


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
    value = read_json(raw, strict=True)
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
    if path := _unprintable(metadata, spec):
        return Refusal("CONTROL_CHARACTER", f"{path} must not contain control characters", path)
    known = {"metadata", "spec", "delete", "cascade", "kind", "apiVersion"}
    unknown = tuple(sorted(str(k) for k in value if k not in known))
    clean = {
        k: v
        for k, v in metadata.items()
        if k not in ("deletionTimestamp", "generation", "incarnation", "creationTime")
    }
    return SpecMessage(clean, spec, delete, bool(value.get("cascade")), stamp, unknown)


def _unprintable(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """The path of the first name with a control character or a line break; empty for none.  Descriptions may have lines."""
    for name, value in metadata.items():
        if name != "description" and isinstance(value, str) and _CONTROL.search(value):
            return f"metadata.{name}"
    return _unprintable_name(metadata.get("tags"), "metadata.tags") or _unprintable_name(spec, "spec")


def _unprintable_name(value: Any, path: str) -> str:
    if isinstance(value, dict):
        for name, inner in value.items():
            place = f"{path}.{name}"
            if name == "name" and isinstance(inner, str):
                if _CONTROL.search(inner):
                    return place
            elif found := _unprintable_name(inner, place):
                return found
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if found := _unprintable_name(inner, f"{path}[{index}]"):
                return found
    return ""


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

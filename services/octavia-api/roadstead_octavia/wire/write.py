"""Answers from shown rows: the same table for one object and for a thousand.

A *shown row* is a row with its relations (`db.port.RELATIONS`).  Answers are plain values that hold times as they are; `dumps` is the
one place that makes bytes of them, with times to the second and without a zone.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from roadstead_octavia.wire.describe import Resource
from roadstead_octavia.wire.values import Getter, Writer, writer

Shape = tuple[tuple[str, Getter], ...]


def dumps(body: Any) -> bytes:
    """JSON of an answer; times as `YYYY-MM-DDTHH:MM:SS`."""
    return orjson.dumps(body, option=orjson.OPT_OMIT_MICROSECONDS)


def one(resource: Resource, row: Mapping[str, Any], fields: Collection[str] | None = None) -> dict[str, Any]:
    """The answer that shows one object.  fields: attributes to keep; unknown ones are ignored, None or empty keeps all."""
    return {resource.one: _objects(resource, (row,), fields)[0]}


def many(
    resource: Resource,
    rows: Sequence[Mapping[str, Any]],
    links: Sequence[Mapping[str, str]] | None,
    fields: Collection[str] | None = None,
) -> dict[str, Any]:
    """The answer that lists objects.  links: to the next and the previous page; None: the list has no links."""
    body: dict[str, Any] = {resource.many: _objects(resource, rows, fields)}
    if links is not None and resource.links:
        body[resource.links] = links
    return body


def full(resource: Resource, row: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a graph creation: the object with everything below it (`resources.shown.full`)."""
    return {resource.one: _whole_object(resource, row)}


def whole(relation: str, resource: Resource) -> Callable[[Mapping[str, Any]], Any]:
    """A getter for `Resource.full`: the one related object in full, or None."""

    def value(row: Mapping[str, Any]) -> Any:
        related = row[relation]
        return None if related is None else _whole_object(resource, related)

    return value


def wholes(relation: str, resource: Resource) -> Callable[[Mapping[str, Any]], Any]:
    """A getter for `Resource.full`: all related objects in full."""
    return lambda row: [_whole_object(resource, related) for related in row[relation]]


def _objects(
    resource: Resource, rows: Sequence[Mapping[str, Any]], fields: Collection[str] | None
) -> list[dict[str, Any]]:
    shape: Shape = tuple(resource.shown.items())
    if fields:
        shape = tuple((name, get) for name, get in shape if name in fields)
    objects = _writer(shape)(rows)
    for name in resource.optional:
        for found in objects:
            if found.get(name, "") is None:
                del found[name]
    return objects


def _whole_object(resource: Resource, row: Mapping[str, Any]) -> dict[str, Any]:
    getters = {**resource.shown, **resource.full}
    return _writer(tuple((name, get) for name, get in getters.items() if get is not None))((row,))[0]


@lru_cache(maxsize=1024)
def _writer(shape: Shape) -> Writer:
    return writer(shape)

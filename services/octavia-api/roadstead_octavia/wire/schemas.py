"""JSON schemas of bodies and answers, made from the descriptions.

What a field takes besides (numbers as texts, `yes` for true) is leniency for old clients and not written down here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from roadstead_octavia.wire.check import LARGEST, SMALLEST
from roadstead_octavia.wire.describe import Body, Field, Kind, Resource

Schema = dict[str, Any]

_UUID: Schema = {"type": "string", "format": "uuid"}
_IDS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": False,
    },
}
_TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
_TIME: Schema = {
    "type": ["string", "null"],
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$",
    "description": "UTC, without a zone.",
}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_INTEGER_OR_NULL: Schema = {"type": ["integer", "null"]}
LINKS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"rel": {"enum": ["next", "previous"]}, "href": {"type": "string"}},
        "required": ["rel", "href"],
    },
}
# Attributes of answers that are not what a body has under that name.
_SHOWN: Mapping[str, Schema] = {
    "id": {"type": "string"},
    "created_at": _TIME,
    "updated_at": _TIME,
    "cert_expiration": _TIME,
    "listeners": _IDS,
    "pools": _IDS,
    "loadbalancers": _IDS,
    "l7policies": _IDS,
    "rules": _IDS,
    "members": _IDS,
    "name": {"type": "string"},
    "description": {"type": "string"},
    "tags": _TEXTS,
    "additional_vips": {"type": "array", "items": {"type": "object"}},
    "sni_container_refs": _TEXTS,
    "vip_sg_ids": _TEXTS,
    "allowed_cidrs": {"type": ["array", "null"], "items": {"type": "string"}},
    "tls_versions": {"type": ["array", "null"], "items": {"type": "string"}},
    "alpn_protocols": {"type": ["array", "null"], "items": {"type": "string"}},
    "insert_headers": {"type": "object", "additionalProperties": {"type": "string"}},
    "session_persistence": {"type": ["object", "null"]},
    "position": {"type": "integer"},
    "healthmonitor_id": _UUID,
    "cert_busy": {"type": "boolean"},
    "vrrp_id": _INTEGER_OR_NULL,
    "vrrp_priority": _INTEGER_OR_NULL,
}


def bodies(resource: Resource) -> Iterator[Body]:
    """The forms of a resource, and the forms nested in them, innermost first."""
    for body in (resource.post, resource.put):
        if body is not None:
            yield from _nested(body)


def _nested(body: Body) -> Iterator[Body]:
    for field in body.fields.values():
        inner = field.of.of if isinstance(field.of, Field) else field.of
        if isinstance(inner, Body):
            yield from _nested(inner)
    yield body


def body_schema(body: Body) -> Schema:
    """The schema of one form."""
    properties = {
        name: {**field_schema(field), "deprecated": True} if field.alias_of else field_schema(field)
        for name, field in body.fields.items()
    }
    required = [name for name, field in body.fields.items() if field.required]
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def field_schema(field: Field) -> Schema:
    """The schema of one attribute of a form."""
    schema = _plain(field)
    if not field.nullable:
        return schema
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    if "$ref" in schema:
        return {"oneOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def _plain(field: Field) -> Schema:
    """Without null."""
    match field.kind:
        case Kind.INTEGER:
            return {
                "type": "integer",
                "minimum": SMALLEST if field.minimum is None else field.minimum,
                "maximum": LARGEST if field.maximum is None else field.maximum,
            }
        case Kind.BOOLEAN:
            return {"type": "boolean"}
        case Kind.ENUM | Kind.FLOAT_ENUM | Kind.ALPN:
            return {"enum": list(field.choices)}
        case Kind.UUID:
            return dict(_UUID)
        case Kind.IP:
            return {"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}
        case Kind.URL:
            return {"type": "string", "format": "uri", "maxLength": field.maximum_length}
        case Kind.OBJECT:
            assert isinstance(field.of, Body)
            return {"$ref": reference(field.of.type_name)}
        case Kind.ARRAY:
            assert isinstance(field.of, Field)
            items: Schema = {"type": "array", "items": _plain(field.of)}
            return {**items, "maxItems": 0} if field.only_empty else items
        case Kind.MAPPING:
            assert isinstance(field.of, Field)
            return {"type": "object", "additionalProperties": _plain(field.of)}
        case _:
            return _text(field)


def _text(field: Field) -> Schema:
    bounds = {
        "minLength": field.minimum_length,
        "maxLength": field.maximum_length,
        "pattern": field.pattern,
    }
    return {"type": "string", **{name: bound for name, bound in bounds.items() if bound is not None}}


def shown_schema(resource: Resource) -> Schema:
    """The schema of an object in an answer; every attribute can be left out by `fields`."""
    return {
        "type": "object",
        "properties": {name: _shown(resource, name) for name in resource.shown},
        "additionalProperties": False,
    }


def _shown(resource: Resource, name: str) -> Schema:
    if name in _SHOWN:
        return _SHOWN[name]
    for body in (resource.post, resource.put):
        if body is not None and name in body.fields:
            kind = body.fields[name].kind
            if kind is Kind.INTEGER:
                return _INTEGER_OR_NULL
            if kind is Kind.BOOLEAN:
                return {"type": ["boolean", "null"]}
            if kind is Kind.FLOAT_ENUM:
                return {"type": ["number", "null"]}
            if kind is Kind.ENUM and isinstance(body.fields[name].choices[0], int):
                return _INTEGER_OR_NULL
    return _TEXT_OR_NULL


def reference(name: str) -> str:
    return f"#/components/schemas/{name}"

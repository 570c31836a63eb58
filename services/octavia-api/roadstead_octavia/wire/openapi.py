"""The API as an OpenAPI 3.1 document, made from the route table and the descriptions.

`python -m roadstead_octavia.wire.openapi` prints it.  Each operation is listed once, under the first of its prefixes.
"""

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from roadstead_octavia.http.operations import resource_of
from roadstead_octavia.http.routes import PAGING, ROUTES, TAGS, Route
from roadstead_octavia.resources.member.wire import BATCH
from roadstead_octavia.wire.describe import Body, Resource
from roadstead_octavia.wire.schemas import LINKS, Schema, bodies, body_schema, reference, shown_schema
from roadstead_octavia.wire.trees import STATISTICS

VERSION = "2.27"
JSON = "application/json"
REFUSALS = {
    "400": "The request cannot be understood, or asks for something that is not possible.",
    "401": "No valid token.",
    "403": "The policy or a quota does not allow it.",
    "404": "There is no such object.",
    "409": "The object is in a state, or exists already, so that it cannot be done.",
    "413": "The body is too large.",
    "415": "The body is of a type that is not read.",
    "500": "The provider reports an error, or the service failed.",
    "501": "The provider cannot do it.",
    "503": "A service that is needed does not answer; try again.",
}
_FAULT: Schema = {
    "oneOf": [
        {
            "type": "object",
            "properties": {
                "faultcode": {"enum": ["Client", "Server"]},
                "faultstring": {"type": "string"},
                "debuginfo": {"type": "null"},
            },
            "required": ["faultcode", "faultstring"],
        },
        {
            "type": "object",
            "properties": {
                "code": {"type": "integer"},
                "title": {"type": "string"},
                "description": {"type": ["string", "null"]},
            },
            "required": ["code", "title"],
        },
        {"type": "object", "properties": {"error": {"type": "object"}}, "required": ["error"]},
    ]
}
_STATISTICS: Schema = {
    "type": "object",
    "properties": {name: {"type": "integer", "minimum": 0} for name in STATISTICS},
    "required": list(STATISTICS),
}
_CAPABILITIES: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "description": {"type": "string"}},
    },
}
# What operations answer that show no object of their resource.
_ANSWERS: Mapping[str, Schema] = {
    "loadbalancer.status": {"statuses": {"type": "object"}},
    "loadbalancer.statuses": {"statuses": {"type": "object"}},
    "loadbalancer.stats": {"stats": {"$ref": reference("Statistics")}},
    "listener.stats": {"stats": {"$ref": reference("Statistics")}},
    "amphora.stats": {"amphora_stats": {"type": "array", "items": {"type": "object"}}},
    "provider.flavor_capabilities": {"flavor_capabilities": _CAPABILITIES},
    "provider.availability_zone_capabilities": {"availability_zone_capabilities": _CAPABILITIES},
    "loadbalancer.create": {"loadbalancer": {"type": "object"}},
}
_WITHOUT_BODY = frozenset(
    ("member.batch", "quota.delete", "loadbalancer.failover", "amphora.config", "amphora.failover")
)


def document() -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.prefixes[0] + route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Load balancing",
            "version": VERSION,
            "description": "The Octavia API, version 2, as Roadstead serves it.",
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    resource = resource_of(route.resource)
    answer: dict[str, Any] = {"description": "Done."}
    schema = _answer(route, resource)
    if schema is not None:
        answer["content"] = {JSON: {"schema": schema}}
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "tags": [route.resource],
        "parameters": _parameters(route, resource),
        "responses": {
            str(route.success): answer,
            **{
                status: {
                    "description": text,
                    "content": {JSON: {"schema": {"$ref": reference("Fault")}}, "text/plain": {}},
                }
                for status, text in REFUSALS.items()
            },
        },
    }
    if route.takes is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": _body(route, resource)}}}
    return operation


def _parameters(route: Route, resource: Resource) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    names: set[str] = set(route.arguments or ())
    if route.function == "list_":
        names |= {*PAGING, *resource.filters, *(TAGS if resource.tagged else ())}
    elif route.arguments is None:
        names |= {"fields"}
    many = {"fields", "sort_key", "sort_dir", *TAGS}
    for name in sorted(names):
        schema: Schema = {"type": "string"}
        found.append(
            {
                "name": name,
                "in": "query",
                "schema": {"type": "array", "items": schema} if name in many else schema,
            }
        )
    return found


def _body(route: Route, resource: Resource) -> Schema:
    if route.operation == "member.batch":
        return {"$ref": reference(BATCH.type_name)}
    form = resource.post if route.takes == "POST" else resource.put
    assert form is not None
    return _root({resource.one: {"$ref": reference(form.type_name)}}, closed=True)


def _answer(route: Route, resource: Resource) -> Schema | None:
    if route.success == 204 or route.operation in _WITHOUT_BODY:
        return None
    if route.operation in _ANSWERS:
        return _root(_ANSWERS[route.operation])
    shown: Schema = {"$ref": reference(_name(route.resource))}
    if route.function != "list_":
        return _root({resource.one: shown})
    listed = {resource.many: {"type": "array", "items": shown}}
    return _root({**listed, resource.links: LINKS} if resource.links else listed)


def _root(properties: Mapping[str, Schema], *, closed: bool = False) -> Schema:
    schema: Schema = {"type": "object", "properties": dict(properties), "required": list(properties)}
    return {**schema, "additionalProperties": False} if closed else schema


def _schemas() -> dict[str, Schema]:
    forms: dict[str, Body] = {BATCH.type_name: BATCH}
    schemas: dict[str, Schema] = {"Fault": _FAULT, "Statistics": _STATISTICS}
    for name in sorted({route.resource for route in ROUTES}):
        resource = resource_of(name)
        schemas[_name(name)] = shown_schema(resource)
        forms.update((body.type_name, body) for body in bodies(resource))
    return schemas | {name: body_schema(body) for name, body in forms.items()}


def _name(resource: str) -> str:
    return "".join(part.capitalize() for part in resource.split("_")) + "Shown"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(), indent=2) + "\n")

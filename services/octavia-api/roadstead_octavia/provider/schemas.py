"""JSON Schemas of every message between the API and a provider, made from the same tables as the messages.

`python -m roadstead_octavia.provider.schemas` prints docs/provider-protocol.md: the text of `protocol.md` beside this file with the
schemas in it; a test keeps the page equal.
"""

import json
import sys
from importlib.resources import files
from typing import Any

from roadstead_octavia.provider.conclude import End
from roadstead_octavia.provider.judge import COUNTERS, KINDS, OPERATING, PROVISIONING
from roadstead_octavia.provider.shown import FIELDS

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXT = {"type": "string"}
MAYBE_TEXT = {"type": ["string", "null"]}
NUMBER = {"type": "integer"}
MAYBE_NUMBER = {"type": ["integer", "null"]}
TRUTH = {"type": "boolean"}
OBJECT = {"type": "object"}
MAYBE_OBJECT = {"type": ["object", "null"]}
TEXTS = {"type": "array", "items": TEXT}
MAYBE_TEXTS = {"type": ["array", "null"], "items": TEXT}
ERRORS = ("Conflict", "DriverError", "NotImplemented", "UnsupportedOption")

_NUMBERS = {"protocol_port", "position", "delay", "max_retries", "max_retries_down", "timeout"}
_MAYBE_NUMBERS = {
    "connection_limit",
    "hsts_max_age",
    "monitor_port",
    "redirect_http_code",
    "timeout_client_data",
    "timeout_member_connect",
    "timeout_member_data",
    "timeout_tcp_inspect",
    "weight",
}
_TRUTHS = {"admin_state_up", "backup", "invert", "tls_enabled"}
_MAYBE_TRUTHS = {"hsts_include_subdomains", "hsts_preload"}
_TEXT_LISTS = {"allowed_cidrs", "alpn_protocols", "sni_container_refs", "tls_versions", "vip_sg_ids"}
_OBJECTS = {
    "default_tls_container_data",
    "flavor",
    "insert_headers",
    "session_persistence",
    "tls_container_data",
}
_MODELS: dict[str, str | list[str]] = {
    "default_pool": "Pool",
    "healthmonitor": "HealthMonitor",
    "l7policies": ["L7Policy"],
    "listeners": ["Listener"],
    "members": ["Member"],
    "pools": ["Pool"],
    "rules": ["L7Rule"],
}
_OWN_IDS = {
    "Listener": "listener_id",
    "Pool": "pool_id",
    "Member": "member_id",
    "LoadBalancer": "loadbalancer_id",
} | {
    "HealthMonitor": "healthmonitor_id",
    "L7Policy": "l7policy_id",
    "L7Rule": "l7rule_id",
}


def _field(name: str) -> dict[str, Any]:
    if name in _MODELS:
        model = _MODELS[name]
        if isinstance(model, list):
            return {"type": ["array", "null"], "items": _to(model[0])}
        return {"anyOf": [_to(model), {"type": "null"}]}
    if name == "sni_container_data":
        return {"type": "array", "items": OBJECT}
    if name == "additional_vips":
        return {"type": "array", "items": OBJECT}
    if name == "availability_zone":
        return {"type": ["object", "string", "null"]}
    if name == "http_version":
        return {"type": ["number", "null"]}
    for names, schema in (
        (_NUMBERS, NUMBER),
        (_MAYBE_NUMBERS, MAYBE_NUMBER),
        (_TRUTHS, TRUTH),
        (_MAYBE_TRUTHS, {"type": ["boolean", "null"]}),
        (_TEXT_LISTS, MAYBE_TEXTS),
        (_OBJECTS, MAYBE_OBJECT),
    ):
        if name in names:
            return schema
    return MAYBE_TEXT


def _to(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def models() -> dict[str, Any]:
    """Definitions of the data models; a field that is not set is absent."""
    return {
        name: {
            "type": "object",
            "properties": {"$type": {"const": name}, **{field: _field(field) for field in sorted(fields)}},
            "required": ["$type", _OWN_IDS[name]],
            "additionalProperties": False,
        }
        for name, fields in FIELDS.items()
    }


def _closed(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": sorted(required),
        "additionalProperties": False,
    }


def _open(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **optional}, "required": sorted(required)}


def _reply(**more: Any) -> dict[str, Any]:
    error = _closed({"class": {"enum": list(ERRORS)}}, user=MAYBE_TEXT, operator=MAYBE_TEXT)
    return {"oneOf": [_closed({"ok": {"const": True}, **more}), _closed({"error": error})]}


def _lists(record: dict[str, Any]) -> dict[str, Any]:
    return {kind: {"type": "array", "items": record} for kind in KINDS}


def _status() -> dict[str, Any]:
    record = _open(
        {"id": TEXT},
        provisioning_status={"enum": sorted(PROVISIONING)},
        operating_status={"enum": sorted(OPERATING)},
    )
    return _open({}, revision=NUMBER, loadbalancer_id=TEXT, **_lists(record))


def _tree() -> dict[str, Any]:
    pair = {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}
    return _closed(
        {
            "loadbalancer_id": TEXT,
            "provider": TEXT,
            "revision": NUMBER,
            "vip_port_owned": TRUTH,
            "loadbalancer": _to("LoadBalancer"),
            "statuses": {
                "type": "object",
                "properties": {kind: {"type": "object", "additionalProperties": pair} for kind in KINDS},
                "additionalProperties": False,
            },
        }
    )


def messages() -> dict[str, dict[str, Any]]:
    """Every schema by its name, each complete in itself."""
    arguments = {"type": "array", "items": {}}
    statistics = _open({"id": TEXT, **{name: {"type": "integer", "minimum": 0} for name in COUNTERS}})
    faulted = _closed(
        {"status_code": {"enum": [200, 500]}},
        fault_string=TEXT,
        status_object=TEXT,
        status_object_id=MAYBE_TEXT,
        stats_object=TEXT,
    )
    call = _closed(
        {
            "operation": TEXT,
            "send": {"type": "integer", "minimum": 1},
            "loadbalancer_id": TEXT,
            "revision": NUMBER,
            "method": TEXT,
            "object": TEXT,
            "verb": TEXT,
            "objects": {
                "type": "object",
                "properties": dict.fromkeys(KINDS, TEXTS),
                "additionalProperties": False,
            },
            "removes": TEXTS,
            "deadline": {"type": "string", "format": "date-time"},
        },
        arguments=arguments,
        tree=_tree(),
    )
    result = _open(
        {
            "operation": TEXT,
            "loadbalancer_id": TEXT,
            "revision": NUMBER,
            "outcome": {"enum": [End.SUCCESS.value, End.FAILURE.value]},
        },
        statuses=_open({}, **_lists(_status()["properties"]["pools"]["items"])),
        user=MAYBE_TEXT,
        operator=MAYBE_TEXT,
    )
    found = {
        "check": _closed({"method": TEXT, "arguments": arguments, "revision": NUMBER}),
        "check-reply": _reply(),
        "ask": _closed({"arguments": arguments}),
        "ask-reply": _reply(returns={}),
        "call": call,
        "result": result,
        "status": _status(),
        "statistics": _open({"listeners": {"type": "array", "items": statistics}}),
        "report-reply": faulted,
        "get": _open({"object": {"enum": list(KINDS)}, "id": TEXT}),
        "tree-request": _closed(
            {},
            loadbalancer_id=TEXT,
            object={"enum": list(KINDS)},
            id=TEXT,
            after=MAYBE_TEXT,
            bytes={"type": "integer", "minimum": 1},
        ),
        "tree-reply": {
            "oneOf": [
                _closed({"tree": {"anyOf": [_tree(), {"type": "null"}]}}),
                _closed({"trees": {"type": "array", "items": _tree()}, "next": MAYBE_TEXT}),
            ]
        },
    }
    definitions = models()
    return {
        name: {"$schema": DRAFT, "title": name, **schema, **_used(schema, definitions)}
        for name, schema in found.items()
    }


def _used(schema: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The definitions that a schema refers to, directly or not."""
    names: set[str] = set()
    stack = [schema]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            reference = item.get("$ref")
            if isinstance(reference, str) and (name := reference.rpartition("/")[2]) not in names:
                names.add(name)
                stack.append(definitions[name])
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return {"$defs": {name: definitions[name] for name in sorted(names)}} if names else {}


# Who speaks on which subject: address, what the API does there, the message, its reply, what it is.
CHANNELS = (
    ("rpc.provider.{provider}.check", "send", "check", "check-reply", "Would you carry this call out?"),
    ("rpc.provider.{provider}.ask.{method}", "send", "ask", "ask-reply", "A call that returns a value"),
    ("provider.{provider}.call.{object}.{verb}", "send", "call", None, "An operation to carry out"),
    ("provider.{provider}.result", "receive", "result", None, "How an operation ended"),
    ("provider.{provider}.status", "receive", "status", None, "How objects stand"),
    ("provider.{provider}.statistics", "receive", "statistics", None, "Counters of listeners"),
    ("rpc.provider.{provider}.status", "receive", "status", "report-reply", "How objects stand"),
    ("rpc.provider.{provider}.statistics", "receive", "statistics", "report-reply", "Counters of listeners"),
    ("rpc.provider.{provider}.get", "receive", "get", None, "One object; the reply is the object or empty"),
    ("rpc.provider.{provider}.tree", "receive", "tree-request", "tree-reply", "What a provider renders from"),
)


def channels() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The seam for the AsyncAPI document: channels, operations, messages, schemas."""
    found: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    for address, action, message, reply, text in CHANNELS:
        name = "octavia-api-" + address.replace("{", "").replace("}", "").replace(".", "-")
        carried = [message, *([reply] if reply else [])]
        words = [part.strip("{}") for part in address.split(".") if part.startswith("{")]
        found[name] = {
            "address": address,
            "description": text,
            "servers": [{"$ref": "#/servers/broker"}],
            "parameters": {word: {"description": f"The {word}'s name"} for word in words},
            "messages": {one: {"$ref": f"#/components/messages/provider-{one}"} for one in carried},
        }
        operations[name] = {
            "action": action,
            "channel": {"$ref": f"#/channels/{name}"},
            "messages": [{"$ref": f"#/channels/{name}/messages/{message}"}],
        }
        if reply:
            operations[name]["reply"] = {
                "channel": {"$ref": f"#/channels/{name}"},
                "messages": [{"$ref": f"#/channels/{name}/messages/{reply}"}],
            }
    schemas: dict[str, Any] = {f"provider-model-{name}": _moved(model) for name, model in models().items()}
    for name, schema in messages().items():
        own = {key: value for key, value in schema.items() if key not in ("$defs", "$schema")}
        schemas[f"provider-{name}"] = _moved(own)
    told = {
        f"provider-{name}": {"title": name, "payload": {"$ref": f"#/components/schemas/provider-{name}"}}
        for name in messages()
    }
    return found, operations, told, schemas


def _moved(value: Any) -> Any:
    """A schema whose references lead to where the document holds the models."""
    if isinstance(value, dict):
        return {
            key: item.replace("#/$defs/", "#/components/schemas/provider-model-")
            if key == "$ref" and isinstance(item, str)
            else _moved(item)
            for key, item in value.items()
        }
    return [_moved(item) for item in value] if isinstance(value, list) else value


def page() -> str:
    """docs/provider-protocol.md."""
    text = (files("roadstead_octavia.provider") / "protocol.md").read_text()
    parts = [text.rstrip() + "\n"]
    shared: dict[str, Any] = {}
    for name, schema in messages().items():
        own = {key: value for key, value in schema.items() if key != "$defs"}
        shared |= schema.get("$defs", {})
        parts.append(f"### `{name}`\n\n```json\n{json.dumps(own, separators=(', ', ': '))}\n```\n")
    parts.append("### Data models (`$defs` of each schema that refers to them)\n")
    parts.append(f"```json\n{json.dumps(dict(sorted(shared.items())), indent=1)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())

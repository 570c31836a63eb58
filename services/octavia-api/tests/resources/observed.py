"""Requests that were observed on the original, with the tree that they were made on: what `validation-cases.yaml` records.

Objects are named as there: lb, li, liu (UDP), lip (PROMETHEUS), po (default pool of li), pox, poh (HTTPS), pou (UDP), me, hm, lp, lr, and
lb2, po2 of another load balancer.
"""

import ast
import importlib
import json
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roadstead_octavia.call import Answer
from roadstead_octavia.errors import ApiError
from roadstead_octavia.http.operations import resource_of
from roadstead_octavia.resources.member.wire import read_batch
from roadstead_octavia.wire.read import read

from .world import LB, OPTIONS, World, a_row

ROOT = Path(__file__).resolve().parents[5]
FILE = ROOT / "shared" / "octavia-facts" / "validation-cases.yaml"
RESOURCES = ("listener", "pool", "member", "healthmonitor", "l7policy", "l7rule")
NAMES = ("li", "liu", "lip", "po", "pox", "poh", "pou", "me", "hm", "lp", "lr", "lb2", "po2")
IDS = {"lb": LB, **{name: str(uuid.uuid5(uuid.NAMESPACE_DNS, name)) for name in NAMES}}
UNKNOWN = "00000000-1111-4222-8333-444444444444"
JSON = "application/json"


def tree() -> World:
    """The tree that the requests were made on."""
    rows: list[tuple[str, dict[str, Any]]] = []

    def add(table: str, name: str, **given: Any) -> None:
        rows.append((table, a_row(table, id=IDS[name], **given)))

    for name, protocol, port in (("li", "HTTP", 80), ("liu", "UDP", 53), ("lip", "PROMETHEUS", 8088)):
        pool = IDS["po"] if name == "li" else None
        add(
            "listener", name, load_balancer_id=LB, protocol=protocol, protocol_port=port, default_pool_id=pool
        )
    for name, protocol in (("po", "HTTP"), ("pox", "HTTP"), ("pou", "UDP"), ("poh", "HTTPS")):
        add("pool", name, load_balancer_id=LB, protocol=protocol, lb_algorithm="ROUND_ROBIN")
    add("member", "me", pool_id=IDS["po"], ip_address="10.0.0.1", protocol_port=80, weight=1, backup=False)
    times = {"delay": 3, "timeout": 1, "rise_threshold": 1, "fall_threshold": 3}
    request = {"http_method": "GET", "url_path": "/", "expected_codes": "200"}
    add("health_monitor", "hm", pool_id=IDS["po"], type="HTTP", **times, **request)
    add("l7policy", "lp", listener_id=IDS["li"], action="REJECT", position=1)
    add("l7rule", "lr", l7policy_id=IDS["lp"], type="PATH", compare_type="STARTS_WITH", value="/a")
    return World(*rows, options=OPTIONS)


def value(text: str) -> Any:
    """A recorded body with ids in place of names."""
    return ast.literal_eval(named(text))


def named(text: str) -> str:
    for name, identifier in IDS.items():
        text = text.replace(f"<{name}>", identifier)
    return text.replace("<uuid>", UNKNOWN)


def shown(text: str) -> str:
    """A text with names in place of ids, and the choices of a list in order: the original prints sets."""
    for name, identifier in IDS.items():
        text = text.replace(identifier, f"<{name}>")
    text = text.replace(UNKNOWN, "<uuid>")
    head, mark, choices = text.partition("should be one of: ")
    return head + mark + ", ".join(sorted(choices.split(", "))) if mark else text


async def asked(world: World, case: Mapping[str, Any]) -> Answer | ApiError:
    """What we answer to a recorded request."""
    _, path = case["request"].split()
    path, _, query = path.partition("?")
    resource_name, operation_name = case["op"].split(".")
    resource = resource_of(resource_name)
    operations = importlib.import_module(f"roadstead_octavia.resources.{resource_name}.operations")
    ids = tuple(re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", named(path)))
    try:
        body: Mapping[str, Any] = {}
        if "body" in case:
            sent = json.dumps(value(case["body"])).encode()
            if operation_name == "batch":
                body = read_batch(sent, JSON, OPTIONS)
            else:
                way: Any = "POST" if operation_name == "create" else "PUT"
                body = read(resource, sent, JSON, method=way, options=OPTIONS)
        arguments = dict(pair.split("=") for pair in query.split("&") if pair)
        return await world.do(getattr(operations, operation_name), body, *ids, **arguments)
    except ApiError as error:
        return error

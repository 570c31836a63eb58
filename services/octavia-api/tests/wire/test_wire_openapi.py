"""The OpenAPI document: whole, consistent, and about the routes and forms that there are."""

import json
import re
import subprocess
import sys

import pytest

from roadstead_octavia.http.routes import ROUTES
from roadstead_octavia.wire.openapi import document

from .recorded import RESOURCES


def test_every_route_is_an_operation_with_its_success_and_refusals() -> None:
    paths = document()["paths"]
    for route in ROUTES:
        operation = paths[route.prefixes[0] + route.path][route.method.lower()]
        assert operation["operationId"] == route.operation
        assert str(route.success) in operation["responses"]
        assert ("requestBody" in operation) == (route.takes is not None)
        declared = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
        assert declared == re.findall(r"{(\w+)}", route.path)
    assert sum(len(operations) for operations in paths.values()) == len(ROUTES)


def test_every_reference_leads_to_a_schema() -> None:
    whole = document()
    schemas = whole["components"]["schemas"]
    used = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(whole)))
    assert used <= set(schemas)
    assert {
        "ListenerSingle",
        "PoolSingle",
        "MemberBatch",
        "SessionPersistencePut",
        "LoadbalancerShown",
    } <= used


def test_forms_are_described_with_their_bounds() -> None:
    schemas = document()["components"]["schemas"]
    member = schemas["MemberPost"]
    assert member["required"] == ["address", "protocol_port"]
    assert member["properties"]["weight"] == {"type": ["integer", "null"], "minimum": 0, "maximum": 256}
    assert member["properties"]["address"]["type"] == "string"
    assert member["properties"]["tenant_id"]["deprecated"] is True
    pool = RESOURCES["pool"].post
    assert pool is not None
    assert schemas["PoolPost"]["properties"]["protocol"] == {"enum": list(pool.fields["protocol"].choices)}
    assert member["additionalProperties"] is False


def test_lists_name_their_filters() -> None:
    operation = document()["paths"]["/v2/lbaas/loadbalancers"]["get"]
    names = {p["name"] for p in operation["parameters"]}
    assert {"limit", "marker", "sort", "fields", "tags", "vip_address", "admin_state_up"} <= names


def test_tools_read_the_document() -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    schema = schemathesis.openapi.from_dict(document())
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == len(ROUTES)


def test_the_module_prints_the_document() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "roadstead_octavia.wire.openapi"], capture_output=True, check=True, timeout=60
    )
    assert json.loads(printed.stdout) == json.loads(json.dumps(document()))

"""The published schemas are true: every message that is sent or taken keeps to them, and the page shows them."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest

from roadstead_octavia.provider import calls, models, schemas, shown
from roadstead_octavia.provider.noop import driver
from roadstead_octavia.provider.noop.driver import Manner

from .conftest import operation
from .recorded import calls as recorded_calls
from .recorded import needs_recordings
from .trees import AT, IDS, LB, LISTENER, POOL, a_tree

PAGE = Path(__file__).resolve().parents[4] / "docs/provider-protocol.md"
SCHEMAS = schemas.messages()


def keeps(name: str, value: Any) -> None:
    jsonschema_rs.Draft202012Validator(SCHEMAS[name]).validate(value)


def a_call() -> dict[str, Any]:
    made = operation("pool_update", list(IDS), arguments=[models.pool(a_tree(), POOL)])
    sending = calls.Sending(calls.row_of(made, LB, AT), a_tree(), 7, 2, {})
    subject, data, headers = calls.message(sending)
    assert subject == "provider.noop.call.pool.update"
    assert headers["Nats-Msg-Id"] == f"{made.id}.2"
    found: dict[str, Any] = orjson.loads(data)
    return found


def test_the_page_is_as_generated() -> None:
    assert PAGE.read_text() == schemas.page(), "run `make docs`"


def test_the_page_names_every_schema_and_no_other() -> None:
    text = PAGE.read_text()
    assert set(re.findall(r"^### `([a-z-]+)`$", text, re.MULTILINE)) == set(SCHEMAS)
    named = set(re.findall(r"`([a-z-]+)`", text.split("## check and ask")[0].split("## Subjects")[1]))
    assert {"check", "ask", "call", "result", "status", "statistics", "get", "tree-request"} <= named & set(
        SCHEMAS
    )


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_each_schema_is_one(name: str) -> None:
    assert jsonschema_rs.meta.is_valid(SCHEMAS[name])


def test_calls_results_and_trees_keep_to_the_schemas() -> None:
    call = a_call()
    keeps("call", call)
    keeps("result", driver.result(call, Manner()))
    keeps("result", driver.result(call, Manner(fails=frozenset("*"))))
    keeps("tree-reply", {"tree": shown.tree(a_tree())})
    keeps("tree-reply", {"trees": [shown.tree(a_tree())], "next": None})
    keeps("status", {"revision": 1, "loadbalancer_id": LB, **driver.statuses(call)})
    with pytest.raises(jsonschema_rs.ValidationError):
        keeps("call", {**call, "secret": 1})
    with pytest.raises(jsonschema_rs.ValidationError):
        keeps("result", {**driver.result(call, Manner()), "outcome": "perhaps"})


def test_replies_keep_to_the_schemas() -> None:
    refusing = Manner(refuses={"pool_create": "UnsupportedOption"})
    for manner in (Manner(), refusing):
        keeps("check-reply", driver.check({"method": "pool_create"}, manner))
    wanted = [LB, "project", {"vip_subnet_id": "s"}, []]
    for method in ("create_vip_port", "validate_flavor", "get_supported_flavor_metadata", "nothing"):
        keeps("ask-reply", driver.ask(method, {"arguments": wanted}, Manner()))
    keeps(
        "report-reply",
        {"status_code": 500, "fault_string": "x", "status_object": "pools", "status_object_id": None},
    )
    keeps("get", {"object": "listeners", "id": LISTENER})


def test_a_large_tree_is_left_out_and_a_small_one_is_not() -> None:
    tree = a_tree()
    member = tree.rows["member"][0]
    many = [
        {**member, "id": f"member-{number}", "ip_address": f"10.0.{number // 250}.{number % 250}"}
        for number in range(2000)
    ]
    made = operation("member_batch_update", ["pool"], arguments=[POOL, [models.member_of(m) for m in many]])
    row = calls.row_of(made, LB, AT)
    rows = {**tree.rows, "member": many}
    sending = calls.Sending(row, type(tree)(1, 7, rows), 7, 1, {})
    _, data, headers = calls.message(sending)
    assert b'"tree"' not in data
    assert len(data) < 1 << 20
    assert headers["Nats-Msg-Id"] == made.id
    assert b'"tree"' in calls.message(calls.Sending(row, tree, 7, 1, {}))[1]


def test_a_call_says_which_of_its_objects_go() -> None:
    made = operation("member_batch_update", ["pool", "member"], done="DELETED")
    _, data, _ = calls.message(calls.Sending(calls.row_of(made, LB, AT), a_tree(), 7, 1, {}))
    found = orjson.loads(data)
    assert found["removes"] == [IDS["pool"], IDS["member"]]
    keeps("call", found)
    assert a_call()["removes"] == []


@needs_recordings
def test_every_recorded_call_keeps_to_the_schema_of_its_models() -> None:
    definitions = schemas.models()
    validators = {
        name: jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})
        for name in definitions
    }
    seen = 0
    for recorded in recorded_calls():
        for argument in recorded.call["args"]:
            if isinstance(argument, dict) and "$type" in argument:
                whole = _typed(argument)
                validators[argument["$type"]].validate(whole)
                seen += 1
    assert seen > 3000


def _typed(value: Any) -> Any:
    """The rules of a new policy's snapshot bear no type in the recording (D3)."""
    if isinstance(value, dict):
        typed = {key: _typed(item) for key, item in value.items()}
        if "rules" in typed:
            typed["rules"] = [{"$type": "L7Rule", **rule} for rule in typed["rules"]]
        return typed
    return [_typed(item) for item in value] if isinstance(value, list) else value


def test_the_seam_in_the_asyncapi_document_is_whole() -> None:
    document = json.loads((PAGE.parent / "asyncapi.json").read_text())
    channels, operations, messages, parts = schemas.channels()
    assert len(channels) == len(operations) == len(schemas.CHANNELS)
    assert channels.items() <= document["channels"].items()
    assert operations.items() <= document["operations"].items()
    held = document["components"]
    assert messages.items() <= held["messages"].items()
    assert parts.items() <= held["schemas"].items()
    references = re.findall(
        r'"#/components/(\w+)/(provider-[\w-]+)"', json.dumps([channels, messages, parts])
    )
    assert references
    assert [name for part, name in references if name not in held[part]] == []

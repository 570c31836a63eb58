"""Status, statistics and get messages against what the original's driver agent did with them."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from roadstead_octavia.db.port import Change
from roadstead_octavia.db.tree import after
from roadstead_octavia.provider import judge, shown

from .recorded import FOLDER, library, needs_recordings, tree_of, whose


def vectors(socket: str) -> list[Any]:
    path = FOLDER / "seam.jsonl.gz"
    if not path.is_file():
        return []
    lib = library()
    found = []
    for header, vector in lib.read_file(str(path)):
        if vector["socket"] == socket:
            state = lib.state_apply(header["base"], vector["pre"], header["primary_keys"])
            found.append(pytest.param(vector, state, id=vector["vector"]))
    return found


def trees_of(state: Any, message: Any) -> list[Any]:
    owners = {whose(state, table, identifier) for table, identifier in judge.mentioned(message)} - {None}
    return [tree_of(state, str(owner)) for owner in sorted(owners, key=str)]


def judged(message: Any, trees: list[Any]) -> judge.Verdict | judge.Fault:
    try:
        return judge.judge(message, trees)
    except judge.Fault as fault:
        return fault


def rows_after(state: Any, verdict: judge.Verdict, trees: list[Any]) -> Mapping[str, dict[str, Any]]:
    """Rows of the trees when the verdict was carried out, by table and id, without times."""
    rows: dict[str, dict[str, Any]] = {}
    for tree in trees:
        owner = tree.load_balancer["id"]
        left = after(tree, Change(owner, tree.version, verdict.writes.get(owner, ()), revises=False))
        for table in judge.KIND_OF:
            for row in left.of(table):
                rows.setdefault(table, {})[row["id"]] = {k: v for k, v in row.items() if k != "updated_at"}
    return rows


@needs_recordings
@pytest.mark.parametrize(("vector", "state"), vectors("status"))
def test_a_status_message_leaves_the_rows_that_the_original_left(vector: Any, state: Any) -> None:
    """D8, D10 and children of a deleted parent are the only departures."""
    lib = library()
    expected = vector["expected"]
    failed = expected["reply"]["status_code"] != 200
    trees = trees_of(state, vector["message"])
    verdict = judged(vector["message"], trees)
    if isinstance(verdict, judge.Fault):
        assert failed, verdict.text
        assert verdict.kind == expected["reply"].get("status_object")
        assert verdict.id == expected["reply"].get("status_object_id")
        assert vector.get("free_text") or verdict.text == expected["reply"]["fault_string"]
        return
    if expected["reply"].get("fault_string") == "the port is in use":
        assert verdict.ports  # removing the port is what fails there
        return
    if vector["vector"] == "deleted-absent-loadbalancers":
        assert verdict == judge.Verdict()  # D8
        return
    assert not failed
    keys = {table: ["id"] for table in judge.KIND_OF} | {
        "quotas": ["project_id"],
        "listener_cidr": ["listener_id", "cidr"],
        "session_persistence": ["pool_id"],
        "sni": ["listener_id", "tls_container_id"],
        "tags": ["resource_id", "tag"],
    }
    wanted_state = lib.state_apply(state, expected.get("changes"), keys)
    wanted = {
        table: {
            r["id"]: {k: v for k, v in r.items() if k != "updated_at"} for r in wanted_state.get(table, ())
        }
        for table in judge.KIND_OF
    }
    got = rows_after(state, verdict, trees)
    for table in judge.KIND_OF:
        if trees:
            assert got.get(table, {}) == wanted[table], table
        else:
            assert not expected["changes"]
    assert [p.load_balancer_id for p in verdict.ports] == [
        str(lb) for w in expected.get("network_writes", ()) for lb in re.findall(r"[0-9a-f-]{36}", str(w))[:1]
    ]


@needs_recordings
@pytest.mark.parametrize(("vector", "state"), vectors("stats"))
def test_a_statistics_message_leaves_the_rows_that_the_original_left(vector: Any, state: Any) -> None:
    """D11 departs: a listener that is not there is a fault."""
    expected = vector["expected"]
    known = [r["id"] for r in state.get("listener", ())]
    absent = not set(judge.listeners_of(vector["message"])) <= set(known)
    if absent or expected["reply"]["status_code"] != 200:
        with pytest.raises(judge.Fault):
            judge.measured(vector["message"], known)
        return
    rows = judge.measured(vector["message"], known)
    changed = expected["changes"].get("put", {}).get("listener_statistics", [])
    assert rows == changed


@needs_recordings
@pytest.mark.parametrize(("vector", "state"), vectors("get"))
def test_a_get_message_is_answered_as_by_the_original(vector: Any, state: Any) -> None:
    """D12 departs: references and never keys."""
    message, expected = vector["message"], vector["expected"]
    if expected.get("no_reply"):
        assert "object" not in message
        return
    kind, identifier = message["object"], message.get("id", "")
    owner = whose(state, judge.KINDS[kind][0], identifier) if kind in judge.KINDS else None
    got = shown.one(kind, identifier, tree_of(state, owner) if owner else None)
    assert _sorted(got) == _sorted(_without_keys(expected["reply"]))
    assert "KEY" not in str(got)


def _without_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: None if k.endswith("container_data") else _without_keys(v) for k, v in value.items()}
    return [_without_keys(v) for v in value] if isinstance(value, list) else value


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _sorted(v) for k, v in value.items()}
    return sorted((_sorted(v) for v in value), key=str) if isinstance(value, list) else value

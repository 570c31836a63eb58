"""The rule about whole objects fills in relations and hides nothing else."""

from typing import Any

from .departures_provider import _objects_are_whole


def a_line(recorded: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    def side(argument: dict[str, Any]) -> dict[str, Any]:
        return {"provider_calls": [{"method": "listener_delete", "args": [argument]}]}

    return {"expected": side(recorded), "actual": side(ours)}


RECORDED = {"$type": "Listener", "listener_id": "1", "name": "a"}


def test_relations_that_the_recording_lacks_are_filled_in() -> None:
    ours = {**RECORDED, "allowed_cidrs": [], "default_pool": None, "l7policies": [{"$type": "L7Policy"}]}
    line = a_line(dict(RECORDED), ours)
    assert _objects_are_whole(line)
    assert line["expected"] == line["actual"]


def test_a_relation_that_was_recorded_is_compared() -> None:
    line = a_line({**RECORDED, "allowed_cidrs": ["10.0.0.0/8"]}, {**RECORDED, "allowed_cidrs": []})
    assert not _objects_are_whole(line)
    assert line["expected"] != line["actual"]


def test_other_fields_are_compared() -> None:
    line = a_line(dict(RECORDED), {**RECORDED, "name": "b", "connection_limit": 5})
    assert not _objects_are_whole(line)
    assert line["expected"] != line["actual"]


def test_what_ours_lacks_is_not_excused() -> None:
    line = a_line({**RECORDED, "members": [1]}, dict(RECORDED))
    assert not _objects_are_whole(line)


def test_objects_in_lists_are_found_by_their_ids() -> None:
    pools = [{"$type": "Pool", "pool_id": i} for i in "12"]
    whole = [{**pool, "members": [], "listener_id": pool["pool_id"]} for pool in reversed(pools)]
    line = a_line({**RECORDED, "pools": [dict(p) for p in pools]}, {**RECORDED, "pools": whole})
    assert _objects_are_whole(line)
    filled = line["expected"]["provider_calls"][0]["args"][0]["pools"]
    assert [(p["pool_id"], p["listener_id"]) for p in filled] == [("1", "1"), ("2", "2")]


def test_both_sides_of_an_update_are_filled_from_their_own() -> None:
    old = {**RECORDED, "allowed_cidrs": []}
    line: dict[str, Any] = {
        side: {"provider_calls": [{"method": "listener_update", "args": [first, dict(RECORDED)]}]}
        for side, first in (("expected", dict(RECORDED)), ("actual", old))
    }
    assert _objects_are_whole(line)
    assert line["expected"] == line["actual"]

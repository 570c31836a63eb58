"""Rows of the library as plain values: spelled whole, and by what changed."""

import copy
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import ovs.db.data
import ovs.db.types
from hypothesis import given
from hypothesis import strategies as st

from roadstead_ovn.northbound.replica import changed_plain, plain

REFERENCES = [str(UUID(int=n)) for n in range(1, 9)]
TYPES = {
    "load_balancer": {"key": {"type": "uuid", "refTable": "Load_Balancer"}, "min": 0, "max": "unlimited"},
    "networks": {"key": "string", "min": 0, "max": "unlimited"},
    "protocol": {"key": "string", "min": 0, "max": 1},
    "external_ids": {"key": "string", "value": "string", "min": 0, "max": "unlimited"},
    "name": "string",
}
KINDS = {name: ovs.db.types.Type.from_json(kind) for name, kind in TYPES.items()}
WORDS = st.text("ab", min_size=1, max_size=2)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "load_balancer": st.sets(st.sampled_from(REFERENCES)).map(lambda x: ["set", [["uuid", i] for i in sorted(x)]]),
    "networks": st.sets(WORDS).map(lambda x: ["set", sorted(x)]),
    "protocol": st.one_of(WORDS, st.just(["set", []])),
    "external_ids": st.dictionaries(WORDS, WORDS).map(lambda x: ["map", [list(i) for i in x.items()]]),
    "name": WORDS,
}  # fmt: skip


def datum(name: str, value: Any) -> Any:
    return ovs.db.data.Datum.from_json(KINDS[name], value)


def row(data: dict[str, Any]) -> Any:
    return SimpleNamespace(_table=SimpleNamespace(columns=KINDS), _data=data)


@given(st.fixed_dictionaries(VALUES), st.fixed_dictionaries({}, optional=VALUES))
def test_a_row_told_by_its_changes_is_the_row_told_whole(first: dict[str, Any], then: dict[str, Any]) -> None:
    data = {name: datum(name, value) for name, value in first.items()}
    before = plain(row(data))
    old = {name: copy.copy(data[name]) for name in then}
    now = row({**data, **{name: datum(name, value) for name, value in then.items()}})
    assert changed_plain(now, row(old), before) == plain(now)


def test_a_set_that_the_library_changes_in_place_is_followed() -> None:
    have = datum("load_balancer", ["set", [["uuid", one] for one in REFERENCES[:3]]])
    before = plain(row({**{name: datum(name, _empty(name)) for name in KINDS}, "load_balancer": have}))
    was = have.copy()
    have.diff(datum("load_balancer", ["set", [["uuid", REFERENCES[0]], ["uuid", REFERENCES[5]]]]))
    found = changed_plain(row({"load_balancer": have}), row({"load_balancer": was}), before)
    assert found["load_balancer"] == frozenset({REFERENCES[1], REFERENCES[2], REFERENCES[5]})


def _empty(name: str) -> Any:
    return "" if name == "name" else ["map", []] if name == "external_ids" else ["set", []]

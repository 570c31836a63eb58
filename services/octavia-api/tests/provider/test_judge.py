"""The rules of reports that no recording shows: nothing leaves DELETED, nothing is half applied, and any message has a verdict."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead_octavia.db.port import Delete, Tree, Update
from roadstead_octavia.provider import judge

from .trees import IDS, LB, LISTENER, MEMBER, MONITOR, POLICY, POOL, RULE, a_tree

ABSENT = "ffffffff-1111-4222-8333-444444444444"
NOUNS = [(kind, noun) for kind, (_, noun) in judge.KINDS.items()]


@pytest.mark.parametrize("kind", list(judge.KINDS))
def test_d8_deleted_of_what_is_not_there_is_done_already(kind: str) -> None:
    message = {kind: [{"id": ABSENT, "provisioning_status": "DELETED"}]}
    assert judge.judge(message, [a_tree()]) == judge.Verdict()


@pytest.mark.parametrize(("kind", "noun"), NOUNS)
def test_d8_any_other_status_of_what_is_not_there_is_a_fault_that_names_it(kind: str, noun: str) -> None:
    with pytest.raises(judge.Fault, match=f"{noun} {ABSENT} not found") as caught:
        judge.judge({kind: [{"id": ABSENT, "operating_status": "ONLINE"}]}, [a_tree()])
    assert (caught.value.kind, caught.value.id) == (kind, ABSENT)


def test_d9_a_deleted_load_balancer_stays_deleted() -> None:
    tree = a_tree()
    tree.rows["load_balancer"][0]["provisioning_status"] = "DELETED"  # type: ignore[index]  # a test's own rows
    for record in ({"provisioning_status": "ACTIVE"}, {"operating_status": "ONLINE"}):
        with pytest.raises(judge.Fault, match="not found"):
            judge.judge({"loadbalancers": [{"id": LB, **record}]}, [tree])
    again = judge.judge({"loadbalancers": [{"id": LB, "provisioning_status": "DELETED"}]}, [tree])
    assert again.writes[LB] == (Update("load_balancer", {"id": LB}, {"provisioning_status": "DELETED"}),)


def test_d10_a_bad_record_leaves_nothing_of_the_good_ones() -> None:
    message = {
        "members": [{"id": MEMBER, "operating_status": "ERROR"}],
        "pools": [{"operating_status": "ERROR"}],
    }
    with pytest.raises(judge.Fault, match="no id"):
        judge.judge(message, [a_tree()])


def test_a_deleted_pool_takes_its_members_and_monitor_and_later_words_about_them_are_faults() -> None:
    gone = {"id": POOL, "provisioning_status": "DELETED"}
    assert judge.judge({"pools": [gone]}, [a_tree()]).writes[LB] == (Delete("pool", {"id": POOL}),)
    told = {"members": [{"id": MEMBER, "operating_status": "ERROR"}], "pools": [gone]}
    assert judge.judge(told, [a_tree()]).writes[LB] == (Delete("pool", {"id": POOL}),)
    for table, identifier in (("member", MEMBER), ("health_monitor", MONITOR)):
        known = judge.Known([a_tree()])
        known.delete("pool", POOL, {})
        assert known.find(table, identifier) is None


def test_a_deleted_listener_takes_policies_and_rules() -> None:
    known = judge.Known([a_tree()])
    known.delete("listener", LISTENER, {})
    assert known.find("l7policy", POLICY) is None
    assert known.find("l7rule", RULE) is None
    assert known.find("pool", POOL) is not None


def test_policies_that_are_left_are_numbered_from_one() -> None:
    tree = a_tree()
    second = {**tree.rows["l7policy"][0], "id": ABSENT, "position": 2}
    rows = {**tree.rows, "l7policy": [tree.rows["l7policy"][0], second]}
    verdict = judge.judge(
        {"l7policies": [{"id": POLICY, "provisioning_status": "DELETED"}]}, [Tree(1, 1, rows)]
    )
    assert verdict.writes[LB] == (
        Delete("l7policy", {"id": POLICY}),
        Update("l7policy", {"id": ABSENT}, {"position": 1}),
    )


def test_another_providers_objects_are_not_there() -> None:
    message = {"pools": [{"id": POOL, "operating_status": "ONLINE"}]}
    with pytest.raises(judge.Fault, match="not found"):
        judge.judge(message, [a_tree(provider="ovn")], provider="noop")
    assert judge.judge(message, [a_tree(provider="ovn")], provider="ovn").writes


@pytest.mark.parametrize("owned", [True, False])
def test_the_port_of_a_deleted_load_balancer_goes_only_when_it_is_ours(owned: bool) -> None:
    tree = a_tree()
    tree.rows["vip"][0]["octavia_owned"] = owned  # type: ignore[index]  # rows made by this test may be written
    verdict = judge.judge({"loadbalancers": [{"id": LB, "provisioning_status": "DELETED"}]}, [tree])
    assert verdict.ports == ((judge.Port(LB, "port-1"),) if owned else ())


@pytest.mark.parametrize("status", ["WRONG", None, 5, ["ACTIVE"], "active"])
@pytest.mark.parametrize("name", ["provisioning_status", "operating_status"])
def test_a_status_that_is_none_is_a_fault(name: str, status: Any) -> None:
    with pytest.raises(judge.Fault, match=f"no {name}"):
        judge.judge({"pools": [{"id": POOL, name: status}]}, [a_tree()])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
RECORD = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from([*IDS.values(), ABSENT]) | JSON,
        "provisioning_status": st.sampled_from([*sorted(judge.PROVISIONING), "WRONG"]) | JSON,
        "operating_status": st.sampled_from([*sorted(judge.OPERATING), "WRONG"]) | JSON,
        "other": JSON,
    },
)
MESSAGE = (
    st.dictionaries(st.sampled_from([*judge.KINDS, "routers"]), st.lists(RECORD | JSON, max_size=3) | JSON)
    | JSON
)


@given(MESSAGE)
def test_every_message_has_a_verdict_or_a_fault(message: Any) -> None:
    judge.mentioned(message)
    try:
        verdict = judge.judge(message, [a_tree()])
    except judge.Fault as fault:
        assert fault.text  # noqa: PT017 - either is fine, anything else is not
        return
    written = [w for writes in verdict.writes.values() for w in writes]
    assert all(
        set(w.values) <= {"provisioning_status", "operating_status", "position"}
        for w in written
        if isinstance(w, Update)
    )


def test_d11_statistics_are_checked() -> None:
    good = {"id": LISTENER, **dict.fromkeys(judge.COUNTERS, 1)}
    assert judge.measured({"listeners": [good]}, [LISTENER])[0]["amphora_id"] == LISTENER
    bad = (
        {**good, "bytes_in": -1},
        {**good, "bytes_in": 2**63},
        {**good, "active_connections": 2**31},
        {**good, "bytes_in": True},
        {**good, "bytes_in": 1.5},
        {**good, "id": ABSENT},
        {k: v for k, v in good.items() if k != "bytes_out"},
        "x",
    )
    for record in bad:
        with pytest.raises(judge.Fault):
            judge.measured({"listeners": [good, record]}, [LISTENER])
    messages: tuple[Any, ...] = (None, [], {"listeners": None})
    for message in messages:
        with pytest.raises(judge.Fault):
            judge.measured(message, [])


@given(MESSAGE | st.fixed_dictionaries({"listeners": st.lists(JSON, max_size=3)}))
def test_every_statistics_message_has_rows_or_a_fault(message: Any) -> None:
    judge.listeners_of(message)
    try:
        assert isinstance(judge.measured(message, [LISTENER]), list)
    except judge.Fault as fault:
        assert fault.text  # noqa: PT017 - total: a verdict or this text

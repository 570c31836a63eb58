"""How operations end, without a database."""

from datetime import timedelta
from typing import Any

import pytest

from roadstead_octavia.db.port import Change, Tree
from roadstead_octavia.db.tree import after
from roadstead_octavia.provider.conclude import (
    End,
    Outcome,
    State,
    concluded,
    deadline_reason,
    read_result,
)
from roadstead_octavia.provider.judge import Fault

from .trees import AT, IDS, LB, MEMBER, POOL, a_tree

LATER = AT + timedelta(seconds=61)


def an_operation(
    tables: list[str], *, done: str = "ACTIVE", failed: str = "ERROR", **given: Any
) -> dict[str, Any]:
    touched = [{"table": t, "id": IDS[t], "done": done, "failed": failed} for t in tables]
    row = {
        "id": "operation-1",
        "load_balancer_id": LB,
        "provider": "noop",
        "method": "pool_update",
        "revision": 7,
        "state": "SENT",
        "sends": 4,
        "reason": None,
        "created_at": AT,
        "deadline": AT + timedelta(seconds=60),
    }
    return {**row, "touched": touched, **given}


def ended(operation: dict[str, Any], tree: Tree, outcome: Outcome) -> tuple[Tree, dict[str, Any]]:
    """The tree and the operation afterwards."""
    verdict = concluded(operation, tree, outcome, LATER)
    if verdict is None:
        return tree, operation
    writes = verdict.writes[LB]
    own = [w for w in writes if w.table == "operation"]
    assert len(own) == 1
    return after(tree, Change(LB, tree.version, writes, revises=False)), {**operation, **own[0].values}  # type: ignore[union-attr]


def status(tree: Tree, table: str) -> str | None:
    row = tree.get(table, IDS[table])
    return None if row is None else row["provisioning_status"]


SUCCESS = Outcome(End.SUCCESS)
DEADLINE = Outcome(End.DEADLINE, "too late")
FAILURE = Outcome(End.FAILURE, "no room")


def test_success_gives_every_touched_object_what_was_promised() -> None:
    tree, operation = ended(an_operation(["load_balancer", "pool"]), a_tree("PENDING_UPDATE"), SUCCESS)
    assert (status(tree, "load_balancer"), status(tree, "pool")) == ("ACTIVE", "ACTIVE")
    assert status(tree, "listener") == "PENDING_UPDATE"
    assert (operation["state"], operation["next_send_at"], operation["reason"]) == (State.DONE, None, None)


@pytest.mark.parametrize(("outcome", "state"), [(FAILURE, State.FAILED), (DEADLINE, State.TIMED_OUT)])
def test_failure_and_the_deadline_set_what_still_waits_and_say_why(outcome: Outcome, state: State) -> None:
    before = an_operation(["load_balancer", "pool", "member"])
    tree = a_tree("PENDING_UPDATE")
    tree.rows["pool"][0]["provisioning_status"] = "ACTIVE"  # type: ignore[index]  # it was reported before
    tree, operation = ended(before, tree, outcome)
    assert status(tree, "load_balancer") == status(tree, "member") == "ERROR"
    assert status(tree, "pool") == "ACTIVE"
    assert (operation["state"], operation["reason"]) == (state, outcome.reason)
    assert operation["next_send_at"] is None


def test_an_object_may_have_another_end_than_error() -> None:
    operation = an_operation(["load_balancer"], failed="ACTIVE")
    tree, _ = ended(operation, a_tree("PENDING_UPDATE"), FAILURE)
    assert status(tree, "load_balancer") == "ACTIVE"


@pytest.mark.parametrize("state", [State.TIMED_OUT, State.FAILED])
def test_late_success_at_the_current_revision_mends(state: State) -> None:
    operation = an_operation(["load_balancer", "pool"], state=state.value, reason="too late")
    tree, operation = ended(operation, a_tree("ERROR"), SUCCESS)
    assert (status(tree, "load_balancer"), status(tree, "pool")) == ("ACTIVE", "ACTIVE")
    assert status(tree, "listener") == "ERROR"
    assert (operation["state"], operation["reason"]) == (State.DONE, None)


@pytest.mark.parametrize("outcome", [SUCCESS, FAILURE, DEADLINE])
def test_what_was_done_at_an_older_revision_touches_nothing(outcome: Outcome) -> None:
    before = a_tree("PENDING_UPDATE", revision=8)
    tree, operation = ended(an_operation(["load_balancer"]), before, outcome)
    assert status(tree, "load_balancer") == "PENDING_UPDATE"
    assert operation["state"] != State.SENT
    late = an_operation(["load_balancer"], state="TIMED_OUT")
    assert concluded(late, before, SUCCESS, LATER) is None


def test_done_is_the_last_word() -> None:
    operation = an_operation(["load_balancer"], state="DONE")
    for outcome in (SUCCESS, FAILURE, DEADLINE):
        assert concluded(operation, a_tree("PENDING_UPDATE"), outcome, LATER) is None
    timed_out = an_operation(["load_balancer"], state="TIMED_OUT")
    assert concluded(timed_out, a_tree("ERROR"), DEADLINE, LATER) is None


def test_a_late_failure_says_why_and_changes_nothing_else() -> None:
    operation = an_operation(["load_balancer"], state="TIMED_OUT", reason="too late")
    tree, operation = ended(operation, a_tree("ERROR"), FAILURE)
    assert (operation["state"], operation["reason"]) == (State.TIMED_OUT, "no room")
    assert status(tree, "load_balancer") == "ERROR"


def test_a_deadline_after_everything_was_reported_is_success() -> None:
    _, operation = ended(an_operation(["load_balancer", "pool"]), a_tree("ACTIVE"), DEADLINE)
    assert (operation["state"], operation["reason"]) == (State.DONE, None)


def test_a_deleted_pool_goes_with_its_members_and_the_load_balancer_stays() -> None:
    operation = an_operation(["pool"], done="DELETED")
    tree, _ = ended(operation, a_tree("PENDING_DELETE"), SUCCESS)
    assert status(tree, "pool") is None
    assert status(tree, "member") is None
    assert status(tree, "load_balancer") == "PENDING_DELETE"


@pytest.mark.parametrize("owned", [True, False])
def test_a_deleted_load_balancer_keeps_its_row_and_loses_everything_below_and_its_port(owned: bool) -> None:
    before = a_tree("PENDING_DELETE")
    before.rows["vip"][0]["octavia_owned"] = owned  # type: ignore[index]  # rows made by this test may be written
    operation = an_operation(["load_balancer"], done="DELETED")
    verdict = concluded(operation, before, SUCCESS, LATER)
    assert verdict is not None
    assert [p.port_id for p in verdict.ports] == (["port-1"] if owned else [])
    tree, _ = ended(operation, before, SUCCESS)
    assert status(tree, "load_balancer") == "DELETED"
    assert tree.load_balancer["operating_status"] == "OFFLINE"
    below = [table for table in IDS if table != "load_balancer"]
    assert [table for table in below if tree.of(table)] == []


def test_a_delete_past_its_deadline_is_in_error() -> None:
    operation = an_operation(["load_balancer"], done="DELETED")
    tree, _ = ended(operation, a_tree("PENDING_DELETE"), DEADLINE)
    assert status(tree, "load_balancer") == "ERROR"
    assert status(tree, "pool") == "PENDING_DELETE"


def test_statuses_in_a_result_come_on_top() -> None:
    statuses = {
        "members": [{"id": MEMBER, "provisioning_status": "ERROR", "operating_status": "ERROR"}],
        "pools": [{"id": POOL, "operating_status": "DEGRADED"}],
    }
    operation = an_operation(["load_balancer", "pool", "member"])
    tree, _ = ended(operation, a_tree("PENDING_UPDATE"), Outcome(End.SUCCESS, None, statuses))
    assert (status(tree, "member"), status(tree, "pool")) == ("ERROR", "ACTIVE")
    pool = tree.get("pool", POOL)
    assert pool is not None
    assert pool["operating_status"] == "DEGRADED"


def test_a_result_about_what_is_not_there_is_a_fault_and_ends_nothing() -> None:
    statuses = {"pools": [{"id": LB, "operating_status": "ONLINE"}]}
    with pytest.raises(Fault, match="not found"):
        concluded(an_operation(["pool"]), a_tree(), Outcome(End.SUCCESS, None, statuses), LATER)


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        {},
        {"operation": 5, "outcome": "success"},
        {"operation": "x", "outcome": "fine"},
        {"operation": "x" * 37, "outcome": "success"},
        {"operation": "x", "outcome": "success", "statuses": []},
    ],
)
def test_a_result_that_cannot_be_read_is_a_fault(message: Any) -> None:
    with pytest.raises(Fault):
        read_result(message)


def test_a_failure_always_has_a_reason() -> None:
    assert read_result({"operation": "x", "outcome": "failure"})[1].reason == "the provider gave no reason"
    told = {"operation": "x", "outcome": "failure", "user": "no", "operator": "disk full"}
    assert read_result(told)[1].reason == "no; disk full"
    assert "60 s" in deadline_reason(an_operation(["pool"]), a_tree("PENDING_UPDATE"))

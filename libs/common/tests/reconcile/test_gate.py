"""What must hold before a pass may touch the cloud (behaviour.md section 0.3 of resources.md, REF-001, REF-003, REF-007)."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from roadstead.reconcile.decision import Code, Retry, Yield
from roadstead.reconcile.gate import GateRule, Held, Open, Waiting, before_delete, take_references, view_of
from roadstead.reconcile.kind import Need
from roadstead.reconcile.status import status_document
from roadstead.reconcile.views import Directory, RequestFailed
from roadstead.store.api import Row
from roadstead.subjects import Key

from .test_ingest_rules import ingest, spec
from .toy import KEY, PROJECT, REGION

NETWORK = "33333333-3333-4333-8333-333333333333"
IDENTITY = "44444444-4444-4444-8444-444444444444"


class Owners:
    """Answers reference.add with what stands in `rows`, counting."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.silent = False

    async def request(self, subject: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append((subject, payload))
        if self.silent:
            raise RequestFailed("no answer")
        return self.rows.get(
            (payload["kind"], payload["id"]), {"error": {"code": "UNKNOWN", "message": "no such resource"}}
        )


def row(**metadata: str) -> Row:
    made, _ = ingest(None, spec(metadata=metadata), 5)
    assert made is not None
    return made


def target(
    kind: str, ident: str, *, state: str = "provisioned", region: str = REGION, **metadata: Any
) -> dict[str, Any]:
    base = replace(row(), key=Key(region, PROJECT, kind, ident), resource_version=3)
    base = replace(base, metadata={**base.metadata, **metadata})
    base = replace(base, status={"provisioningStatus": state, "observedGeneration": 1})
    return {"ok": True, "target": status_document(base)}


LATER = datetime(2026, 1, 2, tzinfo=UTC)
RECORDED: list[Mapping[str, int]] = []


async def taken(row: Row, needs: tuple[Need, ...], directory: Directory, owners: Owners) -> Held | Open:
    async def record(references: Mapping[str, int]) -> None:
        RECORDED.append(dict(references))

    RECORDED.clear()
    return await take_references(row, needs, directory, owners, record, LATER)


async def test_what_is_asked_stands_in_the_own_row_before_it_is_asked() -> None:
    owners = Owners()
    owners.silent = True
    await taken(row(identityId=IDENTITY), (Need("network", NETWORK),), Directory(), owners)
    assert [{f"network/{NETWORK}": -1, f"identity/{IDENTITY}": -1}] == RECORDED


async def test_references_are_taken_once_and_the_identity_comes_with_the_network() -> None:
    owners, directory = Owners(), Directory()
    owners.rows["network", NETWORK] = target("network", NETWORK, identityId=IDENTITY)
    owners.rows["identity", IDENTITY] = target("identity", IDENTITY)
    opened = await taken(row(), (Need("network", NETWORK),), directory, owners)
    assert isinstance(opened, Open)
    assert opened.identity == IDENTITY
    assert set(opened.granted) == {f"network/{NETWORK}", f"identity/{IDENTITY}"}
    assert [s for s, _ in owners.asked] == ["rpc.network.reference.add", "rpc.identity.reference.add"]
    held = replace(row(), references=opened.granted)
    again = await taken(held, (Need("network", NETWORK),), directory, owners)
    assert isinstance(again, Open)
    assert again.granted == {}
    assert len(owners.asked) == 2


async def test_the_identity_of_a_known_network_is_written_down_with_the_network() -> None:
    owners, directory = Owners(), Directory()
    owners.rows["network", NETWORK] = target("network", NETWORK, identityId=IDENTITY)
    owners.rows["identity", IDENTITY] = target("identity", IDENTITY)
    directory.put(view_of(owners.rows["network", NETWORK]["target"]))
    opened = await taken(row(), (Need("network", NETWORK),), directory, owners)
    assert isinstance(opened, Open)
    assert opened.identity == IDENTITY
    assert [{f"network/{NETWORK}": -1, f"identity/{IDENTITY}": -1}] == RECORDED


async def test_all_that_is_needed_is_asked_for_at_once() -> None:
    owners, directory = Owners(), Directory()
    owners.rows["network", NETWORK] = target("network", NETWORK, identityId=IDENTITY)
    owners.rows["identity", IDENTITY] = target("identity", IDENTITY)
    directory.put(view_of(owners.rows["network", NETWORK]["target"]))
    waiting, most = 0, 0
    answer = owners.request

    async def request(subject: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0)
        waiting -= 1
        return await answer(subject, payload)

    owners.request = request  # type: ignore[method-assign]  # as slow as a bus
    assert isinstance(await taken(row(), (Need("network", NETWORK),), directory, owners), Open)
    assert most == 2


async def test_an_identity_that_the_network_no_longer_names_is_not_held_but_stays_announced() -> None:
    owners, directory = Owners(), Directory()
    former = "55555555-5555-4555-8555-555555555555"
    directory.put(view_of(target("network", NETWORK, identityId=former)["target"]))
    newer = replace(row(), key=Key(REGION, PROJECT, "network", NETWORK), resource_version=9)
    newer = replace(newer, metadata={**newer.metadata, "identityId": IDENTITY})
    newer = replace(newer, status={"provisioningStatus": "provisioned", "observedGeneration": 1})
    owners.rows["network", NETWORK] = {"ok": True, "target": status_document(newer)}
    owners.rows["identity", IDENTITY] = target("identity", IDENTITY)
    owners.rows["identity", former] = target("identity", former)
    opened = await taken(row(), (Need("network", NETWORK),), directory, owners)
    assert isinstance(opened, Open)
    assert opened.identity == IDENTITY
    assert set(opened.granted) == {f"network/{NETWORK}", f"identity/{IDENTITY}"}
    assert [{f"network/{NETWORK}": -1, f"identity/{former}": -1}, {f"identity/{IDENTITY}": -1}] == RECORDED


async def test_what_was_granted_beside_what_has_to_be_waited_for_is_kept() -> None:
    owners = Owners()
    owners.rows["network", NETWORK] = {"error": {"code": "DELETING", "message": "going"}}
    owners.rows["identity", IDENTITY] = target("identity", IDENTITY)
    held = await taken(row(identityId=IDENTITY), (Need("network", NETWORK),), Directory(), owners)
    assert isinstance(held, Waiting)
    assert held.granted == {f"identity/{IDENTITY}": 1}


@pytest.mark.parametrize("noted", [1, -1], ids=["granted", "announced"])
async def test_who_has_built_nothing_lets_go_of_what_has_to_go_whatever_it_waits_for(noted: int) -> None:
    """The network waits for its identity to go, the identity for us, and we for the network."""
    owners, directory = Owners(), Directory()
    owners.rows["network", NETWORK] = {"error": {"code": "DELETING", "message": "going"}}
    identity = target("identity", IDENTITY)
    owners.rows["identity", IDENTITY] = identity
    directory.put(replace(view_of(identity["target"]), deleting=True))
    holding = replace(row(identityId=IDENTITY), references={f"identity/{IDENTITY}": noted})
    held = await taken(holding, (Need("network", NETWORK),), directory, owners)
    assert isinstance(held, Waiting)
    assert held.release == (f"identity/{IDENTITY}",)
    owners.silent = True
    held = await taken(holding, (Need("network", NETWORK),), directory, owners)
    assert isinstance(held, Waiting)
    assert held.release == (f"identity/{IDENTITY}",), "an owner that does not answer is no reason to hold on"
    built = replace(holding, written_at=LATER)
    held = await taken(built, (Need("network", NETWORK),), directory, owners)
    assert isinstance(held, Waiting)
    assert held.release == ()


async def test_the_identity_of_a_foreign_projects_network_is_not_written_down() -> None:
    owners, directory = Owners(), Directory()
    view = view_of(target("network", NETWORK, identityId=IDENTITY)["target"])
    directory.put(replace(view, key=replace(view.key, project="somebody-else")))
    held = await taken(row(), (Need("network", NETWORK),), directory, owners)
    assert isinstance(held, Held)
    assert [{f"network/{NETWORK}": -1}] == RECORDED


async def test_an_unknown_reference_is_a_consistency_error() -> None:
    held = await taken(row(), (Need("network", NETWORK),), Directory(), Owners())
    assert isinstance(held, Held)
    assert held.rule is GateRule.REFERENCE_UNKNOWN
    assert isinstance(held.outcome, Retry)
    assert held.outcome.code is Code.CONSISTENCY


async def test_a_reference_into_another_region_does_not_exist() -> None:
    owners = Owners()
    other = "99999999-9999-4999-8999-999999999999"
    owners.rows["network", NETWORK] = target("network", NETWORK, region=other, identityId=IDENTITY)
    held = await taken(row(), (Need("network", NETWORK),), Directory(), owners)
    assert isinstance(held, Held)
    assert held.rule is GateRule.REFERENCE_UNKNOWN


async def test_a_lost_race_with_a_deletion_yields() -> None:
    owners = Owners()
    owners.rows["network", NETWORK] = {"error": {"code": "DELETING", "message": "going"}}
    held = await taken(row(identityId=IDENTITY), (Need("network", NETWORK),), Directory(), owners)
    assert isinstance(held, Held)
    assert isinstance(held.outcome, Yield)


async def test_ref_007_a_dependency_that_is_not_provisioned_is_waited_for_by_name() -> None:
    owners = Owners()
    owners.rows["network", NETWORK] = target("network", NETWORK, state="provisioning", identityId=IDENTITY)
    owners.rows["identity", IDENTITY] = target("identity", IDENTITY)
    held = await taken(row(), (Need("network", NETWORK),), Directory(), owners)
    assert isinstance(held, Waiting)
    assert isinstance(held.outcome, Yield)
    assert NETWORK in held.outcome.message
    assert f"network/{NETWORK}" in held.granted


async def test_ref_007_an_identity_that_is_not_provisioned_is_waited_for() -> None:
    owners = Owners()
    owners.rows["identity", IDENTITY] = target("identity", IDENTITY, state="error")
    held = await taken(row(identityId=IDENTITY), (), Directory(), owners)
    assert isinstance(held, Waiting)
    assert held.rule is GateRule.NOT_READY


async def test_an_owner_that_does_not_answer_is_waited_for_and_nothing_is_assumed() -> None:
    owners = Owners()
    owners.silent = True
    held = await taken(row(identityId=IDENTITY), (), Directory(), owners)
    assert isinstance(held, Held)
    assert isinstance(held.outcome, Yield)


def test_ref_003_a_delete_with_consumers_waits_and_names_them() -> None:
    held = before_delete(
        replace(row(), deleting=True, consumers=("servers.region.unikorn-cloud.org/x",)),
        Directory(),
        lambda _: True,
        lambda _: True,
    )
    assert isinstance(held, Held)
    assert isinstance(held.outcome, Yield)
    assert held.outcome.code is Code.IN_USE
    assert "servers.region.unikorn-cloud.org/x" in held.outcome.message
    assert held.publish == ()


def test_ref_024_a_cascade_deletes_our_consumers_and_leaves_external_ones() -> None:
    consumers = (f"servers.region.unikorn-cloud.org/{NETWORK}", "clusters.example.org/1")
    held = before_delete(
        replace(row(), deleting=True, cascade=True, consumers=consumers),
        Directory(),
        lambda _: True,
        lambda _: True,
    )
    assert isinstance(held, Held)
    assert [(p.key.kind, p.key.id, p.body["delete"]) for p in held.publish] == [("server", NETWORK, True)]


def test_ref_001_without_a_granted_identity_nothing_was_ever_written() -> None:
    held = before_delete(
        replace(row(identityId=IDENTITY), deleting=True), Directory(), lambda _: True, lambda _: True
    )
    assert isinstance(held, Held)
    assert held.done


def test_ref_001_an_identity_without_a_project_is_unrealized() -> None:
    directory = Directory()
    directory.put(view_of(target("identity", IDENTITY, state="provisioning")["target"]))
    going = replace(row(identityId=IDENTITY), deleting=True, references={f"identity/{IDENTITY}": 1})
    held = before_delete(going, directory, lambda _: False, lambda _: False)
    assert isinstance(held, Held)
    assert held.done


def test_an_identity_nobody_has_heard_of_is_unknown_and_not_absent() -> None:
    going = replace(
        row(identityId=IDENTITY), deleting=True, references={f"identity/{IDENTITY}": 1}, ever_provisioned=True
    )
    held = before_delete(going, Directory(), lambda _: False, lambda _: False)
    assert isinstance(held, Held)
    assert isinstance(held.outcome, Retry)
    assert held.outcome.code is Code.UNKNOWN


def test_ref_002_a_realized_identity_lets_the_delete_through_whatever_the_status() -> None:
    going = replace(
        row(identityId=IDENTITY), deleting=True, references={f"identity/{IDENTITY}": 1}, status={}
    )
    opened = before_delete(going, Directory(), lambda _: True, lambda _: True)
    assert isinstance(opened, Open)
    assert opened.identity == IDENTITY


BUILT: dict[str, dict[str, Any]] = {
    "provisioned": {"ever_provisioned": True},
    "asked": {"intents": ({"intentId": "1"},)},
    "made": {"status": {"made": {"create": 1}}},
}


@pytest.mark.parametrize("has_user", [True, False])
@pytest.mark.parametrize("last", ["deleting", "gone"])
def test_ref_001_who_has_built_nothing_in_an_identity_that_ends_before_it_was_whole_goes_without_a_call(
    last: str, has_user: bool
) -> None:
    """The identity waits for us to go, and will never have what it takes to look for what we might have built."""
    directory = Directory()
    view = view_of(target("identity", IDENTITY, state="deprovisioning")["target"])
    directory.put(replace(view, deleting=last == "deleting", gone=last == "gone"))
    going = replace(row(identityId=IDENTITY), deleting=True, references={f"identity/{IDENTITY}": 1})
    for nothing in (going, replace(going, written_at=LATER)):  # a rebuilt row counts as just written
        held = before_delete(nothing, directory, lambda _: True, lambda _: has_user)
        assert isinstance(held, Held)
        assert (held.rule, held.done) == (GateRule.UNREALIZED, True)
    for trace in BUILT.values():
        built = replace(going, **trace)
        assert isinstance(before_delete(built, directory, lambda _: True, lambda _: has_user), Open)
    directory.put(replace(view, deleting=True, ever_provisioned=True, resource_version=9))
    assert isinstance(before_delete(going, directory, lambda _: True, lambda _: True), Open)


def test_ref_001_who_has_built_nothing_in_an_identity_without_a_user_goes_without_a_call() -> None:
    going = replace(row(identityId=IDENTITY), deleting=True, references={f"identity/{IDENTITY}": 1})
    directory = Directory()
    directory.put(view_of(target("identity", IDENTITY, state="error")["target"]))
    for known in (Directory(), directory):
        held = before_delete(going, known, lambda _: True, lambda _: False)
        assert isinstance(held, Held)
        assert (held.rule, held.done) == (GateRule.UNREALIZED, True)
        assert isinstance(before_delete(going, known, lambda _: True, lambda _: True), Open)
        for trace in (*BUILT.values(), {"written_at": LATER}):
            built = replace(going, **trace)
            assert isinstance(before_delete(built, known, lambda _: True, lambda _: False), Open)


def test_the_key_of_a_row_is_the_consumer_string() -> None:
    assert KEY.reference == f"volumes.region.unikorn-cloud.org/{KEY.id}"


async def test_a_reference_that_overtook_its_target_waits_a_while() -> None:
    async def record(_references: Mapping[str, int]) -> None:
        return None

    young = row(identityId=IDENTITY)
    assert young.created_at is not None
    soon, late = young.created_at + timedelta(seconds=29), young.created_at + timedelta(seconds=31)
    held = await take_references(young, (), Directory(), Owners(), record, soon)
    assert isinstance(held, Held)
    assert isinstance(held.outcome, Yield)
    held = await take_references(young, (), Directory(), Owners(), record, late)
    assert isinstance(held, Held)
    assert isinstance(held.outcome, Retry)


def test_ref_001_an_identity_that_never_asked_for_a_project_goes_without_a_call() -> None:
    """Whatever its region is, also one that nobody registered."""
    base = replace(row(), key=Key(REGION, PROJECT, "identity", IDENTITY))
    held = before_delete(base, Directory(), lambda _: False, lambda _: False)
    assert isinstance(held, Held)
    assert (held.rule, held.done) == (GateRule.UNREALIZED, True)
    for begun in (
        replace(base, record="sealed"),
        replace(base, status={**base.status, "projectReady": False}),
    ):
        assert isinstance(before_delete(begun, Directory(), lambda _: False, lambda _: False), Open)


def test_ref_001_what_waited_for_an_identity_that_never_was_goes_at_once() -> None:
    going = replace(row(identityId=IDENTITY), deleting=True, references={f"identity/{IDENTITY}": -1})
    held = before_delete(going, Directory(), lambda _: False, lambda _: False)
    assert isinstance(held, Held)
    assert held.done

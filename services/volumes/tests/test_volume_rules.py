"""A volume's decision table, row by row, and what its spec must fulfil."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from services.volumes.tests.world import (
    CLASS,
    NOW,
    OTHER,
    REGION,
    SERVER,
    TENANT,
    VOLUME,
    resource_of,
    spec_of,
)

from roadstead.reconcile.decision import Code, Decision, Done, Park, Retry, Yield
from roadstead.reconcile.kind import Metadata, Problem
from roadstead.reconcile.views import Directory
from roadstead.subjects import Key
from roadstead_volumes.classes import VolumeClass
from roadstead_volumes.volume.decide import DESTRUCTIVE, ERRORED, VolumeRule, VolumeVerb, decide
from roadstead_volumes.volume.model import CloudVolume, VolumeSeen
from roadstead_volumes.volume.validate import at_apply, validate

KEY = Key(REGION, TENANT, "volume", VOLUME)
CLAIMED = {"claimRef": {"kind": "Server", "id": SERVER}}


def made(status: str) -> VolumeSeen:
    return VolumeSeen(CloudVolume("c", status))


def provision(seen: VolumeSeen) -> Decision:
    return decide(resource_of(), seen, NOW)


def delete(seen: VolumeSeen, status: dict[str, Any] | None = None) -> Decision:
    return decide(resource_of(status=status, deleting=True), seen, NOW)


# ---------------------------------------------------------------- 13.1


def test_inv_140_nothing_there_is_created() -> None:
    decision = provision(VolumeSeen())
    assert (decision.rule, decision.verb) == (VolumeRule.ABSENT, VolumeVerb.CREATE)


def test_inv_147_available_is_done() -> None:
    decision = provision(made("available"))
    assert (decision.rule, decision.outcome) == (VolumeRule.AVAILABLE, Done())


def test_q6_in_use_is_done() -> None:
    decision = provision(made("in-use"))
    assert (decision.rule, decision.outcome) == (VolumeRule.ATTACHED, Done())


@pytest.mark.parametrize(
    "status", ["creating", "reserved", "attaching", "detaching", "deleting", "weird", ""]
)
def test_inv_145_inv_146_any_other_status_yields(status: str) -> None:
    decision = provision(made(status))
    assert decision.rule is VolumeRule.MOVING
    assert isinstance(decision.outcome, Yield)


@pytest.mark.parametrize("status", ["error", "error_extending", "error_deleting", "errored-somehow"])
def test_inv_148_inv_149_inv_151_an_error_state_is_terminal_with_the_one_text(status: str) -> None:
    decision = provision(made(status))
    text = "provider volume entered an error state"
    assert decision.rule is VolumeRule.BROKEN
    assert decision.outcome == Park(Code.VOLUME_ERRORED, text, terminal=True)


def test_a_class_that_is_not_offered_parks_before_anything_is_made() -> None:
    decision = provision(VolumeSeen(refusals=(Problem("NOT_OFFERED", "f", "one"), Problem("X", "f", "two"))))
    assert decision.rule is VolumeRule.NOT_OFFERED
    assert decision.outcome == Park(Code.NOT_OFFERED, "one; two")


@pytest.mark.parametrize(
    ("seen", "rule"),
    [
        (VolumeSeen(foreign=True), VolumeRule.FOREIGN),
        (VolumeSeen(mismatch=True), VolumeRule.MISMATCH),
        (VolumeSeen(no_surface=True), VolumeRule.NO_SURFACE),
    ],
)
def test_inv_139_a_wrong_place_is_an_error_that_is_tried_again(seen: VolumeSeen, rule: VolumeRule) -> None:
    decision = provision(seen)
    assert decision.rule is rule
    assert isinstance(decision.outcome, Retry)


# ---------------------------------------------------------------- 13.2


def test_inv_155_nothing_there_is_a_success() -> None:
    decision = delete(VolumeSeen())
    assert (decision.rule, decision.outcome) == (VolumeRule.REMOVED, Done())


@pytest.mark.parametrize(
    "status", ["available", "creating", "error", "error_deleting", "in-use", "weird", ""]
)
def test_inv_160_q7_whatever_is_there_is_deleted(status: str) -> None:
    decision = delete(made(status))
    assert (decision.rule, decision.verb) == (VolumeRule.LEFT, VolumeVerb.DELETE)


def test_a_delete_under_way_is_not_sent_again() -> None:
    decision = delete(made("deleting"))
    assert decision.rule is VolumeRule.GOING
    assert isinstance(decision.outcome, Yield)


@pytest.mark.parametrize("seen", [VolumeSeen(), made("available"), made("in-use")])
def test_ref_003_a_claim_keeps_the_deletion_waiting_and_is_named(seen: VolumeSeen) -> None:
    decision = delete(seen, CLAIMED)
    assert decision.rule is VolumeRule.CLAIMED
    assert isinstance(decision.outcome, Yield)
    assert decision.outcome.code is Code.IN_USE
    assert SERVER in decision.outcome.message


def test_another_tenants_place_holds_nothing_of_ours() -> None:
    decision = delete(VolumeSeen(foreign=True))
    assert (decision.rule, decision.outcome) == (VolumeRule.NOTHING_OURS, Done())


def test_without_block_storage_nothing_is_proved_gone() -> None:
    assert isinstance(delete(VolumeSeen(no_surface=True)).outcome, Retry)


STATUSES = st.one_of(
    st.sampled_from(["available", "in-use", "creating", "deleting", "error", "error_deleting"]),
    st.text(max_size=9),
)
SEEN = st.builds(
    VolumeSeen,
    found=st.none() | st.builds(CloudVolume, st.just("c"), STATUSES),
    refusals=st.sampled_from([(), (Problem("NOT_OFFERED", "f", "m"),)]),
    foreign=st.booleans(),
    mismatch=st.booleans(),
    no_surface=st.booleans(),
)


@given(SEEN, st.booleans(), st.booleans())
def test_the_table_is_total_and_only_a_deletion_destroys(
    seen: VolumeSeen, deleting: bool, claimed: bool
) -> None:
    decision = decide(resource_of(status=CLAIMED if claimed else {}, deleting=deleting), seen, NOW)
    if decision.verb in DESTRUCTIVE:
        assert deleting
        assert not claimed
        assert seen.found is not None
        assert not seen.foreign
    if decision.verb is VolumeVerb.CREATE:
        assert not deleting
        assert seen.found is None
    assert ERRORED in decision.why or "volume entered" not in decision.why


@given(SEEN)
def test_inv_161_no_decision_writes_a_size(seen: VolumeSeen) -> None:
    assert not decide(resource_of(), seen, NOW).status


# ---------------------------------------------------------------- spec


def codes(new: dict[str, Any], old: dict[str, Any] | None = None, **metadata: Any) -> list[str]:
    about = Metadata(name="data", organizationId="acme", projectId=TENANT, **metadata)
    stored = resource_of(old) if old is not None else None
    return [p.code for p in validate(spec_of(**new), about, stored, KEY)]


@pytest.mark.parametrize("size", ["1.5Gi", "10G", 10, "0Gi", "x"])
def test_q9_a_size_that_is_no_whole_gib_is_refused(size: str | int) -> None:
    assert codes({"size": size}) == ["SIZE_INVALID"]


def test_a_size_beyond_cinders_numbers_is_refused() -> None:
    assert codes({"size": f"{(1 << 31) - 1}Gi"}) == []
    assert codes({"size": f"{1 << 31}Gi"}) == ["SIZE_INVALID"]


def test_network_class_and_size_cannot_change() -> None:
    assert codes({"networkID": OTHER}, {}) == ["NETWORK_IMMUTABLE"]
    assert codes({"volumeClassID": "another"}, {}) == ["CLASS_IMMUTABLE"]
    assert codes({"size": "11Gi"}, {}) == ["SIZE_IMMUTABLE"]
    assert codes({"size": "10240Mi", "tags": []}, {}) == []


def test_every_problem_is_told_at_once() -> None:
    found = codes({"networkID": OTHER, "volumeClassID": "another", "size": "x"}, {})
    assert found == ["SIZE_INVALID", "NETWORK_IMMUTABLE", "CLASS_IMMUTABLE"]


def test_the_network_is_named_once() -> None:
    assert codes({}, networkId=OTHER) == ["NETWORK_MISMATCH"]
    assert codes({}, networkId=spec_of().networkID) == []


def test_a_claim_is_not_for_people_to_write() -> None:
    assert codes({"claimRef": {"kind": "Server", "id": SERVER}}) == ["CLAIM_NOT_WRITABLE"]
    assert codes({"claimRef": None}) == []


def test_a_network_id_is_a_uuid() -> None:
    with pytest.raises(ValueError, match="must be a UUID"):
        spec_of(networkID="net-1")


class Known:
    def __init__(self, classes: tuple[VolumeClass, ...] | None) -> None:
        self.classes = classes

    def known(self, region: str) -> tuple[VolumeClass, ...] | None:
        assert region == REGION
        return self.classes


@pytest.mark.parametrize(
    ("classes", "stored", "expected"),
    [
        ((), False, ["NOT_OFFERED"]),
        ((VolumeClass(CLASS, "c"),), False, []),
        ((VolumeClass(CLASS, "c", max_size=5),), False, ["SIZE_OUT_OF_BOUNDS"]),
        (None, False, []),
        ((), True, []),
    ],
)
def test_inv_169_a_request_is_checked_against_the_offered_classes(
    classes: tuple[VolumeClass, ...] | None, stored: bool, expected: list[str]
) -> None:
    """What is not known (yet) is left to the first pass; a stored volume's class is not judged again."""
    extras = {"inventory": Known(classes)}
    held = resource_of() if stored else None
    found = at_apply(KEY, Metadata(name="data"), spec_of(), held, Directory(), extras)
    assert [p.code for p in found] == expected

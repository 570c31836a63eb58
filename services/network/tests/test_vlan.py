"""The VLAN table: pure, so every rule is one call."""

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.region import Segment
from roadstead.testing.passbench import MemoryBook
from roadstead_network import vlan
from roadstead_network.vlan import Document, VlanError

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def table(*entries: tuple[int, str]) -> dict[str, Any]:
    return {"allocations": [{"id": i, "physicalNetworkID": n} for i, n in entries]}


def segments(*pairs: tuple[int, int]) -> list[Segment]:
    return [Segment(startId=a, endId=b) for a, b in pairs]


def test_the_lowest_free_id_of_the_segments_is_taken() -> None:
    assert vlan.allocate(None, "a", None) == (table((1, "a")), 1)
    assert vlan.allocate(table((1, "a")), "b", None)[1] == 2
    assert vlan.allocate(None, "a", segments((200, 210), (100, 101)))[1] == 100
    assert vlan.allocate(table((100, "a"), (101, "b")), "c", segments((200, 210), (100, 101)))[1] == 200


def test_ref_026_allocating_twice_gives_the_same_id_and_one_entry() -> None:
    document, first = vlan.allocate(None, "a", segments((7, 9)))
    again, second = vlan.allocate(document, "a", segments((8, 9)))
    assert (first, second) == (7, 7)
    assert again == document == table((7, "a"))


def test_ref_027_two_entries_for_one_network_are_an_allocation_error() -> None:
    with pytest.raises(VlanError, match="more than one"):
        vlan.allocate(table((7, "a"), (8, "a")), "a", None)


def test_ref_028_freeing_by_network_removes_both_entries() -> None:
    document, freed = vlan.free_network(table((7, "a"), (8, "a"), (9, "b")), "a")
    assert (document, freed) == (table((9, "b")), (7, 8))


def test_ref_029_nothing_is_stored_when_all_ids_are_used() -> None:
    full = table((7, "a"), (8, "b"))
    document, refusal = vlan.rule(lambda d: vlan.allocate(d, "c", segments((7, 8))))(full, NOW)
    assert isinstance(refusal, VlanError)
    assert document is full


async def test_ref_030_fifty_parallel_allocations_give_fifty_ids() -> None:
    book = MemoryBook()

    async def one(network: str) -> int:
        await asyncio.sleep(0)
        got = await book.change_document("vlan.r", vlan.rule(lambda d: vlan.allocate(d, network, None)))
        assert isinstance(got, int)
        return got

    ids = await asyncio.gather(*(one(f"network-{n}") for n in range(50)))
    assert sorted(ids) == list(range(1, 51))


@pytest.mark.parametrize("ident", [0, 4095, -1])
def test_ref_031_ids_out_of_range_cannot_be_freed_or_claimed(ident: int) -> None:
    with pytest.raises(VlanError, match="no VLAN id"):
        vlan.free(None, ident)
    with pytest.raises(VlanError, match="no VLAN id"):
        vlan.claim(None, "a", ident)


def test_freeing_by_id() -> None:
    assert vlan.free(None, 7) == (None, False)
    assert vlan.free(table((8, "a")), 7) == (table((8, "a")), False)
    assert vlan.free(table((7, "a"), (8, "b")), 7) == (table((8, "b")), True)
    with pytest.raises(VlanError, match="more than once"):
        vlan.free(table((7, "a"), (7, "b")), 7)


def test_freeing_by_network_without_a_table_is_fine() -> None:
    assert vlan.free_network(None, "a") == (None, ())


def test_a_claim_notes_what_the_cloud_shows_and_refuses_a_contradiction() -> None:
    assert vlan.claim(None, "a", 7) == (table((7, "a")), 7)
    assert vlan.claim(table((7, "a")), "a", 7) == (table((7, "a")), 7)
    for document in (table((8, "a")), table((7, "b"))):
        with pytest.raises(VlanError, match="disagree"):
            vlan.claim(document, "a", 7)


def test_an_inverted_segment_holds_nothing() -> None:
    with pytest.raises(VlanError, match="no VLAN id is free"):
        vlan.allocate(None, "a", segments((9, 7)))


def test_other_content_of_the_document_is_kept() -> None:
    document = {**table((7, "a")), "note": "kept"}
    assert vlan.free_network(document, "a")[0] == {**table(), "note": "kept"}
    changed, _ = vlan.allocate(document, "b", None)
    assert changed is not None
    assert changed["note"] == "kept"


steps = st.lists(st.tuples(st.sampled_from(["take", "give"]), st.sampled_from("abcdef")), max_size=40)


@given(steps)
def test_no_history_puts_one_id_into_two_hands(history: list[tuple[str, str]]) -> None:
    document: Document = None
    for what, network in history:
        if what == "take":
            with contextlib.suppress(VlanError):
                document, _ = vlan.allocate(document, network, segments((10, 13)))
        else:
            document, _ = vlan.free_network(document, network)
    entries = (document or {}).get("allocations", [])
    assert len({e["id"] for e in entries}) == len(entries) == len({e["physicalNetworkID"] for e in entries})
    holders = {
        n for i, (_, n) in enumerate(history) if ("give", n) not in history[i:] and ("take", n) in history[i:]
    }
    assert {e["physicalNetworkID"] for e in entries} <= holders

"""Rows, over both stores: what comes back is what went in, one writer after the other, and nothing is shared."""

import asyncio
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roadstead.store.api import Change, Outgoing, Query, Row, Store, Work

from .conftest import HandClock
from .rows import alter, blank, existing, key, listed, put

LATER = datetime(2031, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

FULL: dict[str, Any] = {
    "metadata": {"name": "ö", "tags": [{"name": "a", "value": "b"}], "deep": {"x": [1, 2.5, True, None]}},
    "spec": {"size": 3, "list": []},
    "generation": 7,
    "incarnation": 2,
    "epoch": 3,
    "sequence": 2**53 + 1,
    "born_epoch": 2,
    "born_sequence": 2**53,
    "deleting": True,
    "cascade": True,
    "deletion_timestamp": LATER,
    "gone_at": LATER,
    "next_spec": {"spec": {}, "position": [1, 2]},
    "warnings": ("one", "two"),
    "refusal": ({"code": "X"},),
    "observed": {"present": True},
    "observed_at": LATER,
    "status": {"phase": "up"},
    "resource_version": 9,
    "consumers": ("servers.g/1", "volumes.g/2"),
    "references": {"network/1": 4},
    "record": "sealed",
    "record_version": 5,
    "intents": ({"verb": "create"}, {"verb": "delete"}),
    "decided": {"rule": "S1"},
    "written_at": LATER,
    "failures": 3,
    "ever_provisioned": True,
    "paused_until": LATER,
    "paused": True,
    "created_at": LATER,
    "untold_since": LATER,
    "work": Work(LATER, 4, "me", LATER, 8, {"subject": "spec.x", "sequence": 3}),
}


def test_the_full_row_of_these_tests_leaves_no_column_out() -> None:
    assert {f.name for f in fields(Row)} == {*FULL, "key", "identity"}


async def test_a_row_with_every_column_comes_back_as_it_went_in(store: Store) -> None:
    row = blank(key(1), "i", **FULL)
    await store.change(row.key, put(row))
    assert await store.get("server", row.key.id) == row


@pytest.mark.parametrize("column", sorted(FULL))
async def test_each_column_alone_is_written(store: Store, column: str) -> None:
    row = blank(key(1))
    await store.change(row.key, put(row))
    await store.change(row.key, alter(**{column: FULL[column]}))
    assert await store.get("server", row.key.id) == replace(row, **{column: FULL[column]})


async def test_each_column_goes_back_to_its_blank_value(store: Store) -> None:
    row = blank(key(1))
    await store.change(row.key, put(blank(key(1), **FULL)))
    await store.change(row.key, put(row))
    assert await existing(store, row.key) == row


async def test_region_project_and_identity_can_change_and_the_rule_sees_the_stored_ones(store: Store) -> None:
    first, other = key(1), key(1, region=key(9).id, project="p2")
    await store.change(first, put(blank(first)))
    seen: list[Row | None] = []

    def move(row: Row | None, _now: datetime) -> Change:
        seen.append(row)
        assert row is not None
        return Change(
            replace(row, key=other, identity="j", work=replace(row.work, due_at=LATER - timedelta(3650)))
        )

    await store.change(other, move)
    assert [r.key for r in seen if r] == [first]
    assert (await existing(store, first)).key == other
    (lease,) = await store.claim("me", 5, 10)
    assert lease.key == other


async def test_true_one_and_one_point_zero_are_told_apart(store: Store) -> None:
    of = key(1)
    for value in (1, True, 1.0, False, 0):
        await store.change(of, put(blank(of, spec={"v": value})))
        got = (await existing(store, of)).spec["v"]
        assert (got, type(got)) == (value, type(value))


async def test_a_missing_row_is_none_to_get_and_to_the_rule(store: Store) -> None:
    seen: list[object] = []

    def look(row: Row | None, now: datetime) -> Change:
        seen.append(row)
        return Change(result="nothing")

    assert (await store.change(key(1), look)).result == "nothing"
    assert seen == [None]
    assert await store.get("server", key(1).id) is None


async def test_a_rule_is_told_the_stores_time(store: Store, clock: HandClock) -> None:
    times: list[datetime] = []

    def look(_row: Row | None, now: datetime) -> Change:
        times.append(now)
        return Change()

    await store.change(key(1), look)
    assert times == [clock.moment] == [await store.now()]
    clock.forward(5)
    assert await store.now() == clock.moment


async def test_a_rule_that_raises_changes_nothing(store: Store) -> None:
    of = key(1)
    await store.change(of, put(blank(of)))

    def fail(_row: Row | None, _now: datetime) -> Change:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        await store.change(of, fail)
    assert await existing(store, of) == blank(of)


async def test_same_id_of_two_kinds_are_two_rows(store: Store) -> None:
    server, volume = key(1), key(1, kind="volume")
    await store.change(server, put(blank(server, spec={"of": "server"})))
    await store.change(volume, put(blank(volume, spec={"of": "volume"})))
    assert (await existing(store, server)).spec == {"of": "server"}
    assert (await existing(store, volume)).spec == {"of": "volume"}


async def test_a_rule_must_not_return_another_resources_row(store: Store) -> None:
    with pytest.raises(ValueError, match="returned a row of server"):
        await store.change(key(1), put(blank(key(2))))
    assert await store.get("server", key(2).id) is None


# ---- nothing is shared


async def test_altering_a_row_that_was_handed_out_alters_nothing_stored(store: Store) -> None:
    row = blank(key(1), **FULL)
    await store.change(row.key, put(row))
    got: Any = await existing(store, row.key)
    got.spec["size"] = 99
    got.metadata["deep"]["x"].append(7)
    got.intents[0]["verb"] = "x"
    got.work.cause["subject"] = "y"
    (listed,) = await store.list(Query("server", gone=True))
    listed.status["phase"] = "z"  # type: ignore[index]  # the point of the test
    assert await existing(store, row.key) == row


async def test_altering_a_row_after_it_was_written_alters_nothing_stored(store: Store) -> None:
    spec: dict[str, Any] = {"list": [1]}
    row = blank(key(1), spec=spec)
    await store.change(row.key, put(row))
    spec["list"].append(2)
    assert (await existing(store, row.key)).spec == {"list": [1]}


async def test_a_rule_that_alters_a_column_in_place_alters_nothing(store: Store) -> None:
    of = key(1)
    await store.change(of, put(blank(of, spec={"a": [1]})))

    def impure(row: Any, _now: datetime) -> Change:
        row.spec["a"].append(2)
        return Change(replace(row, failures=1))

    await store.change(of, impure)
    row = await existing(store, of)
    assert (row.spec, row.failures) == ({"a": [1]}, 1)


# ---- what cannot be stored

BAD: list[Any] = [
    {"a": "x\0y"},
    {"a": {"k\0": 1}},
    {"a": "\ud800"},
    {"a": float("nan")},
    {"a": float("inf")},
    {"a": 2**63},
    {1: "a"},
    {"a": LATER},
    {"a": {1, 2}},
    {"a": b"x"},
]


@pytest.mark.parametrize("bad", BAD, ids=repr)
async def test_what_json_in_the_database_cannot_hold_is_refused_with_a_value_error(
    store: Store, bad: Any
) -> None:
    with pytest.raises(ValueError, match="cannot store"):
        await store.change(key(1), put(blank(key(1), spec=bad)))
    assert await store.get("server", key(1).id) is None
    with pytest.raises(ValueError, match="cannot store"):
        await store.change_document("d", lambda _d, _n: (bad, None))
    with pytest.raises(ValueError, match="cannot store"):
        await store.wake([("server", key(1).id)], bad)


@pytest.mark.parametrize(
    "columns",
    [
        {"identity": "a\0"},
        {"record": "\0"},
        {"warnings": ("\0",)},
        {"consumers": ("\0",)},
        {"intents": ({"a": "\0"},)},
    ],
    ids=repr,
)
async def test_nul_is_refused_in_every_text(store: Store, columns: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="NUL"):
        await store.change(key(1), put(blank(key(1), **columns)))
    with pytest.raises(ValueError, match="NUL"):
        await store.change(key(1), put(blank(key(1)), [Outgoing("a\0b", b"")]))
    assert await store.get("server", key(1).id) is None


async def test_a_text_that_no_row_can_hold_is_refused_in_questions_too(store: Store) -> None:
    with pytest.raises(ValueError, match="NUL"):
        await store.list(Query("server", tags=(("a", "\0"),)))
    with pytest.raises(ValueError, match="NUL"):
        await store.get("server", "\0")
    with pytest.raises(ValueError, match="NUL"):
        await store.wake([("server", "\0")], {})


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(value=json_values)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_comes_back_equal(value: Any) -> None:
    from roadstead.store.plain_json import copy_plain, same_json, to_plain

    assert same_json(to_plain(value), value)
    assert same_json(copy_plain(to_plain(value)), value)


async def test_many_json_values_come_back_equal_from_the_store(store: Store) -> None:
    values = [
        0.1,
        1e300,
        -1e-300,
        5e-324,
        2**63 - 1,
        -(2**63),
        "\u2028😀\\u0000",
        "",
        [],
        {},
        [[[]]],
        {"": {"": ""}},
    ]
    of = key(1)
    await store.change(of, put(blank(of, spec={"values": values})))
    assert (await existing(store, of)).spec == {"values": values}


# ---- races


async def test_twenty_inserters_of_one_id_come_one_after_the_other(store: Store, replica: Store) -> None:
    of = key(1)

    def one_more(row: Row | None, _now: datetime) -> Change:
        if row is None:
            return Change(blank(of, failures=1), result="inserted")
        return Change(replace(row, failures=row.failures + 1), result="updated")

    changes = await asyncio.gather(*(s.change(of, one_more) for _ in range(10) for s in (store, replica)))
    assert sorted(c.result for c in changes) == ["inserted"] + ["updated"] * 19
    assert (await existing(store, of)).failures == 20


async def test_fifty_writers_of_one_row_lose_no_update_whatever_column_they_write(
    store: Store, replica: Store
) -> None:
    of = key(1)
    await store.change(of, put(blank(of)))

    def count(row: Row | None, _now: datetime) -> Change:
        assert row is not None
        return Change(replace(row, failures=row.failures + 1))

    def note(row: Row | None, _now: datetime) -> Change:
        assert row is not None
        return Change(replace(row, status={"n": row.status.get("n", 0) + 1}))

    wakes = [store.wake([("server", of.id)], {}) for _ in range(16)]
    changes = [s.change(of, rule) for _ in range(8) for s in (store, replica) for rule in (count, note)]
    await asyncio.gather(*wakes, *changes)
    row = await existing(store, of)
    assert (row.failures, row.status, row.work.wake_seq) == (16, {"n": 16}, 16)


async def test_writers_of_many_rows_in_opposite_orders_all_end(store: Store, replica: Store) -> None:
    keys = [key(n) for n in range(8)]
    await asyncio.gather(*(store.change(k, put(blank(k))) for k in keys))
    pairs = [("server", k.id) for k in keys]
    calls = [s.wake(p, {}) for s in (store, replica) for p in (pairs, pairs[::-1]) for _ in range(8)]
    assert await asyncio.gather(*calls) == [8] * 32
    assert {(await existing(store, k)).work.wake_seq for k in keys} == {32}


# ---- listing


async def test_listing_filters_match_all_given_ones(store: Store) -> None:
    other_region = key(99).id
    rows = [
        blank(key(1), "i1", metadata={"name": "a", "networkId": "n1", "tags": [{"name": "t", "value": "1"}]}),
        blank(key(2, project="p2"), "i2", metadata={"name": "b"}, spec={"networkID": "n1"}),
        blank(
            key(3), "i1", metadata={"name": "a", "tags": []}, spec={"networks": [{"id": "n2"}, {"id": "n1"}]}
        ),
        blank(key(4, region=other_region), "i1", metadata={"name": "a", "networkId": ""}),
        blank(key(5), "i1", metadata={"name": "a"}, gone_at=LATER),
        blank(key(6, kind="volume"), "i1", metadata={"name": "a", "networkId": "n1"}),
        blank(
            key(7),
            metadata={
                "tags": [{"name": "t", "value": "1", "more": 0}, {"name": "u", "value": "2"}],
                "networkId": 5,
            },
        ),
    ]
    for row in rows:
        await store.change(row.key, put(row))
    assert await listed(store) == [1, 2, 3, 4, 7]
    assert await listed(store, gone=True) == [5]
    assert await listed(store, region=other_region) == [4]
    assert await listed(store, project="p2") == [2]
    assert await listed(store, identity="i1") == [1, 3, 4]
    assert await listed(store, name="a", project="p1") == [1, 3, 4]
    assert await listed(store, network="n1") == [1, 2]
    assert await listed(store, network="n2") == [3]
    assert await listed(store, tags=(("t", "1"),)) == [1, 7]
    assert await listed(store, tags=(("t", "1"), ("u", "2"))) == [7]
    assert await listed(store, tags=(("t", "2"),)) == []
    assert await listed(store, name="a", identity="i1", network="n1", tags=(("t", "1"),)) == [1]


async def test_listing_by_code_finds_those_with_one_of_them(store: Store) -> None:
    for number, status in enumerate(({"code": "A"}, {"code": "B"}, {"code": "C"}, {"code": ""}, {}), 1):
        await store.change(key(number), put(blank(key(number), status=status)))
    assert await listed(store, codes=("A", "C")) == [1, 3]
    assert await listed(store, codes=("C", "nobody's"), marker=key(1).id) == [3]
    assert await listed(store, codes=("nobody's",)) == []
    assert await listed(store) == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="NUL"):
        await store.list(Query("server", codes=("\0",)))


async def test_listing_pages_by_marker_without_gap_or_repeat(store: Store) -> None:
    for n in (5, 3, 1, 4, 2):
        await store.change(key(n), put(blank(key(n))))
    assert await listed(store, limit=2) == [1, 2]
    assert await listed(store, limit=2, marker=key(2).id) == [3, 4]
    assert await listed(store, limit=2, marker=key(4).id) == [5]
    with pytest.raises(ValueError, match="limit"):
        await store.list(Query("server", limit=0))

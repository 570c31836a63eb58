"""Plans: how wanted rows are paired with found ones, what is written, and what is verified."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead_ovn.northbound.database import NORTHBOUND, Database
from roadstead_ovn.northbound.operations import operations
from roadstead_ovn.northbound.plan import paired, plan
from roadstead_ovn.northbound.port import Conflict, Found, FoundRow
from roadstead_ovn.rows import HealthCheckRow, LoadBalancerRow, SwitchPort, Wanted

IDS = {"enabled": "True", "roadstead:revision": "3"}
PROTOCOLS = (None, "tcp", "udp", "sctp")


def row(protocol: str | None = "tcp", **more: object) -> LoadBalancerRow:
    plain = LoadBalancerRow("lb", protocol, {}, IDS)
    return replace(plain, **more)  # type: ignore[arg-type]  # fields by name


def there(handle: str, what: LoadBalancerRow, revision: int | None = 3) -> FoundRow:
    return FoundRow(handle, what, revision)


def test_nothing_differs_and_nothing_is_planned() -> None:
    made = plan("lb", 3, Wanted((row(),)), Found((there("a", row()),)))
    assert made.rows == 0
    assert made.verified == ()


def test_only_what_differs_is_written_and_all_found_rows_are_verified() -> None:
    wanted = Wanted((row(vips={"192.0.2.5:80": "192.0.2.10:80"}), row("udp")))
    found = Found((there("a", row()), there("b", row("udp"))))
    made = plan("lb", 3, wanted, found)
    (change,) = made.changes
    assert (change.before, change.columns) == (found.rows[0], ("external_ids", "vips"))
    assert change.after is not None
    assert change.after.external_ids == IDS
    assert made.verified == found.rows
    assert not made.is_alone


def test_a_grown_revision_is_written_to_every_row_and_an_older_one_is_refused() -> None:
    found = Found((there("a", row()), there("b", row("udp"))))
    wanted = Wanted((row(), row("udp")))
    newer = plan("lb", 4, wanted, found)
    assert [change.columns for change in newer.changes] == [("external_ids",)] * 2
    assert all(x.after and x.after.external_ids["roadstead:revision"] == "4" for x in newer.changes)
    older = plan("lb", 2, wanted, found)
    assert (older.newer, older.rows) == (3, 0)
    assert plan("lb", 2, Wanted(), found).newer == 3


def test_other_keys_of_ours_stay() -> None:
    ids = {**IDS, "roadstead:note": "kept"}
    made = plan("lb", 4, Wanted((row(vips={"v": "b"}),)), Found((there("a", row(external_ids=ids)),)))
    (change,) = made.changes
    assert change.after is not None
    assert change.after.external_ids["roadstead:note"] == "kept"


def test_a_bare_row_becomes_the_first_protocol_and_the_last_one_bare() -> None:
    bare = there("a", row(None))
    assert paired([row("tcp"), row("udp")], [bare]) == ([(row("tcp"), bare), (row("udp"), None)], [])
    last = [there("a", row("tcp")), there("b", row("udp"))]
    assert paired([row(None)], last) == ([(row(None), last[0])], [last[1]])


def test_of_rows_that_say_the_same_the_closest_stays() -> None:
    twin, good = there("a", row(vips={"x": "y"})), there("b", row())
    assert paired([row()], [twin, good]) == ([(row(), good)], [twin])


def test_a_row_is_hung_and_taken_down_by_difference() -> None:
    old = row(switches=frozenset({"s1", "s2"}), routers=frozenset({"r1"}))
    new = row(switches=frozenset({"s2", "s3"}))
    (change,) = plan("lb", 3, Wanted((new,)), Found((there("a", old),))).changes
    assert change.attached == (frozenset({"s3"}), frozenset())
    assert change.detached == (frozenset({"s1"}), frozenset({"r1"}))


def test_ports_and_translations_are_written_by_themselves() -> None:
    wanted = Wanted(
        (row(),), {"vip": SwitchPort(()), "gone": SwitchPort(())}, centralised=frozenset({"f1", "f2"})
    )
    found = Found((there("a", row()),), {"vip": ("mac ip",)}, frozenset({"f2", "f3"}))
    made = plan("lb", 3, wanted, found)
    assert made.addresses == {"vip": (("mac ip",), ())}
    assert made.unpinned == {"f2"}
    assert made.rows == 2
    assert made.verified == ()


ROWS = st.builds(
    lambda protocol, vips, checks: row(
        protocol,
        vips=vips,
        health_checks=tuple(HealthCheckRow(check, {"interval": "5"}, {}) for check in checks),
    ),
    st.sampled_from(PROTOCOLS),
    st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2),
    st.sets(st.sampled_from("cd"), max_size=2),
)


@given(
    st.lists(ROWS, max_size=3, unique_by=lambda r: r.protocol), st.lists(ROWS, max_size=4), st.integers(0, 6)
)
def test_each_wanted_row_has_one_found_row_at_most_and_none_is_lost(
    wanted: list[LoadBalancerRow], found: list[LoadBalancerRow], revision: int
) -> None:
    rows = [there(str(number), each) for number, each in enumerate(found)]
    pairs, extra = paired(wanted, rows)
    assert [each for each, _ in pairs] == wanted
    used = [one.handle for _, one in pairs if one] + [one.handle for one in extra]
    assert sorted(used) == sorted(one.handle for one in rows)
    made = plan("lb", revision, Wanted(tuple(wanted)), Found(tuple(rows)))
    assert (made.newer is not None) == (bool(rows) and revision < 3)


class NoHandles:
    """A copy that has nothing any more."""

    def current(self, handle: str) -> None:
        return None

    def checks_of(self, handle: str) -> dict[str, HealthCheckRow]:
        return {}

    def named(self, table: str, name: str) -> tuple[str, ...]:
        return ()


def test_a_plan_whose_rows_or_switches_are_gone_is_out_of_date() -> None:
    found = Found((there("a", row()),))
    with pytest.raises(Conflict, match="has changed"):
        operations(plan("lb", 4, Wanted((row(),)), found), NoHandles())
    with pytest.raises(Conflict, match="s1 is gone"):
        operations(plan("lb", 4, Wanted((row(switches=frozenset({"s1"})),)), Found()), NoHandles())


@pytest.mark.parametrize("chooses", [True, False])
def test_a_first_row_is_made_once_whichever_way_the_server_allows(chooses: bool) -> None:
    database = Database(NORTHBOUND)
    ops = operations(plan("lb", 1, Wanted((row(),)), Found()), NoHandles(), chooses=chooses)
    results, changes = database.transact(ops)
    assert not [result for result in results if result.get("error")]
    assert [table for table, _, _ in changes] == ["Load_Balancer"]
    again, nothing = database.transact(ops)
    assert again[-1]["error"] == ("duplicate uuid" if chooses else "timed out")
    assert nothing == []

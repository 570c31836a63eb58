"""What people are told of load balancers that nobody knows, that differ, and that a newer revision keeps from being repaired."""

import asyncio
from typing import Any

import pytest
import typer

from roadstead.cli.failures import UserError
from roadstead_ovn import cli
from roadstead_ovn.operate import Operate

from .test_passes import Stage, parts, played

UNKNOWN = "8b1f6a1e-0d5c-4d53-8d35-6a1c1b7f0a42"


def operate(stage: Stage) -> Operate:
    return Operate(stage.store, stage.copy, stage.api, stage.stimuli._subnets, stage.runner)


async def asked(stage: Stage, question: str, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = (await operate(stage).answer(f"operate_{question}", arguments))["returns"]
    return found


async def lost_revisions(stage: Stage) -> None:
    """A load balancer whose rows say revision 900, as after the API's database came back from a backup, and are damaged."""
    stage.create(**parts())
    await asyncio.sleep(1)
    (row,) = stage.rows()
    damaged = {**row["external_ids"], "roadstead:revision": "900"}
    values = {"external_ids": ["map", sorted(damaged.items())], "vips": ["map", []]}
    where = [["name", "==", "lb-1"]]
    stage.region.write([{"op": "update", "table": "Load_Balancer", "where": where, "row": values}])
    stage.copy.deliver()


@played
async def test_an_unknown_id_is_no_such_load_balancer_and_leaves_no_row(stage: Stage) -> None:
    stage.create()
    await asyncio.sleep(1)
    for question in ("diff", "show", "sync"):
        assert (await asked(stage, question, UNKNOWN))["fault"].startswith(
            f"no such load balancer: {UNKNOWN}"
        )
    assert UNKNOWN not in stage.store.rows


@played
async def test_a_name_and_the_id_of_a_regions_load_balancer_are_resolved(stage: Stage) -> None:
    for number, name in enumerate(("lb-1", "lb-2", "lb-3")):
        stage.create(name, f"192.0.2.10{number}")
    await asyncio.sleep(1)
    for identifier, name in (("lb-1", f"lb-{UNKNOWN}"), ("lb-2", "twice"), ("lb-3", "twice")):
        stage.api.trees[identifier]["loadbalancer"]["name"] = name
    for word in (UNKNOWN, f"lb-{UNKNOWN}"):
        assert (await asked(stage, "show", word))["loadbalancer_id"] == "lb-1"
    assert (await asked(stage, "diff", "twice"))["fault"] == (
        "2 load balancers are named twice; give an id: lb-2, lb-3"
    )


@played
async def test_rows_without_a_load_balancer_are_told_and_not_unknown(stage: Stage) -> None:
    stage.create()
    await asyncio.sleep(1)
    del stage.api.trees["lb-1"]
    assert (await asked(stage, "diff", "lb-1"))["rows_without_tree"] == {"lb-1": 1}
    assert (await asked(stage, "show", "lb-1"))["statuses"] == {}
    everything = await asked(stage, "diff", "")
    assert [each["why"] for each in everything["loadbalancers"]] == ["the Octavia API does not have it"]


@played
async def test_a_newer_revision_is_told_with_what_differs_below_it(stage: Stage) -> None:
    await lost_revisions(stage)
    found = await asked(stage, "diff", "lb-1")
    assert found["newer"] == 900
    assert "vips" in {each["column"] for each in found["differences"]}
    everything = await asked(stage, "diff", "")
    assert (everything["compared"], everything["differing"]) == (1, 1)
    assert everything["loadbalancers"][0]["why"] == "the database holds revision 900, above the API's 1"


@played
async def test_a_comparison_makes_a_newer_revision_fail_where_the_metric_counts_it(stage: Stage) -> None:
    await lost_revisions(stage)
    await stage.stimuli.compare_once()
    await asyncio.sleep(0.1)
    assert (await stage.store.queue()).due == 1
    stage.live()
    await asyncio.sleep(5)
    assert (await stage.store.queue()).failing == 1
    work = await stage.store.one("lb-1")
    assert work is not None
    assert "newer revision" in (work.fault or "")
    assert stage.rows()[0]["vips"] == {}


@played
async def test_adopt_writes_over_a_newer_revision_and_later_changes_go_on_from_it(stage: Stage) -> None:
    await lost_revisions(stage)
    stage.live()
    assert await asked(stage, "sync", "lb-1") == {"due": 1}
    await asyncio.sleep(5)
    assert stage.rows()[0]["vips"] == {}
    assert await asked(stage, "sync", "lb-1", True) == {"due": 1}
    await asyncio.sleep(5)
    (row,) = stage.rows()
    assert row["vips"] == {"192.0.2.101:80": "192.0.2.10:80,192.0.2.11:80"}
    assert row["external_ids"]["roadstead:revision"] == "1"
    assert (await stage.store.queue()).failing == 0
    found = await asked(stage, "diff", "lb-1")
    assert (found["newer"], found["differences"]) == (None, [])
    stage.api.child("lb-1", "listeners", port=81, pool_id="po")
    await asyncio.sleep(5)
    assert set(stage.rows()[0]["vips"]) == {"192.0.2.101:80", "192.0.2.101:81"}


# ------------------------------------------------------------ the commands


@pytest.fixture
def reply(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the worker answers, to be filled in."""
    answer: dict[str, Any] = {}
    monkeypatch.setattr(cli, "_ask", lambda *_, **__: answer)
    return answer


@pytest.mark.parametrize(
    "said",
    [
        {"differences": [], "newer": 900, "revision": 1},
        {"differences": [{"row": "r", "column": "c", "found": "1", "wanted": "2"}], "newer": None},
        {"differences": [], "rows_without_tree": {"lb-1": 1}},
    ],
)
def test_diff_ends_with_3_when_something_differs_and_does_not_say_nothing(
    said: dict[str, Any], reply: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    reply |= said
    with pytest.raises(typer.Exit) as ending:
        cli.diff("lb-1")
    assert ending.value.exit_code == 3
    printed = capsys.readouterr()
    assert "nothing differs" not in printed.out + printed.err
    assert ("--adopt" in printed.out + printed.err) == (said.get("newer") is not None)


def test_diff_of_all_names_them_and_ends_with_3_or_0(
    reply: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    reply |= {
        "compared": 3,
        "differing": 2,
        "loadbalancers": [{"loadbalancer_id": "lb-1", "why": "2 rows differ"}],
    }
    with pytest.raises(typer.Exit) as ending:
        cli.diff(every=True)
    assert ending.value.exit_code == 3
    printed = capsys.readouterr()
    assert "2 rows differ" in printed.out
    assert "and 1 more" in printed.out + printed.err
    reply |= {"differing": 0, "loadbalancers": []}
    cli.diff(every=True)
    printed = capsys.readouterr()
    assert "nothing differs in 3 load balancers" in printed.out + printed.err


@pytest.mark.parametrize("given", [(None, False), ("lb-1", True), ("", False)])
def test_diff_and_sync_want_an_id_or_all(given: tuple[str | None, bool]) -> None:
    for command in (cli.diff, cli.sync):
        with pytest.raises(UserError, match="or --all"):
            command(*given)

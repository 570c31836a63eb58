"""A session of the command line on a stack with the quickstart: answers, refusals, a second start, and rebuilding either side."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli_stack import Home, new_home

pytestmark = [pytest.mark.timeout(500)]
NAMES = {
    ("region", "simulator"),
    ("identity", "quickstart"),
    ("network", "quickstart"),
    ("securitygroup", "web"),
    ("volume", "data"),
    ("server", "web-1"),
    ("server", "web-2"),
    ("loadbalancer", "web"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A stack in the background, with everything of the quickstart provisioned."""
    home = new_home(tmp_path_factory.mktemp("session"))
    try:
        said = home.good("up", "--detach", "--quickstart")
        assert "\nEverything is provisioned. Try next" in said
        assert said.splitlines()[-1].strip().endswith("watch server")
        yield home
    finally:
        home.run("down", "--wipe")


def ids(home: Home) -> dict[tuple[str, str], str]:
    return {(d["kind"], d["metadata"]["name"]): d["metadata"]["id"] for d in home.json("get", "all")}


def test_get_as_json_is_a_list_of_kind_metadata_spec_status(home: Home) -> None:
    found = home.json("get", "all")
    assert {(d["kind"], d["metadata"]["name"]) for d in found} == NAMES
    assert all(set(d) == {"kind", "metadata", "spec", "status"} for d in found)
    assert {d["status"]["provisioningStatus"] for d in found} == {"provisioned"}
    assert [d["metadata"]["name"] for d in home.json("get", "server", "web-1")] == ["web-1"]


def test_the_members_of_the_load_balancer_are_the_servers_addresses(home: Home) -> None:
    (balancer,) = home.json("get", "lb")
    members = balancer["spec"]["listeners"][0]["pool"]["members"]
    servers = {s["metadata"]["name"]: s["status"]["privateIP"] for s in home.json("get", "server")}
    assert members == [{"address": servers["web-1"], "port": 80}, {"address": servers["web-2"], "port": 80}]


def test_what_get_printed_applies_again_without_an_edit(home: Home, tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text(home.good("get", "server", "-o", "json"))
    done = home.json("apply", "-f", str(tmp_path / "all.json"))
    assert [(d["result"], d["generation"]) for d in done] == [("unchanged", 1), ("unchanged", 1)]


def test_why_leads_from_the_spec_to_the_request_of_the_cloud(home: Home) -> None:
    chain = home.json("why", "server", "web-1")["chain"]
    writes = {w["path"]: (link, w) for link in chain for w in link["writes"] if w["service"] == "compute"}
    link, write = writes["/servers"]
    assert link["rule"]
    assert link["cause"]["subject"].split(".")[0] in ("spec", "status")
    assert write["openstackRequestId"].startswith("req-")
    assert write["outcome"] == "ok"


def test_a_network_in_use_is_not_deleted_and_its_users_are_named(home: Home) -> None:
    done = home.run("delete", "network", "quickstart")
    assert done.status == 1
    assert f"servers.region.unikorn-cloud.org/{ids(home)['server', 'web-1']}" in done.err
    assert "(IN_USE)" in done.err
    assert len(done.err.splitlines()) == 1


def test_a_refused_document_is_one_line_and_what_was_accepted_stays(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "kind: network\nmetadata: {name: quickstart}\nspec: {prefix: 10.99.0.0/24, dnsNameservers: [x]}\n"
    )
    done = home.run("apply", "-f", str(path))
    assert done.status == 1
    assert f"{path}, document 1: network quickstart: " in done.err
    assert "spec.prefix cannot be changed" in done.err
    assert "'x' is no IPv4 address" in done.err, "every problem at once"
    assert len(done.err.splitlines()) == 1
    (network,) = home.json("get", "network")
    assert network["spec"]["prefix"] == "192.168.10.0/24"


def test_a_wait_that_takes_too_long_is_a_failure(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "lonely.yaml"
    path.write_text(
        "kind: securitygroup\nmetadata: {name: lonely, networkId: 4f1f4df7-37d2-4d25-a07b-6f7c8a0f0c11, "
        "identityId: quickstart}\nspec: {rules: [{direction: egress, protocol: any}]}\n"
    )
    began = time.monotonic()
    done = home.run("apply", "-f", str(path), "--wait", "--timeout", "3")
    assert done.status == 1
    assert "securitygroup lonely" in done.err
    assert time.monotonic() - began < 60
    home.good("delete", "securitygroup", "lonely", "--wait")


def test_a_dead_letter_is_listed_shown_and_published_again(home: Home) -> None:
    import asyncio

    import nats

    region = json.loads(home.good("get", "region", "-o", "json"))[0]["metadata"]["id"]

    async def publish() -> None:
        (url,) = [line.split("=", 1)[1] for line in home.good("env").splitlines() if "NATS_URL" in line]
        client = await nats.connect(url)
        await client.jetstream().publish(f"spec.{region}.demo.server.{region}", b"{")
        await client.close()

    asyncio.run(publish())
    deadline = time.monotonic() + 20
    while not (letters := home.json("dlq", "list")):
        assert time.monotonic() < deadline
    letter = letters[-1]
    assert (letter["reason"], letter["service"]) == ("NOT_JSON", "compute")
    shown = home.json("dlq", "show", str(letter["sequence"]))
    assert shown["body"] == "{"
    assert "published again" in home.good("dlq", "replay", str(letter["sequence"]))
    while len(home.json("dlq", "list")) < len(letters) + 1:
        assert time.monotonic() < deadline + 20
    assert home.run("dlq", "show", "999").status == 1
    home.good("delete", "server", region)  # what was never accepted is known by its refusal alone
    assert ids(home).keys() == NAMES


def test_a_second_start_finds_everything_provisioned_and_writes_nothing(home: Home) -> None:
    before, made = home.writes(), ids(home)
    home.good("down")
    said = home.good("up", "--detach", "--quickstart")
    ready = said.index("running in the background")
    lines = said[ready:].splitlines()
    seconds = [float(line.split(" s")[0].split()[-1]) for line in lines if " provisioned " in line]
    assert seconds
    assert max(seconds) < 30
    assert ids(home) == made
    assert home.writes() == before


@pytest.mark.parametrize(("lost", "source"), [("nats", "database"), ("postgres", "bus")])
def test_a_lost_side_is_rebuilt_from_the_other_and_nothing_is_made_twice(
    home: Home, lost: str, source: str
) -> None:
    before, made = home.writes(), ids(home)
    refused = home.run("rebuild", "--from", source)
    assert refused.status == 4
    assert "`roadstead up --bare`" in refused.err
    home.good("down")
    shutil.rmtree(home.path / lost)
    home.good("up", "--detach", "--bare")
    first = home.json("rebuild", "--from", source)
    count = "specs" if source == "database" else "rows"
    assert sum(line[count] for line in first.values()) == len(NAMES)
    again = home.json("rebuild", "--from", source)
    assert sum(line[count] for line in again.values()) == 0, "running it again does nothing"
    home.good("down")
    home.good("up", "--detach")
    assert ids(home) == made
    if source == "bus":
        time.sleep(65 * 0.2 + 5)  # rebuilt rows fall due after the settling time
    assert {d["status"]["provisioningStatus"] for d in home.json("get", "all")} == {"provisioned"}
    (server,) = home.json("get", "server", "web-1")
    assert server["metadata"]["generation"] == 1
    assert home.writes() == before
    assert home.run("doctor").status == 0

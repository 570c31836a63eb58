"""`roadstead up --ovn`: a load balancer that is wished for as a file ends up as rows of a real OVN."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from roadstead.testing.ovn_mirror import Session
from tests.integration.cli_stack import Home, new_home

pytestmark = [pytest.mark.ovn, pytest.mark.timeout(420)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A stack over OVN, with the quickstart applied."""
    home = new_home(tmp_path_factory.mktemp("ovn"))
    try:
        home.good("up", "--ovn", "--quickstart", "--detach", timeout=360)
        yield home
    finally:
        home.run("down", "--wipe")


def rows(home: Home) -> list[dict[str, Any]]:
    session = Session(f"unix:{home.path}/ovn/run/nb.sock")
    try:
        return session.select("Load_Balancer", ["name", "vips", "protocol"])
    finally:
        session.close()


def until(test: Callable[[], bool], within: float = 60.0) -> None:
    deadline = time.monotonic() + within
    while not test():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.2)


def test_the_quickstarts_load_balancer_is_in_ovn_with_its_servers(home: Home) -> None:
    (row,) = rows(home)
    (ours,) = home.json("get", "loadbalancer")
    ((place, members),) = dict(row["vips"]).items()
    assert place == f"{ours['status']['vipAddress']}:80"
    assert len(members.split(",")) == 2


def test_status_and_doctor_know_ovn_and_the_worker(home: Home) -> None:
    health = {p["name"]: p["health"] for p in home.json("status")["processes"]}
    assert (health["ovn"], health["ovn-worker"], health["octavia-api"]) == ("ok", "ok", "ok")
    assert "octavia-noop" not in health
    lines = {line["check"]: line["state"] for line in json.loads(home.run("doctor", "-o", "json").out)}
    assert lines["provider ovn"] == "ok"


def test_a_database_that_is_killed_comes_back_with_its_rows(home: Home) -> None:
    before = rows(home)
    os.kill(home.parts()["ovn"].pid, signal.SIGKILL)
    until(lambda: home.parts()["ovn"].restarts >= 1 and home.parts()["ovn"].state == "ready")
    assert rows(home) == before


def test_down_ends_every_daemon_and_up_finds_the_rows_again(home: Home) -> None:
    before = rows(home)
    pids = [int(file.read_text()) for file in (home.path / "ovn" / "run").glob("*.pid")]
    assert len(pids) >= 3
    home.good("down")
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), 20)
    home.good("up", "--ovn", "--detach", timeout=360)
    assert rows(home) == before
    until(lambda: home.run("status").status == 0)

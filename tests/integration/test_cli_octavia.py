"""`roadstead up --octavia`: the region's load balancers go through the Octavia API, and the command line watches over it."""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.integration.cli_stack import Home, new_home

pytestmark = [pytest.mark.timeout(420)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A stack with the API, and the quickstart applied."""
    home = new_home(tmp_path_factory.mktemp("octavia"))
    try:
        home.good("up", "--octavia", "--quickstart", "--detach", timeout=360)
        yield home
    finally:
        home.run("down", "--wipe")


def catalog_and_token(home: Home) -> tuple[str, str]:
    """The load balancing address that the simulated cloud's catalog tells an administrator, and a token."""
    auth = yaml.safe_load((home.path / "simulator" / "clouds.yaml").read_text())["clouds"]["sim"]["auth"]
    identity = {
        "methods": ["password"],
        "password": {
            "user": {"name": auth["username"], "domain": {"id": "default"}, "password": auth["password"]}
        },
    }
    scope = {"project": {"name": auth["project_name"], "domain": {"id": "default"}}}
    request = urllib.request.Request(
        f"{auth['auth_url'].rstrip('/')}/auth/tokens",
        json.dumps({"auth": {"identity": identity, "scope": scope}}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        catalog = json.load(answer)["token"]["catalog"]
        token = str(answer.headers["X-Subject-Token"])
    (entry,) = [each for each in catalog if each["type"] == "load-balancer"]
    return str(entry["endpoints"][0]["url"]), token


def load_balancers(home: Home) -> list[dict[str, Any]]:
    url, token = catalog_and_token(home)
    request = urllib.request.Request(f"{url}/v2/lbaas/loadbalancers", headers={"X-Auth-Token": token})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return list(json.load(answer)["loadbalancers"])


def test_the_catalog_leads_to_the_api_and_the_regions_load_balancer_lies_there(home: Home) -> None:
    url, _ = catalog_and_token(home)
    assert url == home.parts()["octavia-api"].address
    (found,) = load_balancers(home)
    assert (found["provisioning_status"], found["provider"]) == ("ACTIVE", "noop")
    (ours,) = home.json("get", "loadbalancer")
    assert found["name"].endswith(ours["metadata"]["id"])


def test_status_and_logs_know_the_api_and_its_provider(home: Home) -> None:
    health = {p["name"]: p["health"] for p in home.json("status")["processes"]}
    assert (health["octavia-api"], health["octavia-noop"]) == ("ok", "ok")
    assert "answering" in home.good("logs", "octavia-api", "-n", "500")


def test_doctor_looks_at_schema_api_and_provider(home: Home) -> None:
    lines = {line["check"]: line for line in json.loads(home.run("doctor", "-o", "json").out)}
    assert lines["schema octavia"]["state"] == "ok"
    assert lines["octavia API"]["state"] == "ok"
    assert home.parts()["octavia-api"].address in lines["octavia API"]["text"]
    assert (lines["provider noop"]["state"], lines["provider noop"]["text"]) == ("ok", "it answers")
    # The provider is stopped, not killed, so that the supervisor does not start it again meanwhile.
    provider = home.parts()["octavia-noop"].pid
    os.kill(provider, signal.SIGSTOP)
    try:
        done = home.run("doctor", "-o", "json")
    finally:
        os.kill(provider, signal.SIGCONT)
    silent = {line["check"]: line for line in json.loads(done.out)}["provider noop"]
    assert done.status == 1
    assert silent["state"] == "wrong"
    assert silent["text"] == "it does not answer: what needs it gets 503; it is the default"


def test_the_api_that_is_killed_comes_back_and_keeps_what_it_had(home: Home) -> None:
    before = home.parts()["octavia-api"]
    kept = load_balancers(home)
    os.kill(before.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while home.parts()["octavia-api"].restarts == 0 or home.parts()["octavia-api"].state != "ready":
        assert time.monotonic() < deadline, "it did not come back"
        time.sleep(0.1)
    assert load_balancers(home) == kept


def test_the_stack_goes_down_and_up_again_with_the_same_address_and_objects(home: Home) -> None:
    before, kept = home.parts()["octavia-api"].address, load_balancers(home)
    home.good("down")
    home.good("up", "--octavia", "--detach", timeout=360)
    assert home.parts()["octavia-api"].address == before
    assert load_balancers(home) == kept

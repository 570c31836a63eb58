"""The Octavia API as part of a local stack: what it is started with, and its user in the cloud."""

import stat
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from roadstead.cli.failures import UserError
from roadstead.cli.stack.build import Blueprint
from roadstead.cli.stack.home import Home
from roadstead.cli.stack.octavia import Octavia, settle_user
from roadstead.cli.stack.parts import Child
from roadstead.cloud.administration import Administrator
from roadstead.cloud.port import Verdict
from roadstead.cloud.sending import NotSent, RawAnswer
from roadstead.testing.cloudsim.cloud import Cloud
from roadstead.testing.cloudsim.http import Front


async def nothing() -> None:
    """In place of migrations."""


def blueprint(tmp_path: Path, *, octavia: Octavia | None) -> Blueprint:
    home = Home(tmp_path / "run")
    home.make()
    return Blueprint(home, "simulator", octavia=octavia)


def test_the_api_starts_after_the_cloud_in_which_its_user_is_made(tmp_path: Path) -> None:
    plan = blueprint(tmp_path, octavia=Octavia.NOOP)
    ground, cloud, upper = plan.stages(nothing)
    assert [part.name for part in ground.parts] == ["nats", "postgres"]
    assert [part.name for part in cloud.parts] == ["simulator"]
    assert cloud.then is not None
    names = [part.name for part in upper.parts]
    assert names[-2:] == ["octavia-api", "octavia-noop"]
    assert "octavia" in plan.schemas
    api = next(part for part in upper.parts if part.name == "octavia-api")
    assert isinstance(api, Child)
    assert api.environment["ROADSTEAD_OCTAVIA_AUTH_URL"].endswith(f":{plan.simulator_port}/identity/v3")
    simulator = cloud.parts[0]
    assert isinstance(simulator, Child)
    assert f"load-balancer={api.address}" in simulator.command


def test_with_ovn_the_worker_is_the_provider_and_the_cloud_writes_to_its_database(tmp_path: Path) -> None:
    plan = blueprint(tmp_path, octavia=Octavia.OVN)
    ground, cloud, upper = plan.stages(nothing)
    assert [part.name for part in ground.parts] == ["nats", "postgres", "ovn"]
    assert [part.name for part in upper.parts][-2:] == ["octavia-api", "ovn-worker"]
    assert {"octavia", "roadstead_ovn"} <= set(plan.schemas)
    northbound = f"unix:{plan.home.ovn}/run/nb.sock"
    simulator, worker = cloud.parts[0], upper.parts[-1]
    assert isinstance(simulator, Child)
    assert isinstance(worker, Child)
    assert simulator.command[simulator.command.index("--northbound") + 1] == northbound
    assert worker.environment["ROADSTEAD_OVN_NB_CONNECTION"] == northbound


def test_a_folder_too_deep_for_ovns_sockets_is_refused_with_the_remedy(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    with pytest.raises(UserError, match="too long a path for OVN's sockets: set ROADSTEAD_HOME"):
        blueprint(deep, octavia=Octavia.OVN)


def test_a_stack_without_it_has_no_part_of_it(tmp_path: Path) -> None:
    plan = blueprint(tmp_path, octavia=None)
    names = [part.name for stage in plan.stages(nothing) for part in stage.parts]
    assert not [name for name in names if name.startswith("octavia")]
    assert "octavia" not in plan.schemas


class Unwilling:
    """An administrator whose cloud does one thing with every request."""

    auth_url, region_name = "", None

    def __init__(self, answer: RawAnswer | NotSent) -> None:
        self._answer = answer

    async def request(
        self, service: str, method: str, path: str, json: Any = None, query: Mapping[str, str] | None = None
    ) -> RawAnswer:
        if isinstance(self._answer, NotSent):
            raise self._answer
        return self._answer


def unwilling(answer: RawAnswer | NotSent) -> Administrator:
    return cast(Administrator, Unwilling(answer))


async def test_a_cloud_that_refuses_or_is_silent_is_one_line_with_the_remedy() -> None:
    with pytest.raises(UserError, match=r"refused GET /projects with 403: no; `roadstead down --wipe`"):
        await settle_user(unwilling(RawAnswer(403, {}, b"no")), "word")
    with pytest.raises(UserError, match="does not answer GET /projects: closed"):
        await settle_user(unwilling(NotSent(Verdict.UNAVAILABLE, "closed")), "word")


async def test_the_user_is_made_once_and_gets_the_password_of_the_file(tmp_path: Path) -> None:
    plan = blueprint(tmp_path, octavia=Octavia.NOOP)
    assert plan.octavia is not None
    front = Front(Cloud(), "127.0.0.1", 0)
    front.start()
    try:
        plan.clouds_yaml.write_text(front.clouds_yaml())
        for _ in range(2):
            await plan.octavia.prepare(plan.clouds_yaml)
        first = token(front, plan.home.octavia_password.read_text().strip())
        assert {role["name"] for role in first["roles"]} >= {"admin", "service"}
        plan.home.octavia_password.unlink()
        await plan.octavia.prepare(plan.clouds_yaml)
        second = token(front, plan.home.octavia_password.read_text().strip())
    finally:
        front.stop()
    assert second["user"]["id"] == first["user"]["id"]
    assert stat.S_IMODE(plan.home.octavia_password.stat().st_mode) == 0o600


def token(front: Front, password: str) -> dict[str, Any]:
    """What the cloud says of the API's user when it logs in."""
    user = {"name": "octavia", "domain": {"id": "default"}, "password": password}
    scope = {"project": {"name": "service", "domain": {"id": "default"}}}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
    request = urllib.request.Request(
        f"{front.auth_url}/auth/tokens", orjson.dumps(body), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        found: dict[str, Any] = orjson.loads(answer.read())["token"]
    return found

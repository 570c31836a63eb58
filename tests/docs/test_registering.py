"""The operator's page followed to the letter: its commands, as they stand, on real processes over the simulated cloud."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nats
import pytest
import yaml
from nats.aio.client import Client
from nats.aio.msg import Msg

from roadstead.subjects import Key, api_subject, spec_subject
from roadstead.testing.cloudsim.cloud import Cloud
from roadstead.testing.cloudsim.http import Front, clouds_yaml
from roadstead.testing.cloudsim.settings import SimSettings
from tests.docs.reading import OPERATIONS, blocks, commands, section
from tests.world.stack import Stack

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PAGE = OPERATIONS.read_text()
REGISTERING = section(PAGE, "Registering a region")
LEFT = section(PAGE, "What an identity leaves in Neutron")
ROTATING = section(PAGE, "A new password for the region")
PACE = 0.1
BOUND = 150.0
PROJECT = "operations"


@dataclass
class Deployment:
    """Broker, database and services of one region, with an operator's shell in `folder`."""

    stack: Stack
    front: Front
    folder: Path
    transcript: list[str] = field(default_factory=list)

    @property
    def cloud(self) -> Cloud:
        return self.front.cloud

    def shell(self, lines: list[str]) -> subprocess.CompletedProcess[str]:
        """Run the lines one after another in one shell that stops at the first failure."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ROADSTEAD_", "OS_"))}
        environment = {
            **kept,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / ".config"),
            "ROADSTEAD_HOME": str(self.folder / "no-local-stack"),
            "OS_CLIENT_CONFIG_FILE": str(self.folder / "clouds.yaml"),
        }
        script = "set -e\n" + "\n".join(lines)
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=False,
        )
        self.transcript.append(f"{script}\n{done.stdout}{done.stderr}")
        return done

    def region(self) -> str:
        """The id that the guide's commands left in north.txt."""
        (line,) = [x for x in (self.folder / "north.txt").read_text().splitlines() if "ROADSTEAD_REGION" in x]
        return line.rpartition("=")[2]

    def credential(self) -> dict[str, str]:
        """The variables that `configure` wrote."""
        lines = (self.folder / "production.env").read_text().splitlines()
        pairs = (line.removeprefix("export ").partition("=") for line in lines if "=" in line)
        return {name.removeprefix("ROADSTEAD_CLOUD_"): value.strip("'\"") for name, _, value in pairs}

    def write_smoke(self) -> None:
        (self.folder / "smoke.yaml").write_text(
            next(block for block in blocks(REGISTERING, "yaml") if block.startswith("# smoke.yaml"))
        )


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Installed as the page says, with nothing registered; the context is the page's, with this machine's addresses."""
    folder = tmp_path_factory.mktemp("operator")
    cloud = Cloud(settings=SimSettings(), seed=21)
    cloud.settings.durations.scale(PACE)
    stack = Stack(pace=PACE)
    # The runner's threads start the servers, which end with the thread that started them.
    with Front(cloud) as front, asyncio.Runner() as runner:
        try:
            runner.run(stack.start())
            (folder / "clouds.yaml").write_text(
                clouds_yaml(
                    front.auth_url, cloud.settings.admin_password, cloud.settings.region_name, "admin"
                )
            )
            (folder / "seal.keys").write_text(stack.seal_key + "\n")
            (folder / "seal.keys").chmod(0o600)
            context = {
                "natsUrl": stack.nats.url,
                "databaseUrl": stack.postgres.url,
                "sealKeyFile": "~/seal.keys",
            }
            contexts = folder / ".config/roadstead/contexts.yaml"
            contexts.parent.mkdir(parents=True)
            contexts.write_text(
                yaml.safe_dump({"current": "production", "contexts": {"production": context}})
            )
            yield Deployment(stack, front, folder)
        finally:
            stack.stop()
    shutil.rmtree(stack.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def registered(deployment: Deployment) -> Deployment:
    """The section's commands, all of them, in their order."""
    deployment.write_smoke()
    done = deployment.shell(commands(REGISTERING))
    assert done.returncode == 0, deployment.transcript[-1]
    return deployment


def creates(cloud: Cloud, ending: str, since: int = 0) -> list[Any]:
    return [
        c
        for c in cloud.log
        if c.sequence > since and c.method == "POST" and c.path.endswith(ending) and c.status in (200, 201)
    ]


def test_inv_021_the_guide_followed_to_the_letter_gives_a_working_region(registered: Deployment) -> None:
    """Configured, registered and checked without a fault; an identity with its network came and went through it."""
    transcript = registered.transcript[0]
    assert "POLICY_" not in transcript
    listed = registered.shell(["roadstead region list -o json"])
    (north,) = json.loads(listed.stdout)
    assert (north["metadata"]["name"], north["status"]["provisioningStatus"]) == ("north", "provisioned")
    made = [c.body["project"]["name"] for c in creates(registered.cloud, "/projects")]
    assert [name for name in made if name.startswith("unikorn-identity-")], made
    names = [c.body["network"]["name"] for c in creates(registered.cloud, "/networks")]
    assert [name for name in names if name.startswith("network-")], names
    left = {p["name"] for p in registered.cloud.keystone.store.projects.values()}
    assert left == {"admin", "production-provider"}, "the check and the smoke test leave nothing"


# ---------------------------------------------------------------- reading Region and secret


class Listener:
    """Which reads of streams anybody asks of the broker while it listens."""

    READS = ("CONSUMER.CREATE", "STREAM.MSG.GET", "DIRECT.GET")
    STREAMS = ("STATUS", "CREDENTIAL")

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def take(self, message: Msg) -> None:
        verb = message.subject.removeprefix("$JS.API.")
        if verb.startswith(self.READS) and any(f".{name}" in f".{verb}" for name in self.STREAMS):
            self.asked.append(verb)


async def until(wanted: Any, what: str, seconds: float = 60.0) -> Any:
    ends = time.monotonic() + seconds
    while not (found := await wanted()):
        assert time.monotonic() < ends, what
        await asyncio.sleep(0.1)
    return found


class Person:
    """A plain client of the bus."""

    def __init__(self, client: Client, region: str) -> None:
        self.client = client
        self.region = region

    async def publish(self, kind: str, ident: str, name: str, spec: dict[str, Any], **metadata: str) -> Key:
        key = Key(self.region, PROJECT, kind, ident)
        body = {"metadata": {"name": name, "organizationId": PROJECT, **metadata}, "spec": spec}
        await self.client.jetstream().publish(spec_subject(key), json.dumps(body).encode())
        return key

    async def ask(self, key: Key, verb: str) -> dict[str, Any]:
        subject = api_subject(key.region, key.project, key.kind, verb)
        answer = await self.client.request(subject, json.dumps({"id": key.id}).encode(), timeout=10)
        reply: dict[str, Any] = json.loads(answer.data)
        return reply

    async def provisioned(self, key: Key) -> None:
        async def reads_so() -> bool:
            reply = await self.ask(key, "get")
            return bool(reply.get("status", {}).get("provisioningStatus") == "provisioned")

        await until(reads_so, f"{key} is not provisioned")


def test_inv_023_inv_024_inv_027_a_cold_service_reads_region_and_secret_first_and_then_only_follows(
    registered: Deployment,
) -> None:
    """A network waits for a service that is not there.  Its process starts with nothing in memory and reads Region and secret before
    its first pass, which therefore never lacks them.  From then on nothing is read again: one follower a stream stays, and tells it of
    the password that the page's commands rotate.
    """
    asyncio.run(_cold_start(registered))


async def _cold_start(deployment: Deployment) -> None:
    stack = deployment.stack
    client = await nats.connect(stack.nats.url)
    try:
        person, listener = Person(client, deployment.region()), Listener()
        identity = await person.publish(
            "identity", "11111111-1111-4111-8111-111111111111", "cold", {"provider": "openstack"}
        )
        await person.provisioned(identity)
        process = stack.processes["network-0"]
        await asyncio.to_thread(process.kill)
        spec = {"prefix": "10.251.0.0/24", "dnsNameservers": ["192.0.2.53"]}
        waiting = await person.publish(
            "network", "22222222-2222-4222-8222-222222222222", "waits", spec, identityId=identity.id
        )
        await client.subscribe("$JS.API.>", cb=listener.take)
        await client.flush()
        process.start()
        await stack.ready()
        await person.provisioned(waiting)
        history = await person.ask(waiting, "history")
        rules = [entry["rule"] for entry in history["entries"] if entry["kind"] == "decided"]
        codes = {entry.get("code") for entry in history["entries"] if entry["kind"] == "decided"}
        assert rules[0] == "5.1-2b", (
            rules
        )  # the create, at once: no pass before it lacked Region, identity or secret
        assert not codes & {"KEY", "NOT_FOUND", "CONSISTENCY"}, codes

        bootstrap = sorted(
            verb.split(".")[2] for verb in listener.asked if verb.startswith("CONSUMER.CREATE")
        )
        assert bootstrap == ["CREDENTIAL", "STATUS"], listener.asked
        listener.asked.clear()
        running = [each._child for each in stack.processes.values()]
        later = await person.publish(
            "network",
            "33333333-3333-4333-8333-333333333333",
            "later",
            {**spec, "prefix": "10.252.0.0/24"},
            identityId=identity.id,
        )
        await person.provisioned(later)

        region = Key(deployment.region(), "_", "region", deployment.region())
        before = (await person.ask(region, "get"))["spec"]
        assert before["openstack"]["blockStorage"]["volumeClasses"]["selector"]["ids"]
        old, mark = deployment.credential(), deployment.cloud.sequence
        done = await asyncio.to_thread(deployment.shell, commands(ROTATING))
        assert done.returncode == 0, deployment.transcript[-1]
        new = deployment.credential()
        assert (await person.ask(region, "get"))["spec"] == before, "what is not said again stays"
        assert new["USER_ID"] == old["USER_ID"]
        assert new["PASSWORD"] != old["PASSWORD"]
        last = await person.publish(
            "network",
            "44444444-4444-4444-8444-444444444444",
            "last",
            {**spec, "prefix": "10.253.0.0/24"},
            identityId=identity.id,
        )
        await person.provisioned(last)
        assert creates(deployment.cloud, "/networks", mark), "the network was made with the new password"
        assert [each._child for each in stack.processes.values()] == running
        assert listener.asked == [], "Region or secret was read again while running"
        for key in (waiting, later, last, identity):
            await client.jetstream().publish(spec_subject(key), b'{"delete": true}')
    finally:
        await client.close()


def test_the_pages_remedy_removes_default_groups_of_projects_that_are_gone_and_no_other(
    registered: Deployment,
) -> None:
    """The probe of the check and the smoke test's identity left one each: the region's user may not remove it (409)."""
    groups = registered.cloud.neutron.state.groups
    projects = registered.cloud.keystone.store.projects

    def orphans() -> list[str]:
        return [g["id"] for g in groups if g["name"] == "default" and g["project_id"] not in projects]

    left = orphans()
    assert left
    before = {g["id"]: g["project_id"] for g in groups}
    done = registered.shell(commands(LEFT))
    assert done.returncode == 0, registered.transcript[-1]
    after = {g["id"] for g in groups}
    assert not after & set(left)
    assert {ident for ident, project in before.items() if project in projects} <= after


def test_inv_065_a_cloud_that_hides_launched_at_is_told_by_the_guides_check(registered: Deployment) -> None:
    """The check that the page asks for once there is a server: exit status 1, by name and with the remedy."""
    server = Path(registered.folder / "server.yaml")
    documents = list(yaml.safe_load_all((registered.folder / "smoke.yaml").read_text()))
    wish = {"flavorID": "small", "image": {"id": "ubuntu-24.04"}, "networks": [{"id": "smoke"}]}
    server.write_text(
        yaml.safe_dump_all([*documents, {"kind": "server", "metadata": {"name": "web"}, "spec": wish}])
    )
    people = [line for line in commands(REGISTERING) if line.startswith(("eval", "export"))]
    made = registered.shell([*people, "roadstead apply -f server.yaml --wait"])
    assert made.returncode == 0, registered.transcript[-1]
    check = commands(REGISTERING)[-1]
    assert check == "roadstead region check north"
    assert registered.shell([check]).returncode == 0, registered.transcript[-1]
    registered.cloud.settings.change({"hide_launched_at": True})
    try:
        told = registered.shell([f"{check} -o json"])
        assert told.returncode == 1
        (finding,) = [f for f in json.loads(told.stdout) if f["code"] == "LAUNCHED_AT_HIDDEN"]
        assert finding["severity"] == "error"
        assert finding["remedy"]
    finally:
        registered.cloud.settings.change({"hide_launched_at": False})

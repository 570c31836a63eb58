"""What each user of the broker may not do, against a real server with the shipped configuration."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nats
import pytest

from roadstead.assembly import Service
from roadstead.bus.rights import SERVICES, service_rights, tenant_rights
from roadstead.subjects import KINDS
from roadstead.testing.servers import NatsServer

from ..reconcile.toy import KIND
from .conftest import PROJECT, REGION, Rig, dead_letters, eventually, new_id, spec_body, subject_of

pytestmark = pytest.mark.integration

GENERATE = Path(__file__).parents[4] / "deploy/nats/generate.py"
OTHER = "project-b"


@dataclass
class Secured:
    """A broker with the shipped users."""

    server: NatsServer
    keys: Path

    def seed(self, user: str) -> str:
        return (self.keys / f"{user}.nk").read_text().strip()

    @asynccontextmanager
    async def user(self, name: str, inbox: str | None = None) -> AsyncIterator["Login"]:
        login = Login()
        login.client = await nats.connect(
            self.server.url,
            nkeys_seed_str=self.seed(name),
            inbox_prefix=inbox or f"_INBOX_{name}",
            error_cb=login.on_error,
        )
        try:
            yield login
        finally:
            await login.client.close()

    def rig(self, service: Service) -> Rig:
        return Rig(self.server.url, service=service, nkey_seed=self.seed(service.name))


class Login:
    """A connection that keeps what the server refused."""

    client: Any

    def __init__(self) -> None:
        self.refused: list[str] = []

    async def on_error(self, error: Exception) -> None:
        self.refused.append(str(error).lower())

    async def may_publish(self, subject: str) -> bool:
        before = len(self.refused)
        await self.client.publish(subject, b"{}")
        await self.client.flush()
        await asyncio.sleep(0.05)
        return len(self.refused) == before

    async def may_subscribe(self, subject: str) -> bool:
        before = len(self.refused)
        await self.client.subscribe(subject)
        await self.client.flush()
        await asyncio.sleep(0.05)
        return len(self.refused) == before


@pytest.fixture(scope="module")
def secured(server_directory: Path) -> Iterator[Secured]:
    folder = server_directory / "secured"
    command = [sys.executable, str(GENERATE), str(folder)]
    tenants = ["--tenant", f"alice:{REGION}:{PROJECT}", "--tenant", f"bob:{REGION}:{OTHER}"]
    subprocess.run(
        [*command, *tenants, "--provider", "ovn", "--provider", "noop"],
        check=True,
        timeout=60,
        capture_output=True,
    )
    os.environ["NATS_SERVER_NAME"] = "secured"
    server = NatsServer(folder / "server", config=folder / "roadstead.conf", die_with_parent=True)
    server.start()
    yield Secured(server, folder / "keys")
    server.kill()


VOLUMES = Service("volumes", (KIND,), ("network",))


async def test_a_service_does_its_work_with_the_least_rights(secured: Secured) -> None:
    """Streams, consumers, specs, status, dead letters, requests: all of it, and the server refused nothing."""
    rig = secured.rig(VOLUMES)
    await rig.start()
    try:
        ident = new_id()
        async with secured.user("alice") as alice, secured.user("operator") as operator:
            heard: list[str] = []

            async def hear(message: Any) -> None:
                heard.append(message.subject)

            await alice.client.subscribe(f"status.{REGION}.{PROJECT}.>", cb=hear)
            await alice.client.flush()
            await alice.client.publish(subject_of(ident), spec_body("red"))
            await alice.client.publish(subject_of(new_id()), b"{")
            await eventually(lambda: rig.row(ident))
            await eventually(lambda: subject_of(ident, head="status") in heard)
            await eventually(lambda: dead_letters(operator.client))
            get = f"api.{REGION}.{PROJECT}.volume.get"
            reply = await alice.client.request(get, f'{{"id": "{ident}"}}'.encode(), timeout=5)
            assert b'"red"' in reply.data
            assert alice.refused == []
        await rig.bus.purge("SPEC", subject_of(ident), up_to=1, keep=0)
        assert rig.bus.meters.value("roadstead_bus_errors_total", error="Error") == 0
    finally:
        await rig.stop()


@pytest.mark.parametrize("name", SERVICES)
async def test_every_service_can_start(secured: Secured, name: str) -> None:
    from roadstead.subjects import OWNERS

    kinds = tuple(replace(KIND, name=k, service=name) for k, owner in OWNERS.items() if owner == name)
    rig = secured.rig(Service(name, kinds, KINDS))
    await rig.start()
    try:
        assert await rig.streams.fault() is None
        assert rig.bus.meters.value("roadstead_bus_errors_total", error="Error") == 0
    finally:
        await rig.stop()


TENANT_MAY_NOT_PUBLISH = [
    f"spec.{REGION}.{OTHER}.volume.{new_id()}",
    f"spec.{new_id()}.{PROJECT}.volume.{new_id()}",
    f"spec.{REGION}._.region.{REGION}",
    f"status.{REGION}.{PROJECT}.volume.{new_id()}",
    f"observed.{REGION}.{PROJECT}.volume.{new_id()}",
    f"acted.{REGION}.{PROJECT}.volume.{new_id()}",
    f"credential.{REGION}.{new_id()}",
    f"dlq.volumes.{REGION}.{PROJECT}.volume.{new_id()}",
    f"api.{REGION}.{OTHER}.volume.get",
    f"api.{REGION}.{OTHER}.identity.credentials",
    f"api.{REGION}._.region.apply",
    "rpc.identity.region.credentials",
    "rpc.volumes.reference.remove",
    "$JS.API.STREAM.MSG.GET.STATUS",
    "$JS.API.STREAM.MSG.GET.CREDENTIAL",
    "$JS.API.CONSUMER.CREATE.SPEC.mine",
    "$JS.API.CONSUMER.MSG.NEXT.SPEC.volumes-spec",
    "$JS.API.STREAM.PURGE.SPEC",
    "$JS.API.STREAM.DELETE.SPEC",
    "$JS.ACK.SPEC.volumes-spec.1.1.1.1.0",
    "_INBOX_bob.reply",
]


@pytest.mark.parametrize("subject", TENANT_MAY_NOT_PUBLISH)
async def test_a_tenant_may_not_publish_to(secured: Secured, subject: str) -> None:
    async with secured.user("alice") as alice:
        assert not await alice.may_publish(subject)
        assert "permissions violation" in alice.refused[0]


@pytest.mark.parametrize(
    "subject",
    [
        ">",
        "status.>",
        f"status.{REGION}.>",
        f"status.{REGION}.{OTHER}.>",
        f"spec.{REGION}.{PROJECT}.>",
        "credential.>",
        "dlq.>",
        "rpc.>",
        f"api.{REGION}.{PROJECT}.volume.>",
        "_INBOX.>",
        "_INBOX_bob.>",
        "_INBOX_identity.>",
    ],
)
async def test_a_tenant_may_not_listen_to(secured: Secured, subject: str) -> None:
    async with secured.user("alice") as alice:
        assert not await alice.may_subscribe(subject)


async def test_a_tenant_may_work_in_its_own_project(secured: Secured) -> None:
    async with secured.user("alice") as alice:
        for subject in (
            subject_of(new_id()),
            f"api.{REGION}.{PROJECT}.server.list",
            f"api.{REGION}._.flavor.list",
            f"api.{REGION}._.region.get",
        ):
            assert await alice.may_publish(subject), subject
        for subject in (f"status.{REGION}.{PROJECT}.>", f"decided.{REGION}.{PROJECT}.>", "_INBOX_alice.>"):
            assert await alice.may_subscribe(subject), subject


@pytest.mark.parametrize(
    "subject",
    [
        f"spec.{REGION}.{PROJECT}.server.{new_id()}",
        f"status.{REGION}.{PROJECT}.server.{new_id()}",
        f"observed.{REGION}.{PROJECT}.volume.{new_id()}",
        f"credential.{REGION}.{new_id()}",
        f"dlq.compute.{REGION}.{PROJECT}.server.{new_id()}",
        f"api.{REGION}.{PROJECT}.volume.get",
        "$JS.API.STREAM.DELETE.SPEC",
        "$JS.API.STREAM.PURGE.HISTORY",
        "$JS.API.STREAM.SNAPSHOT.CREDENTIAL",
        "$JS.API.CONSUMER.DELETE.SPEC.volumes-spec",
        "$JS.API.CONSUMER.MSG.NEXT.OBSERVED.compute-observed",
        "$JS.ACK.SPEC.compute-spec.1.1.1.1.0",
    ],
)
async def test_a_service_may_not_publish_for_another(secured: Secured, subject: str) -> None:
    async with secured.user("volumes") as volumes:
        assert not await volumes.may_publish(subject)


@pytest.mark.parametrize(
    "subject",
    [">", "spec.>", "credential.>", "api.*.*.server.>", "rpc.identity.>", "_INBOX_identity.>", "status.>"],
)
async def test_a_service_may_not_listen_for_another(secured: Secured, subject: str) -> None:
    async with secured.user("volumes") as volumes:
        assert not await volumes.may_subscribe(subject)


async def test_the_monitor_observes_and_owns_nothing(secured: Secured) -> None:
    async with secured.user("monitor") as monitor:
        assert await monitor.may_publish(f"observed.{REGION}.{PROJECT}.server.{new_id()}")
        for head in ("spec", "status", "acted"):
            assert not await monitor.may_publish(f"{head}.{REGION}.{PROJECT}.server.{new_id()}")


async def test_only_identity_hands_out_credentials(secured: Secured) -> None:
    for name in SERVICES:
        async with secured.user(name) as login:
            allowed = await login.may_publish(f"credential.{REGION}.{new_id()}")
            assert allowed is (name == "identity"), name


async def test_the_octavia_api_asks_providers_and_hands_out_their_work(secured: Secured) -> None:
    async with secured.user("octavia-api") as api:
        for subject in ("provider.ovn.call.pool.create", "rpc.provider.ovn.check", "rpc.provider.ovn.ask.x"):
            assert await api.may_publish(subject), subject
        assert await api.may_subscribe("rpc.provider.*.tree")
        for subject in ("provider.ovn.status", f"spec.{REGION}.{PROJECT}.volume.x", "rpc.provider.ovn.tree"):
            assert not await api.may_publish(subject), subject
        assert not await api.may_subscribe("rpc.provider.ovn.check")


async def test_a_provider_does_its_own_work_and_nobody_elses(secured: Secured) -> None:
    from roadstead.bus.streams import consumer_config, ensure_streams
    from roadstead.subjects import provider_calls

    async with secured.user("octavia-api") as api:
        await ensure_streams(api.client.jetstream(), ())
    async with secured.user("provider-ovn") as provider:
        js = provider.client.jetstream()
        mine = provider_calls("ovn")
        await js.add_consumer(mine.stream, consumer_config(mine))
        for subject in ("provider.ovn.result", "provider.ovn.status", "rpc.provider.ovn.tree"):
            assert await provider.may_publish(subject), subject
        assert await provider.may_subscribe("rpc.provider.ovn.check")
        assert provider.refused == []
        for subject in (
            "provider.noop.result",
            "provider.ovn.call.pool.create",
            "rpc.provider.noop.tree",
            "rpc.provider.ovn.check",
            "$JS.API.CONSUMER.MSG.NEXT.PROVIDER_CALLS.provider-noop",
            "$JS.API.STREAM.DELETE.PROVIDER_CALLS",
        ):
            assert not await provider.may_publish(subject), subject
        for subject in ("rpc.provider.noop.check", "rpc.provider.ovn.tree", "provider.noop.>", "spec.>"):
            assert not await provider.may_subscribe(subject), subject


@pytest.mark.parametrize(
    "subject", ["$JS.API.STREAM.DELETE.SPEC", f"status.{REGION}.{PROJECT}.volume.x", f"credential.{REGION}.x"]
)
async def test_an_operator_may_not_publish_to(secured: Secured, subject: str) -> None:
    async with secured.user("operator") as operator:
        assert not await operator.may_publish(subject)
        assert not await operator.may_subscribe("credential.>")


async def test_a_denied_publication_is_a_failure_and_a_metric(secured: Secured) -> None:
    from roadstead.bus.failures import PublishFailed

    rig = Rig(secured.server.url, service=VOLUMES, nkey_seed=secured.seed("volumes"), publish_patience=1)
    await rig.start()
    try:
        with pytest.raises(PublishFailed):
            await rig.bus.publish(f"credential.{REGION}.{new_id()}", b"{}", {})
        assert rig.bus.meters.value("roadstead_bus_errors_total", error="Error") > 0
    finally:
        await rig.stop()


async def test_without_a_key_nobody_is_let_in(secured: Secured) -> None:
    with pytest.raises(nats.errors.Error, match=r"(?i)authorization"):
        await nats.connect(secured.server.url, allow_reconnect=False, connect_timeout=2)


def test_keys_are_kept_when_the_file_is_written_again_and_readable_by_their_owner_only(
    secured: Secured,
) -> None:
    before = {path.name: path.read_text() for path in secured.keys.iterdir()}
    command = [sys.executable, str(GENERATE), str(secured.keys.parent)]
    done = subprocess.run(
        [*command, "--tenant", f"carol:{REGION}:{OTHER}"],
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
    )
    after = {path.name: path.read_text() for path in secured.keys.iterdir()}
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"carol.nk"}
    assert {path.stat().st_mode & 0o777 for path in secured.keys.iterdir()} == {0o600}
    assert not any(seed.strip() in done.stdout + done.stderr for seed in after.values())


@pytest.mark.parametrize(
    "arguments",
    [["--tenant", "alice"], ["--tenant", "alice:r:p.>"], ["--tenant", "identity:r:p"], ["--operator", "a b"]],
)
def test_arguments_that_cannot_be_are_refused_in_one_line(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, str(GENERATE), str(tmp_path), *arguments]
    done = subprocess.run(command, check=False, timeout=60, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "roadstead.conf").exists()


def test_no_tenant_has_a_right_of_another_project() -> None:
    rights = tenant_rights("alice", REGION, [PROJECT])
    assert not any(OTHER in s or s.startswith((">", "*")) for s in (*rights.publish, *rights.subscribe))
    with pytest.raises(ValueError, match="no service"):
        service_rights("alice")

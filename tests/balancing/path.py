"""The way of a load balancer: its region's services, our own Octavia API and a provider, all of them processes on one bus.

The simulated cloud is Keystone and Neutron; its catalog names our API for load balancers.  The provider takes what OVN takes, unless
a test brings another one.
"""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path as Folder
from typing import Any

import nats
from nats.js.errors import NotFoundError

from roadstead.cloud.configure import Wanted, configure
from roadstead.cloud.register import register
from roadstead.cloud.sdk import SdkAdministrator
from roadstead.events import dump
from roadstead.store.migrate import migrate
from roadstead.subjects import Key, api_subject, rpc_subject, spec_subject, status_subject
from tests.octavia.client import Client
from tests.octavia.ground import START, Ground, Program
from tests.world.stack import Stack

ORGANIZATION, PROJECT = "balanced-organization", "balanced-project"
WITHIN = 120.0
DEADLINE = 15.0  # of the API's operations; then it takes back what a request of a killed process left
ROOT = Folder(__file__).resolve().parents[2]
SERVICES = ("identity", "network", "loadbalancer")
Document = Mapping[str, Any]


async def eventually(check: Callable[[], Awaitable[Any]]) -> Any:
    """The first true value; TimeoutError after WITHIN seconds."""
    async with asyncio.timeout(WITHIN):
        while True:
            if value := await check():
                return value
            await asyncio.sleep(0.05)


class Path(Ground):
    """Built by `open`, ended by `close`.  One identity with one network is there; load balancers are applied by tests.

    trace: file that all processes append their spans to.
    """

    schemas: tuple[str, ...] = ("octavia",)
    prefix = "192.168.40.0/24"

    def __init__(
        self, *, algorithm: str = "SOURCE_IP_PORT", pace: float = 0.1, trace: Folder | None = None
    ) -> None:
        self.trace = trace
        self.stack = Stack(pace=pace, services=SERVICES)
        super().__init__(
            self.stack.folder,
            self.stack.postgres,
            "postgres",
            enabled_provider_drivers="ovn:As OVN does.",
            default_provider_driver="ovn",
            operation_deadline=DEADLINE,
        )
        self.nats = self.stack.nats
        self.algorithm = algorithm
        self.region_id = str(uuid.uuid4())

    def provider(self) -> Program:
        """Starts the provider; a test may bring another one."""
        settings = {**self._common("provider-ovn"), "PYTHONPATH": ROOT}
        program = Program(
            self.folder / "provider-ovn",
            "tests.balancing.ovn_manners",
            self.nats,
            "rpc.provider.ovn.check",
            settings,
        )
        program.start(START)
        return program

    def _common(self, replica: str) -> dict[str, Any]:
        told = {"ROADSTEAD_TRACE_FILE": self.trace} if self.trace is not None else {}
        return {**super()._common(replica), **told}

    # ------------------------------------------------------------ start and end

    async def open(self) -> "Path":
        await self.stack.start()
        await migrate(self.postgres.url, list(self.schemas))
        self.database = self.postgres.url.rpartition("/")[2]
        await asyncio.to_thread(self._surround)
        self.client = await nats.connect(self.nats.url, max_reconnect_attempts=-1)
        self.js = self.client.jetstream()
        await self._register()
        self.identity = await self.settled("identity", {})
        net = {"prefix": self.prefix, "dnsNameservers": ["192.0.2.53"]}
        self.network = await self.settled("network", net, identityId=self.identity.id)
        self.octavia = Client(self.url, self.people.admin_token)
        return self

    def _surround(self) -> None:
        self.enter_cloud()
        self.add_replica()
        self.name_service()
        self.providers["ovn"] = self.provider()

    async def close(self) -> None:
        if hasattr(self, "octavia"):
            self.octavia.close()
        if hasattr(self, "client"):
            await self.client.close()
        for program in (*self.replicas, *self.providers.values()):
            program.kill()
        self.leave_cloud()
        self.stack.stop()
        self.stack.remove()

    async def _register(self) -> None:
        openrc = {
            "OS_AUTH_URL": self.front.auth_url,
            "OS_USERNAME": "admin",
            "OS_PASSWORD": "admin",
            "OS_PROJECT_NAME": "admin",
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_NAME": "Default",
            "OS_REGION_NAME": "RegionOne",
        }
        done = await configure(SdkAdministrator(openrc=openrc), Wanted(prefix="balanced"))
        made = register(
            name="balanced",
            namespace="roadstead",
            endpoint=done.values["AUTH_URL"],
            region_id=self.region_id,
            region_name="RegionOne",
            create_secret=True,
            values=done.values,
            algorithm=self.algorithm,
        )
        key = Key(self.region_id, "_", "region", self.region_id)
        await self.js.publish(spec_subject(key), dump(made.envelope))
        subject = rpc_subject("identity", "region", "credentials")
        reply = json.loads((await self.client.request(subject, dump(made.credential or {}), timeout=20)).data)
        assert reply.get("version") == 1, reply
        await self.until(key, "provisioned")

    # ------------------------------------------------------------ wishes and what became of them

    async def apply(
        self,
        kind: str,
        spec: Mapping[str, Any],
        *,
        key: Key | None = None,
        headers: dict[str, str] | None = None,
        **metadata: Any,
    ) -> Key:
        key = key or Key(self.region_id, PROJECT, kind, str(uuid.uuid4()))
        name = f"{kind}-{key.id[:8]}"
        known = {"name": name, "organizationId": ORGANIZATION, "projectId": PROJECT, **metadata}
        await self.js.publish(
            spec_subject(key), dump({"metadata": known, "spec": dict(spec)}), headers=headers
        )
        return key

    async def settled(self, kind: str, spec: Mapping[str, Any], **metadata: Any) -> Key:
        key = await self.apply(kind, spec, **metadata)
        await self.until(key, "provisioned")
        return key

    async def balancer(self, listeners: Sequence[Mapping[str, Any]], **more: Any) -> Key:
        """A load balancer is asked for, or another spec of the one of `key`."""
        key, headers = more.pop("key", None), more.pop("headers", None)
        return await self.apply(
            "loadbalancer",
            {"listeners": list(listeners), **more},
            key=key,
            headers=headers,
            networkId=self.network.id,
        )

    async def delete(self, key: Key) -> None:
        await self.js.publish(spec_subject(key), dump({"delete": True}))

    async def document(self, key: Key) -> Document | None:
        try:
            message = await self.js.get_msg("STATUS", subject=status_subject(key))
        except NotFoundError:
            return None
        found: Document = json.loads(message.data or b"{}")
        return found

    async def until(
        self, key: Key, state: str, when: Callable[[Document], bool] = lambda _: True, *, generation: int = 0
    ) -> Document:
        """The first document in that state, of that generation or a later one; "gone" is one."""
        found: Document | None = None
        try:
            async with asyncio.timeout(WITHIN):
                while True:
                    found = await self.document(key)
                    if found is not None and "gone" in found and state == "gone":
                        return found
                    status = (found or {}).get("status") or {}
                    new = status.get("observedGeneration", 0) >= generation
                    if (
                        found is not None
                        and new
                        and status.get("provisioningStatus") == state
                        and when(found)
                    ):
                        return found
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"{key.kind} is not {state}: {found}") from None

    async def ask(self, kind: str, verb: str, **payload: Any) -> dict[str, Any]:
        """A person's request."""
        subject = api_subject(self.region_id, PROJECT, kind, verb)
        answer = await self.client.request(subject, dump(payload), timeout=20)
        reply: dict[str, Any] = json.loads(answer.data)
        return reply

    async def passed(self, key: Key) -> None:
        """Wait for one more pass that begins after this call."""

        async def last() -> tuple[Any, Any]:
            found = (await self.ask(key.kind, "why", id=key.id)).get("last") or {}
            return found.get("decisionId"), found.get("count")

        for _ in range(2):
            before = await last()
            await self.ask(key.kind, "resume", id=key.id)

            async def other(before: tuple[Any, Any] = before) -> bool:
                return await last() != before

            await eventually(other)

    async def is_parked(self, key: Key) -> bool:
        """Whether no pass is due and none runs."""
        statement = f"SELECT count(*) FROM {key.kind}.work WHERE id = '{key.id}' AND due_at IS NULL AND lease_owner IS NULL"
        return self.postgres.execute(statement, self.database).strip() == "1"

    async def writes(self, key: Key) -> list[str]:
        """`loadbalancer.create` of each write, oldest first, with its outcome unless that was ok."""
        entries = (await self.ask(key.kind, "history", id=key.id, limit=1000))["entries"]
        acted = sorted((e for e in entries if e["kind"] == "acted"), key=lambda e: str(e["at"]))
        return [e["verb"] if e["outcome"] == "ok" else f"{e['verb']} {e['outcome']}" for e in acted]

    async def kill(self, victim: str) -> None:
        """The end of the API, of the provider, or of one of the region's services by its name, as by a crash."""
        programs = {"api": self.replicas[0], "provider": self.providers["ovn"]}
        await asyncio.to_thread((programs.get(victim) or self.stack.processes[f"{victim}-0"]).kill)

    async def revive(self, victim: str) -> None:
        programs = {"api": self.replicas[0], "provider": self.providers["ovn"]}
        if victim in programs:
            await asyncio.to_thread(programs[victim].start, START)
        else:
            self.stack.processes[f"{victim}-0"].start()
            await self.stack.ready()

    # ------------------------------------------------------------ what is there

    def vip_ports(self) -> list[dict[str, Any]]:
        """All VIP ports of the cloud."""
        owners = ("Octavia", "ovn-lb:vip")
        return [port for port in self.ports() if port["device_owner"] in owners]

    def named(self, table: str, balancer: Key) -> dict[str, dict[str, str]]:
        """The API's rows of a kind that are not deleted, by what follows the load balancer's name."""
        prefix = f"lb-{balancer.id}"
        columns = ("id", "name", "provisioning_status", "operating_status")
        rows = self.sql(
            f"SELECT {', '.join(columns)} FROM {table} WHERE name LIKE '{prefix}%'"
            " AND provisioning_status != 'DELETED'"
        )
        found = [dict(zip(columns, row, strict=True)) for row in rows]
        return {row["name"].removeprefix(prefix).removeprefix("-"): row for row in found}

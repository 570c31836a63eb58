"""The whole product as it runs, on one machine: broker, database that syncs, two replicas of each service, a simulated cloud.

The second replica of each service reaches broker and database over lines that a test may spoil.  People speak through a plain
NATS client.  All waiting times of the loop are a tenth of the real ones.
"""

import asyncio
import json
import signal
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client

from roadstead.cloud import names
from roadstead.seal import new_key
from roadstead.store.migrate import migrate
from roadstead.subjects import Key, spec_subject, status_subject
from roadstead.testing.cloudsim.cloud import Cloud
from roadstead.testing.cloudsim.faults import Fault
from roadstead.testing.cloudsim.http import Front
from roadstead.testing.cloudsim.log import Call
from roadstead.testing.cloudsim.settings import SimSettings
from roadstead.testing.paced import paced_environment
from roadstead.testing.servers import NatsServer, PostgresServer
from tests.chaos.crew import Crew, CrewError
from tests.chaos.proxy import Exchange
from tests.world.admin import Admin

PACE = 0.1
PROJECT, ORGANIZATION = "project-a", "organization-a"
SERVICES = tuple(
    name
    for name in ("identity", "network", "compute", "volumes", "loadbalancer", "monitor")
    if find_spec(f"roadstead_{name}.__main__") is not None
)
DISORDER = 0.25  # share of messages that come twice, the second time later
PATIENCE = 30.0
READY_AGAIN = 20.0
ENDING = 30.0
VLANS = {"physicalNetwork": "physnet1", "vlan": {"segments": [{"startId": 100, "endId": 1999}]}}
RULES = {"rules": [{"direction": "ingress", "protocol": "tcp", "port": {"number": 22}}]}


class Stack:
    """Started once for many tests; each test takes new names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.region = str(uuid.uuid4())
        self.seal_key = new_key()
        settings = SimSettings()
        settings.durations.scale(0.1)
        self.cloud = Cloud(settings=settings)
        self.front = Front(self.cloud)
        self.nats = NatsServer(folder / "nats", sync_interval="always", die_with_parent=True)
        self.postgres = PostgresServer(folder / "postgres", durable=True, die_with_parent=True)
        self.lines = Exchange()
        self.crew: Crew
        # Servers end with the thread that started them, so it is one that lives as long as the stack.
        self.hands = ThreadPoolExecutor(1, thread_name_prefix="hands")
        self._numbers = iter(range(1, 1 << 30))

    # ------------------------------------------------------------ life

    def start(self) -> "Stack":
        self.front.start()
        self.admin = Admin(self.cloud)
        # Read before any trouble, which hits the administrator as well.
        flavors = self.admin.call("GET", "/compute/v2.1/flavors")["flavors"]
        images = self.admin.call("GET", "/image/v2/images")["images"]
        self.flavor = next(str(f["id"]) for f in flavors if f["name"] == "small")
        self.image = next(str(i["id"]) for i in images if i["name"] == "ubuntu-24.04")
        self.hands.submit(self.nats.start).result()
        self.hands.submit(self.postgres.start).result()
        asyncio.run(migrate(self.postgres.url, SERVICES))
        self.bus_line = self.lines.line(self.nats.port)
        self.database_line = self.lines.line(self.postgres.port)
        self.crew = Crew(self.folder / "crew", SERVICES)
        for service in SERVICES:
            self.crew.add(service, 0, self.environment(self.nats.port, self.postgres.port))
            spoiled = self.environment(self.bus_line.port, self.database_line.port)
            self.crew.add(service, 1, spoiled, again=DISORDER)
        asyncio.run(self._register())
        self.crew.ready()
        return self

    def environment(self, bus: int, database: int) -> dict[str, str]:
        return {
            "ROADSTEAD_NATS_URL": f"nats://127.0.0.1:{bus}",
            "ROADSTEAD_DATABASE_URL": f"postgresql://postgres@127.0.0.1:{database}/postgres",
            "ROADSTEAD_SEAL_KEYS": self.seal_key,
            **paced_environment(PACE),
            "ROADSTEAD_TRACE_FILE": str(self.folder / "spans.jsonl"),
            "ROADSTEAD_LOG_LEVEL": "debug",
        }

    def stop(self) -> None:
        self.crew.close()
        self.lines.close()
        self.nats.kill()
        self.postgres.kill()
        self.front.stop()
        self.hands.shutdown()

    def is_well(self) -> bool:
        """Whether all of it runs and is ready soon; a test that left it otherwise is followed by a new stack."""
        if not (self.nats.is_running and self.postgres.is_running):
            return False
        if not all(m.kept for m in self.crew.members):
            return False
        try:
            self.crew.ready(READY_AGAIN)
        except CrewError:
            return False
        return True

    async def do(self, work: Callable[[], object]) -> None:
        """What a test does to servers."""
        await asyncio.wrap_future(self.hands.submit(work))

    async def _register(self) -> None:
        secret = self.admin.configure()
        self.secret = secret
        async with People(self) as people:
            key = Key(self.region, "_", "region", self.region)
            wish = {
                "provider": "openstack",
                "openstack": {
                    "endpoint": self.front.auth_url,
                    "serviceAccountSecret": {"name": "region"},
                    "network": {"providerNetworks": VLANS},
                    "loadBalancer": {"algorithm": "SOURCE_IP_PORT"},
                    "blockStorage": {"volumeClasses": {"selector": {"ids": [self.volume_class()]}}},
                },
            }
            await people.publish(
                key, {"metadata": {"name": "sim", "organizationId": ORGANIZATION}, "spec": wish}
            )
            ask = {"region": self.region, "secret": secret}
            await people.ask("rpc.identity.region.credentials", ask)
            await people.until(key, "provisioned")

    # ------------------------------------------------------------ the cloud

    def name(self, word: str) -> str:
        return f"{word}-{next(self._numbers)}"

    def listed(self, service: str, path: str, key: str, **query: str) -> list[dict[str, Any]]:
        """What the administrator sees of all projects."""
        found: list[dict[str, Any]] = self.admin.call("GET", f"/{service}{path}", **query)[key]
        return found

    def volume_class(self) -> str:
        types = self.admin.call("GET", "/volume/v3/types")["volume_types"]
        return next(str(t["id"]) for t in types if t["name"] == "standard")

    def servers(self, ident: str) -> list[dict[str, Any]]:
        """Cloud servers with the key of one server of ours."""
        listed = self.listed("compute", "/v2.1/servers/detail", "servers", all_tenants="1")
        return [s for s in listed if s["metadata"].get("serverID") == ident]

    def ports(self, ident: str) -> list[dict[str, Any]]:
        return [p for p in self._ports() if p["name"] == names.port_name(ident)]

    def _ports(self) -> list[dict[str, Any]]:
        return self.listed("network", "/v2.0/ports", "ports")

    def addresses(self, ident: str) -> list[dict[str, Any]]:
        listed = self.listed("network", "/v2.0/floatingips", "floatingips")
        return [a for a in listed if a["description"] == names.port_name(ident)]

    def made(self, path: str, text: str) -> list[Call]:
        """POSTs to a path that had an effect and bear a text in their body."""
        with self.cloud.lock:
            calls = self.cloud.log.calls(method="POST", path=path, body=text)
        return [c for c in calls if c.took_effect and (c.status < 300 or c.no_answer or c.fault)]

    def writes(self, since: int) -> list[Call]:
        """What the product wrote from that call on."""
        with self.cloud.lock:
            return [c for c in self.cloud.log.writes(since=since) if c.user_name != "admin"]

    def trouble(self, kind: str, **criteria: Any) -> str:
        with self.cloud.lock:
            return self.cloud.faults.add(Fault(kind, **criteria))

    def calm(self) -> None:
        with self.cloud.lock:
            self.cloud.faults.clear()

    # ------------------------------------------------------------ the services as a whole

    def services_down(self) -> None:
        """Every replica ends in good order and stays away."""
        for member in self.crew.members:
            member.kept = False
            member.signal(signal.SIGTERM)
        for member in self.crew.members:
            self.crew.status_of(member.pid, ENDING)

    def services_up(self) -> None:
        for member in self.crew.members:
            self.crew.start(member)
        self.crew.ready()

    def wake(self) -> None:
        """Make every row due that is not gone."""
        for service in SERVICES:
            self.postgres.execute(
                f"UPDATE {service}.work w SET due_at = clock_timestamp(), wake_seq = wake_seq + 1 "
                f"FROM {service}.resource r WHERE r.kind = w.kind AND r.id = w.id AND r.gone_at IS NULL"
            )

    def due(self) -> int:
        """Rows that are due now or held by somebody."""
        return sum(
            int(
                self.postgres.execute(
                    f"SELECT count(*) FROM {service}.work WHERE due_at IS NOT NULL OR lease_until > clock_timestamp()"
                )
            )
            for service in SERVICES
        )


class People:
    """Somebody with a plain NATS client."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._client: Client

    async def __aenter__(self) -> "People":
        async def quiet(_error: Exception) -> None:
            return None  # what a reconnecting client grumbles about is seen by the calls themselves

        self._client = await nats.connect(
            self.stack.nats.url, max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=quiet
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    @property
    def client(self) -> Client:
        return self._client

    def key(self, kind: str, ident: str | None = None) -> Key:
        return Key(self.stack.region, PROJECT, kind, ident or str(uuid.uuid4()))

    async def publish(self, key: Key, body: Mapping[str, Any]) -> int:
        """One spec message, sent until it is acknowledged; its sequence."""
        js = self._client.jetstream(timeout=2)
        ends = time.monotonic() + PATIENCE
        message_id = uuid.uuid4().hex
        while True:
            try:
                ack = await js.publish(
                    spec_subject(key), json.dumps(body).encode(), headers={"Nats-Msg-Id": message_id}
                )
            except (nats.errors.Error, nats.js.errors.Error, OSError):
                if time.monotonic() > ends:
                    raise
                await asyncio.sleep(0.1)
            else:
                return int(ack.seq)

    async def apply(self, key: Key, name: str, spec: Mapping[str, Any], **metadata: Any) -> Key:
        base = {"name": name, "organizationId": ORGANIZATION, "projectId": PROJECT, **metadata}
        await self.publish(key, {"metadata": base, "spec": dict(spec)})
        return key

    async def delete(self, key: Key, *, cascade: bool = False) -> None:
        await self.publish(key, {"delete": True, **({"cascade": True} if cascade else {})})

    async def ask(self, subject: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """A request, repeated until it is answered without an error."""
        ends = time.monotonic() + PATIENCE
        said = "nobody answered"
        while time.monotonic() < ends:
            try:
                reply = await self._client.request(subject, json.dumps(payload).encode(), timeout=5)
            except (nats.errors.Error, OSError) as error:
                said = str(error) or type(error).__name__
            else:
                answer: dict[str, Any] = json.loads(reply.data)
                if "error" not in answer:
                    return answer
                said = str(answer["error"])
            await asyncio.sleep(0.2)
        raise AssertionError(f"{subject}: {said}")

    async def end_of(self, stream: str) -> int:
        """The last sequence of a stream, once the broker tells it."""

        async def known() -> int | None:
            try:
                return int((await self._client.jetstream(timeout=2).stream_info(stream)).state.last_seq)
            except (nats.errors.Error, nats.js.errors.Error, OSError):
                return None

        found: int = await eventually(known, PATIENCE)
        return found

    async def status(self, key: Key) -> dict[str, Any] | None:
        """The newest STATUS document; None when there is none (or no broker)."""
        try:
            last = await self._client.jetstream(timeout=2).get_msg("STATUS", subject=status_subject(key))
        except (nats.errors.Error, nats.js.errors.Error, OSError):
            return None
        document: dict[str, Any] = json.loads(last.data or b"{}")
        return document

    async def state(self, key: Key) -> str:
        document = await self.status(key)
        if document is None:
            return "absent"
        if "gone" in document:
            return "gone"
        status = document["status"]
        if status.get("observedGeneration") != document["metadata"]["generation"]:
            return "provisioning"
        return str(status.get("provisioningStatus", "unknown"))

    async def until(self, key: Key, wanted: str, *, within: float = 45.0) -> dict[str, Any]:
        async def there() -> dict[str, Any] | None:
            return await self.status(key) if await self.state(key) == wanted else None

        try:
            found: dict[str, Any] = await eventually(there, within)
            return found
        except TimeoutError:
            document = json.dumps(await self.status(key), indent=1)
            raise AssertionError(f"{key} is {await self.state(key)}, not {wanted}: {document}") from None

    async def network(self) -> Key:
        """A provisioned network with an identity of its own."""
        name = self.stack.name("net")
        key = await self.apply(
            self.key("network"), name, {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]}
        )
        await self.until(key, "provisioned")
        return key

    async def group(self, network: Key) -> Key:
        key = self.key("securitygroup")
        return await self.apply(key, self.stack.name("group"), RULES, networkId=network.id)

    def server_spec(self, network: Key, groups: Sequence[Key] = (), *, public: bool = True) -> dict[str, Any]:
        return {
            "flavorID": self.stack.flavor,
            "image": {"id": self.stack.image},
            "networks": [{"id": network.id}],
            "securityGroups": [{"id": g.id} for g in groups],
            "publicIPAllocation": {"enabled": public},
        }

    def server_key(self, network: Key, name: str) -> Key:
        return self.key("server", str(uuid.uuid5(uuid.UUID(network.id), name)))


async def eventually(check: Callable[[], Awaitable[Any]], within: float, every: float = 0.1) -> Any:
    """The first true value of a check.  TimeoutError when there is none in time."""
    async with asyncio.timeout(within):
        while True:
            value = await check()
            if value:
                return value
            await asyncio.sleep(every)

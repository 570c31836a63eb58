"""The whole product in one thread on virtual time: production loop, tables and cloud engine over the simulated cloud's state.

Each service runs one or more replicas; a replica may be killed at any await between two effects (`Kill`), and starts again with
nothing but its store.
"""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from roadstead.assembly import Assembly, Platform, Service, assemble
from roadstead.clock import Durations
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.engine import CloudEngine
from roadstead.events import dump
from roadstead.reconcile.handlers import PublishFailed
from roadstead.seal import Sealer, new_key
from roadstead.store.memory import MemoryStore
from roadstead.subjects import OWNERS, Key, spec_subject, status_subject
from roadstead.testing.cloudsim.cloud import Cloud
from roadstead.testing.direct import DirectSender

from .admin import Admin
from .simbus import SimBus, Weather
from .virtual import VirtualClock


class Killed(BaseException):
    """The process ends here, as by kill -9: nothing of it runs on."""


@dataclass
class Replica:
    """One process of a service."""

    service: Service
    number: int
    assembly: Assembly | None = None
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.service.name}-{self.number}"


@dataclass
class Points:
    """Counts the awaits between effects; kills the replica that reaches the chosen one."""

    count: int = 0
    kill_at: int | None = None
    labels: list[str] = field(default_factory=list)
    only: str | None = None  # service whose awaits count
    recording: bool = False

    def reached(self, service: str, label: str) -> bool:
        if self.only is not None and service != self.only:
            return False
        self.count += 1
        if self.recording:
            self.labels.append(f"{service}:{label}")
        return self.kill_at is not None and self.count == self.kill_at


class SimWorld:
    """Build with `async with SimWorld.running(services, ...) as world`."""

    def __init__(
        self,
        services: tuple[Service, ...],
        *,
        seed: int = 0,
        replicas: int = 1,
        weather: Weather | None = None,
        cloud: Cloud | None = None,
        restart_after: float = 3.0,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.clock = VirtualClock(loop)
        self.seed = seed
        self.bus = SimBus(seed, weather or Weather())
        self.cloud = cloud if cloud is not None else Cloud(self.clock, seed=seed)
        self.sealer = Sealer([new_key()])
        self.stores = {s.name: MemoryStore(self.clock, name=s.name) for s in services}
        self.replicas = [Replica(s, n) for s in services for n in range(replicas)]
        self.points = Points()
        self.region = str(uuid.UUID(int=0x5EED0000000000000000000000000000 + seed))
        self.project = "project-a"
        self.organization = "organization-a"
        self.restart_after = restart_after
        self.kills = 0
        self._restarts: set[asyncio.Task[None]] = set()

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, services: tuple[Service, ...], **options: Any) -> AsyncIterator["SimWorld"]:
        world = cls(services, **options)
        for replica in world.replicas:
            await world.start(replica)
        try:
            yield world
        finally:
            for task in list(world._restarts):
                task.cancel()
            for replica in world.replicas:
                world.kill(replica, restart=False)

    # ------------------------------------------------------------ processes

    async def start(self, replica: Replica) -> None:
        """A fresh process: empty memory, the store as it was left."""
        clock = self.clock

        async def edge(operation: str, after: bool) -> None:
            self._point(replica, f"store.{operation}.{'after' if after else 'before'}")
            await asyncio.sleep(0)

        keyring = Keyring()
        sender = DirectSender(self.cloud, clock)
        circuits: list[Callable[[str, bool], None]] = []
        engine = CloudEngine(sender, keyring, clock, on_circuit=circuits)
        platform = Platform(
            store=self.stores[replica.service.name].reopened(edge=edge),
            cloud=PointedCloud(engine, lambda label: self._point(replica, label)),
            broker=PointedBus(self.bus, lambda label: self._point(replica, label)),
            keyring=keyring,
            sealer=self.sealer,
            clock=clock,
            durations=Durations(),
            owner=f"{replica.name}-{self.kills}",
            seed=self.seed * 31 + replica.number,
            outbox_prefix=replica.service.name,
            circuits=circuits,
        )
        assembly = assemble(replica.service, platform)
        replica.assembly = assembly
        await self.bus.catch_up(assembly)
        self.bus.bind(assembly)
        jobs = [assembly.runner.run, assembly.relay.run, *assembly.jobs]
        replica.tasks = [asyncio.create_task(self._alive(replica, job)) for job in jobs]

    async def _alive(self, replica: Replica, job: Callable[[], Any]) -> None:
        try:
            await job()
        except Killed:
            self.kill(replica)

    def _point(self, replica: Replica, label: str) -> None:
        if self.points.reached(replica.service.name, label):
            self.kill(replica)
            raise asyncio.CancelledError

    def kill(self, replica: Replica, *, restart: bool = True) -> None:
        """As kill -9: the tasks are dropped where they stand, without a drain; a new process follows."""
        self.kills += 1
        assembly, replica.assembly = replica.assembly, None
        if assembly is None:
            return
        self.bus.unbind(assembly)
        assembly.runner.dead = True
        current = asyncio.current_task()
        for task in (*replica.tasks, *assembly.runner.passing()):
            if task is not current:
                task.cancel()
        if restart:
            task = asyncio.create_task(self._again(replica))
            self._restarts.add(task)
            task.add_done_callback(self._restarts.discard)

    async def _again(self, replica: Replica) -> None:
        await asyncio.sleep(self.restart_after)
        await self.start(replica)

    # ------------------------------------------------------------ what a test does

    async def register(self, **openstack: Any) -> Key:
        """Configure the cloud and register the region; waits until it is provisioned."""
        secret = Admin(self.cloud).configure()
        key = Key(self.region, "_", "region", self.region)
        spec = {
            "provider": "openstack",
            "openstack": {
                "endpoint": "http://cloud.test/identity/v3",
                "serviceAccountSecret": {"name": "region"},
                **openstack,
            },
        }
        await self.apply(key, "simulated", spec)
        ask = {"region": self.region, "secret": secret}
        reply = await self.bus.request("rpc.identity.region.credentials", ask)
        assert reply.get("version"), reply
        await self.until(key, "provisioned")
        return key

    def key(self, kind: str, ident: str | None = None) -> Key:
        project = "_" if kind == "region" else self.project
        return Key(self.region, project, kind, ident or str(uuid.uuid4()))

    async def publish(self, key: Key, body: Mapping[str, Any], **headers: str) -> None:
        """A bare spec message, as a person with a plain client sends it; one that was not acknowledged is sent again."""
        while True:
            try:
                await self.bus.publish(spec_subject(key), dump(body), headers)
            except PublishFailed:
                await asyncio.sleep(0.1)
            else:
                return

    async def apply(self, key: Key, name: str, spec: Mapping[str, Any], **metadata: Any) -> Key:
        base = {"name": name, "organizationId": self.organization, **metadata}
        if key.kind != "region":
            base["projectId"] = self.project
        await self.publish(key, {"metadata": base, "spec": dict(spec)})
        return key

    async def delete(self, key: Key, *, cascade: bool = False) -> None:
        body: dict[str, Any] = {"delete": True}
        if cascade:
            body["cascade"] = True
        await self.publish(key, body)

    def status(self, key: Key) -> dict[str, Any] | None:
        """The newest STATUS document."""
        found = [m for m in self.bus.streams["STATUS"] if m.subject == status_subject(key)]
        documents = [json.loads(m.payload) for m in found]
        return max(documents, key=lambda d: d["resourceVersion"]) if documents else None

    def provisioning(self, key: Key) -> str:
        document = self.status(key)
        if document is None:
            return "absent"
        if "gone" in document:
            return "gone"
        status = document["status"]
        if status.get("observedGeneration") != document["metadata"]["generation"] and status.get(
            "provisioningStatus"
        ) in ("provisioned", "error"):
            return "provisioning"
        return str(status.get("provisioningStatus", "unknown"))

    async def until(self, key: Key, wanted: str, *, within: float = 600.0) -> dict[str, Any]:
        """Wait (virtual seconds) until the resource reads `wanted`: provisioned, error, gone, ..."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within
        while loop.time() < end:
            if self.provisioning(key) == wanted:
                document = self.status(key)
                assert document is not None
                return document
            await asyncio.sleep(0.25)
        raise AssertionError(
            f"{key} is {self.provisioning(key)}, not {wanted}: {json.dumps(self.status(key), indent=1)}"
        )

    async def quiet(self, *, within: float = 3600.0) -> None:
        """Wait until nothing is due, leased or under way in any service."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within
        while loop.time() < end:
            busy = bool(self._restarts) or bool(self.bus.delivering)
            for store in self.stores.values():
                busy = busy or await store.next_due() is not None or bool(store._held.outbox)
                busy = busy or bool(await store.untold(0, 1))
            if not busy:
                return
            await asyncio.sleep(1.0)
        raise AssertionError(f"the world did not come to rest: {self.unrest()}")

    def unrest(self) -> list[str]:
        """What is still due or waits to go out, for a person who reads a failure."""
        found = [
            f"{r.key.kind} {r.metadata.get('name')} {self.provisioning(r.key)} due {r.work.due_at}"
            f" owner {r.work.lease_owner} conditions {[c for c in r.status.get('conditions', ()) if c['type'] == 'Available']}"
            for store in self.stores.values()
            for r in store._held.rows.values()
            if r.work.due_at is not None
        ]
        found += [f"outbox {name} {len(s._held.outbox)}" for name, s in self.stores.items() if s._held.outbox]
        found += [f"delivering {len(self.bus.delivering)}"] if self.bus.delivering else []
        return found

    def writes(self, key: Key) -> list[dict[str, Any]]:
        """Every acted record of the resource, in order."""
        owner = next(s for s in self.stores if key.kind in OWNED[s])
        return [dict(e.body) for e in self.stores[owner]._held.history[key.kind, key.id] if e.kind == "acted"]


OWNED: dict[str, set[str]] = {}
for _kind, _owner in OWNERS.items():
    OWNED.setdefault(_owner, set()).add(_kind)
OWNED.setdefault("monitor", set())


class PointedCloud:
    """The cloud with an await point before and after each call."""

    def __init__(self, inner: CloudEngine, point: Callable[[str], None]) -> None:
        self._inner = inner
        self._point = point

    async def call(self, call: Any) -> Any:
        self._point(f"cloud.{call.service}.{call.verb}.before")
        answer = await self._inner.call(call)
        self._point(f"cloud.{call.service}.{call.verb}.after")
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class PointedBus:
    """The bus with an await point before and after each message that leaves."""

    def __init__(self, inner: SimBus, point: Callable[[str], None]) -> None:
        self._inner = inner
        self._point = point

    async def publish(self, subject: str, payload: bytes, headers: Mapping[str, str]) -> tuple[int, int]:
        word = subject.split(".", 1)[0]
        self._point(f"publish.{word}.before")
        position = await self._inner.publish(subject, payload, headers)
        self._point(f"publish.{word}.after")
        return position

    async def purge(self, stream: str, subject: str, *, up_to: int, keep: int) -> None:
        self._point("purge.before")
        await self._inner.purge(stream, subject, up_to=up_to, keep=keep)

    async def request(self, subject: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        self._point("request.before")
        reply = await self._inner.request(subject, payload)
        self._point("request.after")
        return reply

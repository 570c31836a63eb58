"""Scenarios on a stack of real processes, over the simulator's HTTP process or over a real cloud.

One stack and one region serve all scenarios of a run.  They run side by side on one loop in a thread, so that their waits
overlap; each test waits for its own.
"""

import asyncio
import concurrent.futures
import json
import os
import threading
import uuid
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from roadstead.cloud.sdk import SdkAdministrator
from roadstead.events import dump
from roadstead.subjects import Key, api_subject, rpc_subject, spec_subject
from tests.world.base import Document, Home, World
from tests.world.cloud_admin import CloudAdmin
from tests.world.foreigner import Foreigner
from tests.world.hand import HttpHand
from tests.world.registration import offer_of, registered
from tests.world.stack import Simulator, Stack

T = TypeVar("T")
REQUEST_TIMEOUT = 20.0
Job = tuple[Callable[..., Any], str, Mapping[str, Any]]


class Session:
    """One stack with one registered region, on a loop of its own."""

    def __init__(
        self, level: str, *, pace: float, at_once: int, patience: float, cloud: tuple[Path, str] | None = None
    ) -> None:
        """cloud: a clouds.yaml and a name in it; None: a simulator of its own."""
        self.level = level
        self.patience = patience
        self.stack = Stack(pace=pace, simulated=cloud is None)
        self.simulator = None if cloud is not None else Simulator(self.stack.folder, pace=pace)
        self._cloud = cloud
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"{level}-world", daemon=True)
        self._at_once = at_once
        self._jobs: dict[str, concurrent.futures.Future[None]] = {}
        self._home: Home | None = None
        self.documents: dict[tuple[str, str], Document] = {}
        self.changed = asyncio.Event()

    # ------------------------------------------------------------ from the tests' thread

    def open(self) -> None:
        self._thread.start()
        self.run(self._open(), 180)

    def run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Run on the session's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def schedule(self, jobs: list[Job]) -> None:
        """Start the scenarios, in this order, so many at once."""
        places = asyncio.Semaphore(self._at_once)

        async def one(function: Callable[..., Any], nodeid: str, given: Mapping[str, Any]) -> None:
            async with places:
                await self._scenario(function, nodeid, given)

        for function, nodeid, given in jobs:
            work = one(function, nodeid, given)
            self._jobs[nodeid] = asyncio.run_coroutine_threadsafe(work, self._loop)

    def result(self, function: Callable[..., Any], nodeid: str, given: Mapping[str, Any]) -> None:
        """Wait for the scenario of that item; raises what it raised."""
        if nodeid not in self._jobs:
            self.schedule([(function, nodeid, given)])
        self._jobs[nodeid].result()

    def close(self) -> None:
        """Take everything away again; AssertionError when the cloud or the logs show what must not be."""
        try:
            for job in self._jobs.values():
                job.cancel()
            self.run(self._close(), 600)
        finally:
            self.stack.stop()
            if self.simulator is not None:
                self.simulator.stop()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            wrong = self.stack.errors()
            if os.environ.get("ROADSTEAD_KEEP_LOGS"):
                print(f"logs are in {self.stack.folder}")
            else:
                self.stack.remove()
        assert not wrong, "the services logged errors:\n" + "\n".join(wrong[:10])

    # ------------------------------------------------------------ on the loop

    async def _open(self) -> None:
        if self.simulator is not None:
            await asyncio.to_thread(self.simulator.start)
        await self.stack.start()
        self.bus: Client = await nats.connect(
            self.stack.nats.url, max_reconnect_attempts=-1, reconnect_time_wait=0.2
        )
        self.js: JetStreamContext = self.bus.jetstream(timeout=15)
        await self.bus.subscribe("status.>", cb=self._take)
        clouds, name = self._cloud or (self._simulated().clouds, "sim")
        self.clouds, self.cloud_name = clouds, name
        self.cloud = CloudAdmin(await asyncio.to_thread(HttpHand, clouds, name))
        self.foreigner = Foreigner(self.cloud)
        self.prefix = f"scenarios-{uuid.uuid4().hex[:8]}"
        self.offer = await offer_of(self.cloud, self.foreigner, self.prefix)
        made = await registered(await asyncio.to_thread(administrator, clouds, name), self.offer, self.prefix)
        self.region, self.domain = made.region_id, made.variables["DOMAIN_ID"]
        self.host = StackScenario(self, "host")
        key = Key(self.region, "_", "region", self.region)
        await self.host.publish(key, made.envelope)
        reply = await self.ask(rpc_subject("identity", "region", "credentials"), made.credential or {})
        assert reply.get("version"), reply
        while (state := self._provisioning(key)) != "provisioned":
            assert state != "error", self.documents[key.kind, key.id]
            await self.host.moved(5.0)
        self._home_lock = asyncio.Lock()

    def _simulated(self) -> Simulator:
        assert self.simulator is not None
        return self.simulator

    def _provisioning(self, key: Key) -> str:
        document = self.documents.get((key.kind, key.id))
        return str(document["status"].get("provisioningStatus")) if document is not None else "absent"

    async def _take(self, message: Msg) -> None:
        document = json.loads(message.data)
        _, _, _, kind, ident = message.subject.split(".")
        held = self.documents.get((kind, ident))
        if held is None or document["resourceVersion"] > held["resourceVersion"]:
            self.documents[kind, ident] = document
            self.changed.set()
            self.changed = asyncio.Event()

    async def ask(self, subject: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        answer = await self.bus.request(subject, dump(dict(payload)), timeout=REQUEST_TIMEOUT)
        reply: dict[str, Any] = json.loads(answer.data)
        return reply

    async def _scenario(self, function: Callable[..., Any], nodeid: str, given: Mapping[str, Any]) -> None:
        world = StackScenario(self, nodeid)
        try:
            await function(world, **given)
        except BaseException as error:
            try:
                await world.clear()
            except AssertionError as again:
                error.add_note(f"and afterwards: {again}")
            raise
        await world.clear()
        await world.foreigner.tidy()

    async def shared_home(self) -> Home:
        async with self._home_lock:
            if self._home is None:
                self._home = await self.host.build_home()
            return self._home

    async def _close(self) -> None:
        projects: list[str] = []
        users: list[str] = []
        try:
            if hasattr(self, "host"):
                await self.host.clear()
        finally:
            if hasattr(self, "foreigner"):
                await self.foreigner.tidy()
            if hasattr(self, "domain"):
                projects = [p["name"] for p in await self.cloud.projects(domain_id=self.domain)]
                users = [u["name"] for u in await self.cloud.users(domain_id=self.domain)]
                await self.cloud.remove_domain(self.domain)
            if hasattr(self, "bus"):
                await self.bus.close()
        provider = [f"{self.prefix}-provider"] if hasattr(self, "domain") else []
        assert (projects, users) == (provider, provider), f"left behind: projects {projects}, users {users}"


def administrator(clouds: Path, name: str) -> SdkAdministrator:
    """The product's own administrator, with this clouds.yaml and no other."""
    before = os.environ.get("OS_CLIENT_CONFIG_FILE")
    os.environ["OS_CLIENT_CONFIG_FILE"] = str(clouds)
    try:
        return SdkAdministrator(name)
    finally:
        if before is None:
            del os.environ["OS_CLIENT_CONFIG_FILE"]
        else:
            os.environ["OS_CLIENT_CONFIG_FILE"] = before


class StackScenario(World):
    """A World over a Session; all of them share one project, so that they may share a home."""

    def __init__(self, session: Session, salt: str) -> None:
        super().__init__()
        self.session = session
        self.salt = salt
        self.level = session.level
        self.pace = session.stack.pace
        self.patience = session.patience
        self.cloud = session.cloud
        self.foreigner = Foreigner(session.cloud)
        self.region = session.region
        self.project = f"project-{session.prefix}"
        self.offer = session.offer

    async def publish(self, key: Key, body: Mapping[str, Any] | bytes) -> int:
        raw = body if isinstance(body, bytes) else dump(dict(body))
        return (await self.session.js.publish(spec_subject(key), raw)).seq

    def newest(self, key: Key) -> Document | None:
        return self.session.documents.get((key.kind, key.id))

    async def request(self, kind: str, verb: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        return await self.session.ask(api_subject(self.region, self.project, kind, verb), payload)

    async def home(self) -> Home:
        return await self.session.shared_home()

    async def sweep(self) -> None:
        # One may be under way; the next one has begun after this call.
        wanted = self.session.stack.sweeps() + 2
        await self.eventually(lambda: self.session.stack.sweeps() >= wanted, "sweep")
        await asyncio.sleep(0.5)  # what it told is on its way

    async def quiet_pass(self, ref: Any) -> None:
        async def last() -> tuple[Any, Any]:
            found = (await self.request(ref.kind, "why", {"id": ref.id}))["last"]
            return found.get("decisionId"), found.get("count")

        # A pass may be under way that read the cloud before this call; the second one has not.
        for _ in range(2):
            before = await last()
            await self.request(ref.kind, "resume", {"id": ref.id})

            async def passed(before: tuple[Any, Any] = before) -> bool:
                return await last() != before

            await self.eventually(passed, f"pass over {ref.kind} {ref.name}")

    async def moved(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(min(seconds, 0.5)):
                await self.session.changed.wait()
        except TimeoutError:
            return

    def clock(self) -> float:
        return asyncio.get_running_loop().time()

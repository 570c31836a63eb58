"""One sweep over the servers of the shards that are ours: one paged list a project, facts out, nothing decided.

A look is the same for one project, between two sweeps.

The monitor reads and publishes; it makes no call that changes anything and stamps nothing.  A project or region that cannot be read
is logged and skipped, the others go on (REF-063).
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from roadstead.bus.failures import PublishFailed
from roadstead.cloud.port import Answer, Call, Cloud, CloudError, Principal
from roadstead.events import dump
from roadstead.reconcile.handlers import Publisher
from roadstead.reconcile.views import Directory, StatusView
from roadstead.subjects import observed_subject
from roadstead_monitor.compare import Compared, Observation, compare, network_of
from roadstead_monitor.measures import Measures
from roadstead_monitor.shards import shard_of

log = structlog.get_logger("roadstead.monitor")

FAULT_DEADLINE = 5.0
PROJECTS_AT_ONCE = 8  # per region


@dataclass(frozen=True)
class Project:
    """The servers that one identity has in one region, as far as their STATUS tells."""

    region: str
    identity: str
    servers: tuple[StatusView, ...]


@dataclass
class Swept:
    """How a sweep went."""

    projects: int = 0
    failed: int = 0
    sent: int = 0
    unsent: int = 0


Tally = Callable[[Project, Compared], None]


def projects_of(directory: Directory) -> list[Project]:
    """Every project with servers that are not under deletion, in a stable order."""
    found: dict[tuple[str, str], list[StatusView]] = {}
    for view in directory.of_kind("server"):
        identity = identity_of(view, directory)
        if not view.deleting and identity is not None:
            found.setdefault((view.key.region, identity), []).append(view)
    return [
        Project(region, identity, tuple(sorted(views, key=lambda v: v.key.id)))
        for (region, identity), views in sorted(found.items())
    ]


def identity_of(view: StatusView, directory: Directory) -> str | None:
    """The server's own word, else its network's (whose identity may be a hidden one)."""
    own = view.metadata.get("identityId")
    if own:
        return str(own)
    network = directory.get("network", network_of(view) or "")
    found = network.metadata.get("identityId") if network is not None else None
    return str(found) if found else None


class Sweeper:
    """Reads projects and publishes what is news.  Holds nothing that matters between sweeps."""

    def __init__(self, cloud: Cloud, directory: Directory, publisher: Publisher) -> None:
        self._cloud = cloud
        self.directory = directory
        self._publisher = publisher
        self._places: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(PROJECTS_AT_ONCE)
        )
        self._told: set[str] = set()  # servers whose fault was looked at since they last read well
        self.measures = Measures()

    async def sweep(self, name: str, shards: int, mine: Collection[int]) -> Swept:
        """Every project of our shards once; `name` marks the sweep in its observations."""
        swept = Swept()
        ours = [p for p in projects_of(self.directory) if shard_of(p.region, p.identity, shards) in mine]
        await asyncio.gather(*(self._guarded(name, project, swept, self._count) for project in ours))
        known = {view.key.id for view in self.directory.of_kind("server")}
        self._told &= known
        self.measures.swept(known)
        return swept

    async def look(self, name: str, project: Project) -> Swept:
        """One project at the cost of a sweep over it; the gauge stays what the last sweep made it."""
        swept = Swept()
        await self._guarded(name, project, swept, lambda _project, _compared: None)
        return swept

    async def _guarded(self, name: str, project: Project, swept: Swept, tally: Tally) -> None:
        swept.projects += 1
        try:
            async with self._places[project.region]:
                await self._project(name, project, swept, tally)
        except CloudError as error:
            swept.failed += 1
            log.warning(
                "project not read",
                region=project.region,
                identity=project.identity,
                verdict=error.verdict.value,
                status=error.status,
            )
        except Exception:
            swept.failed += 1
            log.exception("sweep of a project failed", region=project.region, identity=project.identity)

    async def _project(self, name: str, project: Project, swept: Swept, tally: Tally) -> None:
        """One list request a page, and one by id for each server that has just turned into ERROR."""
        scope = Principal(project.region, project.identity)
        answer = await self._cloud.call(Call(scope, "compute", "server.detail"))
        compared = compare(project.servers, answer.value)
        self._note(compared)
        tally(project, compared)
        for observation in compared.news:
            if observation.fails:
                await self._look_at_fault(scope, observation)
            if await self._publish(observation, answer, name):
                swept.sent += 1
            else:
                swept.unsent += 1

    def _count(self, project: Project, compared: Compared) -> None:
        region = self.directory.get("region", project.region)
        region_name = str(region.metadata.get("name") or "") if region is not None else ""
        for view, listed, facts in compared.read:
            self.measures.count(view, listed, facts, region_name)

    def _note(self, compared: Compared) -> None:
        for view, _, facts in compared.read:
            self.measures.timed(view, facts)
            if facts["status"] != "ERROR":
                self._told.discard(view.key.id)
        for ident in compared.doubled:
            log.error("two servers in the cloud bear one id; nothing is observed", server=ident)

    async def _publish(self, observation: Observation, answer: Answer, name: str) -> bool:
        key = observation.view.key
        if observation.facts is None:
            log.info("server is absent", key=str(key))
        try:
            body = observation.body(answer.read_started_at, name)
            await self._publisher.publish(observed_subject(key), dump(body), {})
        except PublishFailed as failed:
            log.warning(
                "observation not published; the next sweep tries again", key=str(key), why=str(failed)
            )
            return False
        return True

    async def _look_at_fault(self, scope: Principal, observation: Observation) -> None:
        """Why a server turned into ERROR, for the log alone; lists may leave it out.  Never fails, never details."""
        key = observation.view.key
        if key.id in self._told or not observation.server:
            return
        self._told.add(key.id)
        told = {
            "server": key.id,
            "region": key.region,
            "organization": observation.view.metadata.get("organizationId"),
        }
        try:
            call = Call(scope, "compute", "server.get", {"id": observation.server}, deadline=FAULT_DEADLINE)
            fault: Any = (await self._cloud.call(call)).value.get("fault") or {}
        except CloudError as error:
            log.warning("server entered error, its fault is not known", why=error.verdict.value, **told)
            return
        log.warning("server entered error", **_fault(fault), **told)


def _fault(fault: Any) -> Mapping[str, Any]:
    """code, message, created; details never."""
    if not isinstance(fault, Mapping):
        return {}
    return {f"fault_{name}": fault.get(name) for name in ("code", "message", "created")}

"""One pass over one load balancer: tree, facts, rows; one transaction; its health; what is reported; what is given back.

A pass decides from what it reads and may be made again at any point: after a conflict at once, after trouble that may pass with growing
pauses, after the death of its process by whoever takes the lease next.
"""

import asyncio
import random
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import structlog

from roadstead.bus.failures import PublishFailed, RequestFailed
from roadstead.store.api import StoreUnavailable
from roadstead.telemetry.metrics import Meters
from roadstead.telemetry.traces import Tracing, no_tracing
from roadstead_ovn import reports
from roadstead_ovn.api import Api
from roadstead_ovn.balancer import GONE, BadTree, Balancer, balancer_of
from roadstead_ovn.facts import Facts
from roadstead_ovn.health import health_of
from roadstead_ovn.network import Network, NetworkRefused, is_passing
from roadstead_ovn.northbound.plan import adopted
from roadstead_ovn.northbound.port import Conflict, Northbound, Rejected, Superseded, Unknown, Unready
from roadstead_ovn.present import gone, monitored_subnets, probe_ports, tell_lost, vip_ports
from roadstead_ovn.probe_ports import ProbePorts
from roadstead_ovn.render import render
from roadstead_ovn.rows import Wanted
from roadstead_ovn.store.port import End, Json, LeaseLost, Store, Work
from roadstead_ovn.subnets import Subnets
from roadstead_ovn.vip_ports import remove_vip_ports

log = structlog.get_logger("roadstead.ovn.passes")

ORPHAN = "orphan"  # the reason with which a full sync wakes rows that have no tree
ADOPT = "adopt"  # the reason with which an operator lets a pass write over a newer revision
# The reasons to ask whether ports that the database has are really there.
VERIFYING = frozenset({"sync", "operator", ADOPT})
TRIES = 10  # writes of one pass that meet a conflict
PROBE_SEEN_WITHIN = 2.0  # seconds from a port's creation in the network service to its row in the database
PAUSE_FIRST = 0.25
PAUSE_MAX = 30.0
LOOK_AGAIN = 5.0  # seconds after which the API has heard a report
PAUSE_FINAL = 60.0  # after a failure that only a change can mend
BEFORE_DEADLINE = 2.0  # seconds before a call's deadline at which its failure is told, with the reason
READY_WITHIN = 1.0
GONE_FOR = 3600.0  # seconds that the revision of a removed load balancer is remembered
CREATION = "loadbalancer_create"
PATIENCE_LACKING = 3  # passes that a network may lack its logical switch: the network service may be at it


class Trouble(Exception):
    """Something that may pass; the text is for people."""


class Final(Exception):
    """Something that does not pass by itself."""


@dataclass(frozen=True)
class Outcome:
    """forget: the row goes, nothing is left of the load balancer."""

    end: End
    forget: bool = False
    label: str = "done"


class Passes:
    """owner: this process.  lease: seconds.  wall: seconds since 1970."""

    def __init__(
        self,
        store: Store,
        northbound: Northbound,
        api: Api,
        network: Network,
        subnets: Subnets,
        owner: str,
        *,
        lease: float = 15.0,
        meters: Meters | None = None,
        tracing: Tracing | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._nb = northbound
        self._api = api
        self._network = network
        self._subnets = subnets
        self._probes = ProbePorts(store, network, owner)
        self._owner = owner
        self._lease = lease
        self._meters = meters or Meters()
        self._tracing = tracing or no_tracing()
        self._wall = wall
        self.stopping = False
        """Set when the process ends: leases are given back with the pass that runs."""
        self._running: set[str] = set()
        self._offered: dict[str, Json] = {}

    def offer(self, tree: Json) -> None:
        """A tree that came with a call, for the pass that is at that load balancer here; dropped when there is none."""
        identifier = str(tree["loadbalancer_id"])
        held = self._offered.get(identifier)
        if identifier in self._running and (held is None or held["revision"] <= tree["revision"]):
            self._offered[identifier] = tree

    async def run(self, work: Work, tree: Json | None = None) -> None:
        """Passes until nothing new has come meanwhile.  Never raises but for cancellation."""
        self._running.add(work.id)
        left: Work | None = work
        try:
            while left is not None:
                left, tree = await self._one(left, tree), None
                if left is not None:
                    tree = self._offered.pop(left.id, None)
        except LeaseLost:
            log.warning("the lease went to somebody else", load_balancer=work.id)
        except StoreUnavailable as error:
            log.warning(
                "the end of a pass is not stored; it is made again", load_balancer=work.id, error=str(error)
            )
        finally:
            self._running.discard(work.id)
            self._offered.pop(work.id, None)

    async def _one(self, work: Work, tree: Json | None) -> Work | None:
        began = time.monotonic()
        carrier = _newest_trace(work)
        with self._tracing.span("ovn pass", carrier, load_balancer=work.id, reason=work.reason) as span:
            try:
                outcome = await self._pass(work, tree)
            except Exception as error:  # noqa: BLE001 - whatever it is, the pass is made again; _failed tells and logs it
                outcome = await self._failed(work, error)
            span.set_attribute("outcome", outcome.label)
            self._meters.count("roadstead_ovn_passes_total", reason=work.reason, outcome=outcome.label)
            self._meters.observe("roadstead_ovn_pass_seconds", time.monotonic() - began)
            if outcome.forget:
                return await self._store.forget(work, self._owner, self._lease)
            end = replace(outcome.end, keep=not self.stopping)
            return await self._store.end(work, self._owner, end, self._lease)

    # ------------------------------------------------------------ the pass

    async def _pass(self, work: Work, tree: Json | None) -> Outcome:
        if not self._nb.is_ready():
            try:
                await asyncio.wait_for(self._nb.ready(), READY_WITHIN)
            except TimeoutError:
                raise Unready from None
        is_known = work.done > 0 or any(c.get("method") == CREATION for c in work.calls.values())
        if tree is None or tree["revision"] < work.revision or not is_known:
            tree = await self._api.tree(work.id)
        for is_last in (False, True):
            if tree is None:
                return await self._without_tree(work)
            try:
                return await self._with_tree(work, tree)
            except Superseded as error:
                if is_last:
                    raise Trouble(
                        f"the database holds a newer revision than the API's ({error}): was the API's database restored? "
                        "`roadstead ovn sync ID --adopt` writes over it"
                    ) from error
                tree = await self._api.tree(work.id)
        raise AssertionError("the loop above returns or raises")

    async def _with_tree(self, work: Work, tree: Json) -> Outcome:
        revision = int(tree["revision"])
        going = reports.going(work.calls.values(), revision)
        balancer = balancer_of(tree, going)
        if balancer is None:
            await self._write(work.id, revision, None, work.reason == ADOPT)
            await remove_vip_ports(self._network, tree)
            await self._give_back(work, frozenset(), frozenset())
            await self._tell_success(work, revision, {})
            # The row stays for a while, so that a call that is delivered late does not bring back what is gone.
            ended = [op for op, call in work.calls.items() if call["revision"] <= revision]
            end = End(done=revision, reported=ended, told={}, uses={}, again=GONE_FOR)
            return Outcome(end, label="removed")
        await self._subnets.of([balancer])
        refused = await self._make_probes(work, balancer)
        wanted = await self._write(work.id, revision, balancer, work.reason == ADOPT)
        facts = self._facts(balancer)
        health = health_of(balancer, facts)
        if wanted.lacking and work.calls and work.failures < PATIENCE_LACKING:
            raise Trouble(_lacking(wanted))
        now = reports.standings(health, balancer)
        ids = reports.unknown_to_api(now, balancer, work.told)
        given_up = [op for op, call in work.calls.items() if reports.is_given_up(call, balancer)]
        work = replace(work, calls={op: call for op, call in work.calls.items() if op not in given_up})
        calls = [call for call in work.calls.values() if call["revision"] <= revision]
        found = reports.some_records(health, balancer, ids | reports.touched(calls))
        found = reports.without_probes(found, balancer, facts, refused)
        if wanted.lacking and calls:
            raise Final(_lacking(wanted))
        if calls:
            await self._tell_success(work, revision, found)
        elif ids:
            await self._api.status(reports.status(work.id, revision, found))
        late = await self._after(work, balancer, wanted)
        # A failed operation's success may come too late for the API: then what it was to remove stays, and is made again.
        is_claimed = any(balancer.statuses.get(i, ("DELETED",))[0] not in GONE for i in going)
        return Outcome(
            End(
                done=revision,
                reported=[*given_up, *(op for op, c in work.calls.items() if c["revision"] <= revision)],
                told=now,
                uses=late or _uses(wanted),
                again=PAUSE_MAX if late or refused else LOOK_AGAIN if is_claimed else None,
            )
        )

    def _facts(self, balancer: Balancer) -> Facts:
        """What the database and the network service know; subnets must be known already."""
        facts = self._nb.facts(balancer)
        wanted = {vip.subnet_id for vip in balancer.vips} | {
            balancer.member_subnet(m) for pool in balancer.pools for m in pool.members
        }
        return replace(facts, subnets=self._subnets.known(wanted))

    async def _write(
        self, identifier: str, revision: int, balancer: Balancer | None, adopt: bool = False
    ) -> Wanted:
        """Make it so; `adopt`: over a newer revision as well.  Superseded, Rejected; Trouble when it cannot be done now."""
        for attempt in range(TRIES):
            wanted = render(balancer, Facts() if balancer is None else self._facts(balancer))
            found = self._nb.found(identifier, wanted)
            if adopt:
                found = adopted(revision, found)
            try:
                written = await self._nb.write(identifier, revision, wanted, found)
            except Conflict:
                self._meters.count("roadstead_ovn_transactions_total", outcome="conflict")
                await asyncio.sleep(min(0.2, 0.002 * 2**attempt) * random.uniform(0.5, 1.0))
                continue
            except Rejected:
                self._meters.count("roadstead_ovn_transactions_total", outcome="rejected")
                raise
            if written.transactions:
                self._meters.count(
                    "roadstead_ovn_transactions_total", written.transactions, outcome="written"
                )
            return wanted
        raise Trouble(f"{TRIES} writes in a row met a change by somebody else")

    async def _without_tree(self, work: Work) -> Outcome:
        """The API has no such load balancer.  Rows that bear our revision go only when a full sync has looked twice."""
        known = self._nb.known()
        revision = known.get(work.id)
        if revision is not None and work.reason != ORPHAN:
            return Outcome(End(done=work.done, reported=list(work.calls)), label="no_tree")
        if revision is not None:
            log.warning("rows without a load balancer are removed", load_balancer=work.id, revision=revision)
            await self._write(work.id, revision, None)
        await self._give_back(work, frozenset(), frozenset())
        return Outcome(End(), forget=True, label="no_tree")

    # ------------------------------------------------------------ ports and floating IPs

    async def _make_probes(self, work: Work, balancer: Balancer) -> Collection[str]:
        """See to ports for probes; ids of subnets that get none for good."""
        if new := monitored_subnets(balancer) - work.probes:
            await self._store.use_probes(work.id, new)
        facts = await self._present(work, balancer)
        wanted = render(balancer, facts).monitor_subnets
        missing = {s for s in wanted if facts.monitor_port(s) is None}
        if not missing:
            return ()
        projects = _projects(balancer, facts)
        refused = await self._probes.make(self._subnets.known(sorted(missing)), projects)
        for subnet, text in refused.items():
            log.warning("no port for probes", load_balancer=work.id, subnet=subnet, reason=text)
        loop = asyncio.get_running_loop()
        waited = loop.time() + PROBE_SEEN_WITHIN
        left = missing - set(refused)
        while any(self._facts(balancer).monitor_port(s) is None for s in left):
            if loop.time() > waited:
                raise Trouble(f"the port for probes in subnet {min(left)} is not in the database yet")
            await asyncio.sleep(0.01)
        return refused

    async def _present(self, work: Work, balancer: Balancer) -> Facts:
        """The facts without ports that are gone: asked for when a comparison or a person wants it, and where one of two must be gone."""
        facts = self._facts(balancer)
        is_verifying = work.reason in VERIFYING
        probes = probe_ports(facts, monitored_subnets(balancer)).values()
        doubtful = {port for ports in probes if is_verifying or len(ports) > 1 for port in ports}
        asked = doubtful | (vip_ports(balancer) if is_verifying else set())
        try:
            lost = await gone(self._network, asked)
        except NetworkRefused as error:
            # Rows are repaired nevertheless; the next comparison looks again.
            log.warning(
                "passed without a look at ports in the network service",
                load_balancer=work.id,
                reason=error.text,
            )
            return facts
        if not lost:
            return facts
        tell_lost(balancer, lost)
        self._nb.disown(lost & doubtful)
        return self._facts(balancer)

    async def _after(self, work: Work, balancer: Balancer, wanted: Wanted) -> Mapping[str, list[str]] | None:
        """Give back what is not wanted any more; when that must be done later, what counts as used until then."""
        try:
            # By the tree alone: a database that lost its switches and ports for a moment is no reason to remove a port.
            await self._give_back(work, monitored_subnets(balancer), wanted.centralised)
        except NetworkRefused as error:
            log.warning("given back later", load_balancer=work.id, reason=error.text)
            now = _uses(wanted)
            return {name: sorted({*now[name], *work.uses.get(name, ())}) for name in now}
        return None

    async def _give_back(self, work: Work, subnets: frozenset[str], floating: frozenset[str]) -> None:
        if gone := work.probes - subnets:
            known = await self._subnets.get(gone)
            await self._probes.give_back(work.id, known)
            for vanished in gone - {subnet.id for subnet in known}:  # and its port with it
                await self._store.drop_probes(work.id, vanished)
        for address in sorted(set(work.uses.get("floating_ips", ())) - floating):
            await self._network.recompute_floating_ip(address)

    # ------------------------------------------------------------ reports

    async def _tell_success(self, work: Work, revision: int, found: reports.Records) -> None:
        newest = max((c["revision"] for c in work.calls.values() if c["revision"] <= revision), default=0)
        for operation, call in work.calls.items():
            if call["revision"] > revision:
                continue
            # What an older operation was about is in the newest one's report.
            said = found if call["revision"] == newest else {}
            await self._api.result(
                reports.success(operation, work.id, call, said), f"{operation}.{call.get('send', 1)}.result"
            )
            self._meters.observe("roadstead_ovn_report_seconds", max(0.0, self._wall() - call.get("at", 0.0)))

    async def _failed(self, work: Work, error: Exception) -> Outcome:
        """Try again later; calls whose time is nearly over, or that cannot be carried out, are told to have failed."""
        is_final, text = judged(error)
        failures = work.failures + 1
        pause = PAUSE_FINAL if is_final else min(PAUSE_MAX, PAUSE_FIRST * 2.0 ** min(failures - 1, 10))
        log.warning(
            "pass failed", load_balancer=work.id, failures=failures, again_in=pause, reason=text,
            exc_info=error if text.startswith(INTERNAL) else None,
        )  # fmt: skip
        patch = {}
        for operation, call in work.calls.items():
            over = self._wall() + pause > float(call.get("deadline", 0.0)) - BEFORE_DEADLINE
            if call.get("failed") or not (is_final or over):
                continue
            body = reports.failure(operation, work.id, call, text)
            try:
                await self._api.result(body, f"{operation}.{call.get('send', 1)}.failure")
            except PublishFailed as refused:
                log.warning("failure not told", operation=operation, reason=str(refused))
                continue
            patch[operation] = {**call, "failed": True}
        end = End(
            done=work.done,
            patch=patch,
            failures=failures,
            fault=text[:500],
            again=pause * random.uniform(0.8, 1.0),
        )
        return Outcome(end, label="final" if is_final else "failed")


INTERNAL = "internal error"


def judged(error: Exception) -> tuple[bool, str]:
    """(does it stay so, what to tell people)."""
    match error:
        case Unready() | Unknown():
            return False, "the Northbound database cannot be reached"
        case Trouble():
            return False, str(error)
        case Final():
            return True, str(error)
        case Rejected():
            return True, f"the Northbound database refuses it: {error}"
        case BadTree():
            return True, f"the load balancer cannot be read: {error}"
        case NetworkRefused():
            return not is_passing(error), f"the network service: {error.text}"
        case RequestFailed() | PublishFailed():
            return False, f"the Octavia API cannot be reached: {error}"
        case StoreUnavailable():
            return False, f"the worker's database: {error}"
        case _:
            return False, f"{INTERNAL}: {type(error).__name__}; the log has more"


def _uses(wanted: Wanted) -> dict[str, list[str]]:
    return {"floating_ips": sorted(wanted.centralised)}


def _lacking(wanted: Wanted) -> str:
    return f"network {min(wanted.lacking)} of the VIP has no logical switch"


def _projects(balancer: Balancer, facts: Facts) -> Mapping[str, str]:
    """By subnet, the project of a member's port there; the lowest member id decides."""
    found: dict[str, str] = {}
    for pool in balancer.pools:
        for member in pool.members:
            machine = facts.machine(balancer.member_subnet(member), member.address)
            if machine is not None:
                found.setdefault(balancer.member_subnet(member), machine.project_id)
    return found


def _newest_trace(work: Work) -> Mapping[str, str]:
    call = max(work.calls.values(), key=lambda c: c.get("at", 0.0), default={})
    return {"traceparent": call["traceparent"]} if call.get("traceparent") else {}

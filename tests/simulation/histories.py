"""Seeded histories: people edit, the cloud fails, processes die, messages go astray - and in the end the wish stands.

A history is a function of its seed.  Chance picks what people publish, what goes wrong and when; then the trouble stops, the world
comes to rest, and the invariants are looked at.  A failing history is replayed with `python -m tests.simulation.replay SEED`.
"""

import asyncio
import random
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.world.admin import Admin
from tests.world.sim import SimWorld
from tests.world.simbus import Weather
from tests.world.virtual import run_virtual

from roadstead.assembly import Service
from roadstead.subjects import Key
from roadstead.testing.cloudsim.faults import Fault, Outcome

NETWORKS = ("net-a", "net-b")
PARKED = ("CREATE_EXHAUSTED", "REBUILD_CONVERGED_ERROR")
PREFIXES = {"net-a": "10.1.0.0/24", "net-b": "10.2.0.0/24"}


@dataclass
class Wish:
    """What was last asked of one resource; None: deleted."""

    key: Key
    name: str
    spec: dict[str, Any] | None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class History:
    """One history; `trail` is what was done, for a person who reads a failure."""

    seed: int
    world: SimWorld
    random: random.Random
    administrator: Admin
    wishes: dict[str, Wish] = field(default_factory=dict)
    trail: list[str] = field(default_factory=list)
    flavor: str = ""
    images: tuple[str, ...] = ()
    volume_class: str = ""
    cascading: dict[str, int] = field(
        default_factory=dict
    )  # network name -> the incarnation that goes with its children

    def still_cascading(self, name: str) -> bool:
        """While a cascade is under way its children are not for people to make: whose wish wins would be chance."""
        if name not in self.cascading:
            return False
        document = self.world.status(self.wishes[name].key)
        if document is None or (
            "gone" not in document and document["metadata"]["incarnation"] <= self.cascading[name]
        ):
            return True
        del self.cascading[name]
        return False

    def note(self, text: str) -> None:
        self.trail.append(f"{asyncio.get_running_loop().time():9.2f} {text}")

    # ------------------------------------------------------------ people

    async def someone_acts(self) -> None:
        kind = self.random.choice(
            (
                "network",
                "securitygroup",
                "server",
                "server",
                "server",
                "volume",
                "volume",
                "attachment",
                "loadbalancer",
            )
        )
        await getattr(self, f"_{kind}")()

    def _open_network(self) -> Wish | None:
        """A network that stands and whose children people may make."""
        name = self.random.choice(NETWORKS)
        wish = self.wishes.get(name)
        return wish if wish is not None and wish.spec is not None and not self.still_cascading(name) else None

    async def _server(self) -> None:
        network = self._open_network()
        if network is None:
            return
        name = f"web-{network.name}"
        wish = self.wishes.get(name)
        if wish is not None and wish.spec is not None and self.random.random() < 0.25:
            await self._delete(name)
            return
        key = self.world.key("server", str(uuid.uuid5(uuid.UUID(network.key.id), name)))
        before = wish.spec if wish is not None and wish.spec is not None else {}
        spec: dict[str, Any] = {
            "flavorID": self.flavor,
            "image": {"id": self.random.choice(self.images)},
            "networks": [{"id": network.key.id}],
            "publicIPAllocation": {"enabled": self.random.random() < 0.5},
            "volumes": before.get("volumes", []),
            "sshInjection": "none",
        }
        await self._apply(name, key, spec)

    async def _volume(self) -> None:
        network = self._open_network()
        if network is None:
            return
        name = f"data-{network.name}"
        wish = self.wishes.get(name)
        if wish is not None and wish.spec is not None:
            server = self.wishes.get(f"web-{network.name}")
            if server is not None and server.spec is not None and server.spec["volumes"]:
                return
            if self.random.random() < 0.5:
                await self._delete(name)
            return
        spec = {"networkID": network.key.id, "volumeClassID": self.volume_class, "size": "2Gi"}
        await self._apply(name, self._key("volume", name), spec)

    async def _loadbalancer(self) -> None:
        """Made and removed only: changes in place come with a later step."""
        network = self._open_network()
        if network is None:
            return
        name = f"lb-{network.name}"
        wish = self.wishes.get(name)
        if wish is not None and wish.spec is not None:
            if self.random.random() < 0.5:
                await self._delete(name)
            return
        base = PREFIXES[network.name].rpartition(".")[0]
        listener = {
            "name": "web",
            "protocol": "tcp",
            "port": 80,
            "pool": {"members": [{"address": f"{base}.{200 + n}", "port": 8080} for n in range(2)]},
        }
        spec = {"listeners": [listener], "publicIP": self.random.random() < 0.5}
        await self._apply(name, self._key("loadbalancer", name), spec, networkId=network.key.id)

    async def _attachment(self) -> None:
        """The volume of a network is attached to its server, or taken off it."""
        network = self._open_network()
        if network is None:
            return
        server, volume = self.wishes.get(f"web-{network.name}"), self.wishes.get(f"data-{network.name}")
        if server is None or server.spec is None or volume is None or volume.spec is None:
            return
        volumes = [] if server.spec["volumes"] else [{"id": volume.key.id}]
        await self._apply(server.name, server.key, {**server.spec, "volumes": volumes})

    async def _network(self) -> None:
        name = self.random.choice(NETWORKS)
        wish = self.wishes.get(name)
        if wish is not None and wish.spec is not None and self.random.random() < 0.25:
            document = self.world.status(wish.key)
            self.cascading.setdefault(name, document["metadata"]["incarnation"] if document else 0)
            await self._delete(name, cascade=True)
            for other in list(self.wishes.values()):
                if other.name.endswith(name) and other is not wish and other.spec is not None:
                    await self._delete(other.name)  # one that is no consumer yet is not in the cascade
            return
        key = wish.key if wish is not None else self._key("network", name)
        dns = [f"192.0.2.{self.random.randint(1, 3)}"]
        await self._apply(name, key, {"prefix": PREFIXES[name], "dnsNameservers": dns})

    async def _securitygroup(self) -> None:
        network = self.random.choice(NETWORKS)
        parent = self.wishes.get(network)
        if parent is None or parent.spec is None or self.still_cascading(network):
            return
        name = f"group-{network}"
        wish = self.wishes.get(name)
        if wish is not None and wish.spec is not None and self.random.random() < 0.3:
            await self._delete(name)
            return
        key = wish.key if wish is not None else self._key("securitygroup", name)
        ports = self.random.sample((22, 80, 443), self.random.randint(1, 3))
        rules = [{"direction": "ingress", "protocol": "tcp", "port": {"number": p}} for p in ports]
        await self._apply(name, key, {"rules": rules}, networkId=parent.key.id)

    def _key(self, kind: str, name: str) -> Key:
        return self.world.key(kind, str(uuid.uuid5(uuid.UUID(self.world.region), f"{kind}/{name}")))

    async def _apply(self, name: str, key: Key, spec: dict[str, Any], **metadata: Any) -> None:
        self.note(f"apply {key.kind} {name}")
        self.wishes[name] = Wish(key, name, spec, metadata)
        await self.world.apply(key, name, spec, **metadata)

    async def _delete(self, name: str, *, cascade: bool = False) -> None:
        self.note(f"delete {name}")
        wish = self.wishes[name]
        wish.spec = None
        await self.world.delete(wish.key, cascade=cascade)

    # ------------------------------------------------------------ trouble

    async def something_fails(self) -> None:
        what = self.random.choice(("fault", "fault", "fault", "kill", "kill", "foreign", "foreign"))
        if what == "kill":
            replica = self.random.choice(
                [r for r in self.world.replicas if r.assembly is not None] or self.world.replicas
            )
            self.note(f"kill {replica.name}")
            self.world.kill(replica)
        elif what == "fault":
            self._fault()
        else:
            self._foreign()

    def _foreign(self) -> None:
        """Somebody else's hand in the cloud."""
        servers = [o["id"] for o in self.world.cloud.dump()["compute"]["servers"]["objects"]]
        what = self.random.choice(("stop", "start", "rebuild", "delete", "boot fails", "rebuild fails"))
        if what == "boot fails":
            self.world.cloud.faults.add_outcome(Outcome("server_build", times=1))
        elif what == "rebuild fails":
            self.world.cloud.faults.add_outcome(Outcome("server_rebuild", times=1))
        elif servers:
            path = f"/compute/v2.1/servers/{self.random.choice(servers)}"
            action = {
                "stop": {"os-stop": None},
                "start": {"os-start": None},
                "rebuild": {"rebuild": {"imageRef": self.random.choice(self.images)}},
            }.get(what)
            hand = self.administrator
            status = hand.tries("POST", f"{path}/action", action) if action else hand.tries("DELETE", path)
            what += f" ({status})"
        self.note(f"foreign {what}")

    def _fault(self) -> None:
        kind = self.random.choice(
            ("status", "status", "status_after", "no_answer_before", "no_answer_after", "empty_list", "slow")
        )
        service = self.random.choice(("identity", "compute", "network", "volume", "load-balancer", None))
        method = self.random.choice(("GET", "POST", "PUT", "DELETE", None))
        times = self.random.randint(1, 4)
        if kind == "empty_list":
            service, method, times = (
                self.random.choice(("identity", "compute", "network", "volume", "image", "load-balancer")),
                "GET",
                1,
            )
        status = self.random.choice((500, 502, 503, 504, 429, 409))
        if kind == "status_after":
            status = self.random.choice((500, 502, 503, 504))
        fault = Fault(
            kind,
            service=service,
            method=method,
            times=times,
            skip=self.random.randint(0, 3),
            status=status,
            delay=self.random.choice((0.5, 5.0, 90.0)),
        )
        self.note(f"fault {kind} {service} {method} {status}")
        self.world.cloud.faults.add(fault)

    # ------------------------------------------------------------ the end

    def _wrecks_removed(self) -> None:
        """An operator removes the servers in ERROR about which a person must decide, where something waits for that decision.

        One that never booted though its resource once did belongs to no retry (INV-302), and its image does not change (INV-081); and
        nothing comes off a server in ERROR, so a volume that is to go waits for as long as it holds on to it.
        """
        for server in list(self.world.cloud.nova.servers.values()):
            wish = next(
                (w for w in self.wishes.values() if w.key.id == server.metadata.get("serverID")), None
            )
            if server.vm_state != "error" or wish is None or wish.spec is None:
                continue
            document = self.world.status(wish.key) or {}
            unborn = server.launched_at is None and "provisionedAt" in document.get("status", {})
            wanted = {f"volume-{v['id']}" for v in wish.spec["volumes"]}
            held = {(self.world.cloud.cinder.volume(v) or {}).get("name") for v in server.attachments}
            if unborn or held - wanted:
                status = self.administrator.tries("DELETE", f"/compute/v2.1/servers/{server.id}")
                self.note(f"operator removes {wish.name} ({status})")

    async def calm(self) -> None:
        """Trouble stops; what was left waiting comes to rest."""
        self.note("calm")
        self.world.cloud.faults.clear()
        self.world.cloud.faults.outcomes.clear()
        self.world.bus.weather = Weather()
        self._wrecks_removed()
        await self.world.quiet(within=4 * 3600)
        await asyncio.sleep(200)  # three sweeps: what others changed is seen, and put right
        await self.world.quiet(within=4 * 3600)


async def play(seed: int, services: tuple[Service, ...], *, steps: int = 30) -> History:
    """One history to its rest; the invariants are checked by `verdicts`."""
    chance = random.Random(seed)
    weather = Weather(
        late=chance.choice((0.0, 0.2, 3.0)),
        twice=chance.choice((0.0, 0.3)),
        lost_ack=chance.choice((0.0, 0.1)),
        unanswered=chance.choice((0.0, 0.1)),
    )
    async with SimWorld.running(services, seed=seed, replicas=chance.choice((1, 2))) as world:
        admin = Admin(world.cloud)
        history = History(seed, world, chance, admin)
        types = admin.call("GET", f"/volume/v3/{admin.project}/types")["volume_types"]
        history.volume_class = next(t["id"] for t in types if t["name"] == "standard")
        await world.register(
            blockStorage={"volumeClasses": {"selector": {"ids": [history.volume_class]}}},
            loadBalancer={"algorithm": "SOURCE_IP_PORT"},
        )
        flavors = admin.call("GET", "/compute/v2.1/flavors/detail")["flavors"]
        history.flavor = min(flavors, key=lambda f: int(f["ram"]))["id"]
        images = admin.call("GET", "/image/v2/images")["images"]
        history.images = tuple(sorted(i["id"] for i in images if i.get("unikorn:os:kernel")))
        before = Admin(world.cloud).objects()
        world.bus.weather = weather
        for _ in range(steps):
            await history.someone_acts()
            if chance.random() < 0.5:
                await history.something_fails()
            await asyncio.sleep(chance.choice((0.0, 0.05, 0.5, 3.0, 15.0)))
        try:
            await history.calm()
            check(history, before)
            await quiet_passes_write_nothing(history)
        except AssertionError as error:
            trail = "\n".join(history.trail)
            raise AssertionError(f"seed {seed}: {error}\n{trail}") from error
        return history


def check(history: History, before: set[tuple[str, str]]) -> None:
    """Invariants of a world at rest."""
    world = history.world
    for wish in history.wishes.values():
        state = world.provisioning(wish.key)
        if wish.spec is not None and state == "error" and wish.key.kind == "server":
            document = world.status(wish.key)
            if document is not None and document["status"].get("code") in PARKED:
                continue  # what a person has to decide about: too many failed boots, a failed rebuild
        wanted = "gone" if wish.spec is None else "provisioned"
        assert state in (wanted, "absent") if wish.spec is None else state == wanted, (
            f"{wish.name} is {state}, not {wanted}: {world.status(wish.key)}"
        )
    made = Counter(kind for kind, _ in Admin(world.cloud).objects() - before)
    live = Counter(w.key.kind for w in history.wishes.values() if w.spec is not None)
    expected = expected_objects(live)
    expected["servers"] = live["server"] - sum(
        1 for w in history.wishes.values() if w.spec is not None and exhausted(world, w.key)
    )
    expected["volumes"] = live["volume"]
    expected["load_balancers"] = live["loadbalancer"]
    public = [w for w in history.wishes.values() if is_public(w)]
    expected["floating_ips"] = len([w for w in public if not exhausted(world, w.key)])
    for kind, number in expected.items():
        if kind in ("servers", "floating_ips") and any(
            exhausted(world, w.key) for w in history.wishes.values()
        ):
            continue
        assert made[kind] == number, f"{made[kind]} {kind}, {number} wanted ({dict(live)})"
    scopes_hold(world)
    versions_rise(world)


def is_public(wish: Wish) -> bool:
    """Whether it is to have a floating IP."""
    spec = wish.spec or {}
    return bool(spec.get("publicIPAllocation", {}).get("enabled") or spec.get("publicIP"))


def exhausted(world: SimWorld, key: Key) -> bool:
    """A server that failed to boot as often as it may: what it left is kept for a person to look at."""
    document = world.status(key)
    return document is not None and document["status"].get("code") == "CREATE_EXHAUSTED"


def expected_objects(live: Mapping[str, int]) -> dict[str, int]:
    """How many cloud objects the wishes imply; a network brings its hidden identity."""
    networks = live.get("network", 0)
    return {
        "projects": networks,
        "users": networks,
        "application_credentials": networks,
        "server_groups": networks,
        "keypairs": networks,
        "networks": networks,
        "subnets": networks,
        "routers": networks,
    }


def scopes_hold(world: SimWorld) -> None:
    """INV-001, INV-002, INV-020: who asked for what, in which scope."""
    for call in world.cloud.log:
        if call.user_name in (None, "admin"):
            continue
        if call.scope == "domain":
            assert call.service == "identity", f"domain scope on {call.service} {call.path}"
        if call.service in ("network", "volume", "load-balancer") and call.is_write:
            assert call.scope == "project", f"{call.scope} scope on {call.method} {call.path}"


def versions_rise(world: SimWorld) -> None:
    """Neither generation nor incarnation of any resource ever falls."""
    import json

    newest: dict[str, tuple[int, int, int]] = {}
    for message in sorted(
        (json.loads(m.payload) for m in world.bus.streams["STATUS"]), key=lambda d: d["resourceVersion"]
    ):
        ident = message["metadata"]["id"]
        now = (
            message["resourceVersion"],
            message["metadata"]["incarnation"],
            message["metadata"]["generation"],
        )
        was = newest.get(ident, (0, 0, 0))
        assert now[1] >= was[1], f"the incarnation of {ident} fell"
        assert now[2] >= was[2], f"the generation of {ident} fell"
        newest[ident] = now


async def quiet_passes_write_nothing(history: History) -> None:
    """Every live row passes once more: no write reaches the cloud (K15)."""
    world = history.world
    mark = len(world.cloud.log)
    for name, store in world.stores.items():
        keys = [(r.key.kind, r.key.id) for r in store._held.rows.values() if r.gone_at is None]
        await store.wake(keys, {"reason": "quiet pass"})
        for replica in world.replicas:
            if replica.service.name == name and replica.assembly is not None:
                replica.assembly.runner.nudge()
    await world.quiet()
    writes = [c for c in list(world.cloud.log)[mark:] if c.is_write]
    assert not writes, f"quiet passes wrote: {[(c.method, c.path) for c in writes]}"


def run_history(seed: int, services: tuple[Service, ...], steps: int = 30) -> History:
    """On a virtual loop of its own."""
    return run_virtual(play(seed, services, steps=steps))

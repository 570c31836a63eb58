"""One interface for every world that a scenario runs in.

A scenario publishes specs, waits for status, looks into the cloud as its administrator and meddles with it as somebody else.
The simulation, a stack of real processes over the simulator, and the same stack over a real cloud differ only behind this.
Durations are the product's own seconds; a world that runs at another pace scales them.
"""

import asyncio
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from roadstead.subjects import Key
from tests.world.cloud_admin import CloudAdmin, properties
from tests.world.foreigner import Foreigner

Document = Mapping[str, Any]
Check = Callable[[Document], Any]

ORGANIZATION = "organization-a"
TCP_22 = {"direction": "ingress", "protocol": "tcp", "port": {"number": 22}}
TERMINAL = ("provisioned", "error")


@dataclass(frozen=True)
class Ref:
    """A resource of a scenario: its key, its display name and what was asked last."""

    key: Key
    name: str
    spec: Mapping[str, Any] = field(hash=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        return self.key.id

    @property
    def kind(self) -> str:
        return self.key.kind


@dataclass(frozen=True)
class Offer:
    """What a cloud offers, by the words that scenarios use.

    images: A and B boot; no-boot and no-rebuild fail when it is tried; deactivated is refused; ids all.  flavors: small,
    medium.  classes: standard, fast.  external: the external network.
    """

    images: Mapping[str, str]
    flavors: Mapping[str, str]
    classes: Mapping[str, str]
    external: str


@dataclass(frozen=True)
class Place:
    """A network and a group in it.  identity None: the network's hidden one."""

    identity: Ref | None
    network: Ref
    group: Ref


@dataclass(frozen=True)
class Home(Place):
    """An identity, a network in it and a group that a scenario may use and must leave as they are."""

    identity: Ref


class World(ABC):
    """What a scenario may do and see.  Everything it applies is deleted at its end, and must then be gone from the cloud."""

    level: str
    region: str
    project: str
    organization: str = ORGANIZATION
    salt: str = ""  # tells scenarios of one project apart in names
    pace: float = 1.0
    offer: Offer
    cloud: CloudAdmin
    foreigner: Foreigner

    def __init__(self) -> None:
        self.applied: list[Ref] = []
        self._marks: dict[str, int] = {}
        self._names = 0

    # ------------------------------------------------------------ what differs between worlds

    @abstractmethod
    async def publish(self, key: Key, body: Mapping[str, Any] | bytes) -> int:
        """One message of SPEC as a plain client sends it; its sequence."""

    @abstractmethod
    def newest(self, key: Key) -> Document | None:
        """The newest STATUS document known of the resource."""

    @abstractmethod
    async def request(self, kind: str, verb: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """A person's request about a kind of this project."""

    @abstractmethod
    async def home(self) -> Home:
        """A provisioned home; worlds where that takes long share one between scenarios."""

    @abstractmethod
    async def sweep(self) -> None:
        """Return when the monitor has begun and ended a sweep after this call, and what it told is stored."""

    @abstractmethod
    async def quiet_pass(self, ref: Ref) -> None:
        """Let the owner pass over the resource once more though nothing changed, and wait until it did."""

    @abstractmethod
    async def moved(self, seconds: float) -> None:
        """Wait until some status may have changed, at most that many real (or virtual) seconds."""

    @abstractmethod
    def clock(self) -> float:
        """Seconds of this world."""

    # ------------------------------------------------------------ wishes

    def name(self, word: str) -> str:
        """A display name that no other scenario of this region uses."""
        self._names += 1
        salted = f"{self.project}/{self.salt}/{self._names}"
        return f"{word}-{uuid.uuid5(uuid.NAMESPACE_OID, salted).hex[:8]}"

    def key(self, kind: str, ident: str | None = None) -> Key:
        return Key(self.region, self.project, kind, ident or str(uuid.uuid4()))

    async def apply(
        self, kind: str, name: str, spec: Mapping[str, Any], *, ident: str | None = None, **metadata: Any
    ) -> Ref:
        """Publish a wish; the id is a new one unless given."""
        ref = Ref(self.key(kind, ident), name, dict(spec), metadata)
        self.applied.append(ref)
        await self._send(ref)
        return ref

    async def edit(self, ref: Ref, **changes: Any) -> Ref:
        """The same resource with other fields in its spec."""
        edited = Ref(ref.key, ref.name, {**ref.spec, **changes}, ref.metadata)
        await self._send(edited)
        return edited

    async def _send(self, ref: Ref) -> None:
        metadata = {"name": ref.name, "organizationId": self.organization, "projectId": self.project}
        body = {"metadata": {**metadata, **ref.metadata}, "spec": dict(ref.spec)}
        self._asked(ref, await self.publish(ref.key, body))

    def _asked(self, ref: Ref, sequence: int) -> None:
        self._marks[f"asked {ref.key}"] = sequence

    async def delete(self, ref: Ref, *, cascade: bool = False) -> None:
        body: dict[str, Any] = {"delete": True}
        if cascade:
            body["cascade"] = True
        await self.publish(ref.key, body)

    # ------------------------------------------------------------ waiting

    def state(self, ref: Ref) -> str:
        """provisioned, error, provisioning, deprovisioning or gone; absent: nothing is known; stale: of an older wish."""
        document = self.newest(ref.key)
        if document is None:
            return "absent"
        if "gone" in document:
            return "gone"
        status = document["status"]
        state = str(status.get("provisioningStatus", "unknown"))
        if state in TERMINAL:
            if document["specPosition"]["sequence"] < self._marks.get(f"asked {ref.key}", 0):
                return "stale"
            if status.get("observedGeneration") != document["metadata"]["generation"]:
                return "stale"
        return state

    def document(self, ref: Ref) -> Document:
        found = self.newest(ref.key)
        assert found is not None, f"nothing is known of {ref.key}"
        return found

    def status(self, ref: Ref) -> Mapping[str, Any]:
        part: Mapping[str, Any] = self.document(ref)["status"]
        return part

    def condition(self, ref: Ref, kind: str) -> Mapping[str, Any]:
        """One condition; {} where it is missing."""
        found = [c for c in self.status(ref).get("conditions", ()) if c["type"] == kind]
        return found[0] if found else {}

    async def until(
        self, ref: Ref, wanted: str = "", *, when: Check | None = None, within: float = 300.0
    ) -> Document:
        """Wait for the state, and for the check on the document where one is given; product seconds."""
        end = self.clock() + within * self.pace + self.patience
        while True:
            document = self.newest(ref.key)
            if (not wanted or self.state(ref) == wanted) and (
                when is None or (document is not None and when(document))
            ):
                return document or {}
            left = end - self.clock()
            if left <= 0:
                raise AssertionError(self._late(ref, wanted, document))
            await self.moved(min(left, 5.0))

    patience: float = 0.0  # real seconds on top of every wait, for a machine that is busy

    def _late(self, ref: Ref, wanted: str, document: Document | None) -> str:
        shown = dict(document["status"]) if document else None
        return f"{ref.kind} {ref.name} is {self.state(ref)}, not {wanted or 'as checked'}: {shown}"

    async def settled(self, kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> Ref:
        """Applied and provisioned."""
        ref = await self.apply(kind, name, spec, **metadata)
        await self.until(ref, "provisioned")
        return ref

    def seconds(self, product: float) -> float:
        """Product seconds in this world's own."""
        return product * self.pace

    async def eventually(self, check: Callable[[], Any], what: str, within: float = 300.0) -> Any:
        """The first true value of a check of the cloud (or of anything else)."""
        end = self.clock() + within * self.pace + self.patience
        while True:
            value = check()
            if asyncio.iscoroutine(value):
                value = await value
            if value:
                return value
            assert self.clock() < end, f"in time there was no {what}"
            await self.moved(0.3)

    async def inventory(self, kind: str) -> list[dict[str, Any]]:
        """What the region offers of a kind: flavor, image, volumeclass, externalnetwork."""
        reply = await self.request(kind, "list", {})
        assert "items" in reply, reply
        items: list[dict[str, Any]] = reply["items"]
        return items

    # ------------------------------------------------------------ what was written

    async def history(self, ref: Ref) -> list[dict[str, Any]]:
        """Every decided and acted record, oldest first."""
        reply = await self.request(ref.kind, "history", {"id": ref.id, "limit": 1000})
        entries: list[dict[str, Any]] = sorted(reply["entries"], key=lambda e: str(e["at"]))
        return entries

    async def mark(self, *refs: Ref) -> None:
        """Writes are told from here on."""
        for ref in refs:
            entries = await self.history(ref)
            self._marks[f"acted {ref.key}"] = len([e for e in entries if e["kind"] == "acted"])

    async def writes(self, ref: Ref) -> list[str]:
        """The cloud writes since the mark, as `server.rebuild`; those that were refused bear their outcome."""
        acted = [e for e in await self.history(ref) if e["kind"] == "acted"]
        return [_word(e) for e in acted[self._marks.get(f"acted {ref.key}", 0) :]]

    async def written(self, ref: Ref, word: str, within: float = 300.0) -> None:
        """Wait for a write since the mark."""

        async def found() -> bool:
            return word in await self.writes(ref)

        await self.eventually(found, f"{word} of {ref.kind} {ref.name}", within)

    async def rules(self, ref: Ref) -> list[str]:
        """The rules that decided, oldest first."""
        return [str(e["rule"]) for e in await self.history(ref) if e["kind"] == "decided"]

    # ------------------------------------------------------------ kinds

    async def server(self, home: Place, *, image: str = "A", name: str | None = None, **changes: Any) -> Ref:
        """A server on the home's network is asked for; `changes` are fields of its spec, `tags` of its metadata."""
        name = name or self.name("web")
        tags = changes.pop("tags", None)
        spec = {
            "flavorID": self.offer.flavors["small"],
            "image": {"id": self.offer.images[image]},
            "networks": [{"id": home.network.id}],
            "securityGroups": [{"id": home.group.id}],
            **changes,
        }
        ident = str(uuid.uuid5(uuid.UUID(home.network.id), name))
        extra: dict[str, Any] = {"networkId": home.network.id}
        if home.identity is not None:
            extra["identityId"] = home.identity.id
        if tags:
            extra["tags"] = [{"name": k, "value": v} for k, v in tags.items()]
        return await self.apply("server", name, spec, ident=ident, **extra)

    async def settled_server(self, home: Place | None = None, **changes: Any) -> Ref:
        """A server that is provisioned and that the monitor has seen booted."""
        server = await self.server(home or await self.home(), **changes)
        await self.until(server, "provisioned", when=booted)
        return server

    async def with_image(self, server: Ref, image: str) -> Ref:
        """The server with another image of the offer."""
        return await self.edit(server, image={"id": self.offer.images.get(image, image)})

    async def image_properties(self) -> dict[str, str]:
        """What makes an image one that the region offers."""
        return properties(await self.cloud.hand.ask("image", "GET", f"/images/{self.offer.images['A']}"))

    async def volume(self, home: Home, *, size: str = "1Gi", kind: str = "standard", **metadata: Any) -> Ref:
        spec = {"networkID": home.network.id, "volumeClassID": self.offer.classes[kind], "size": size}
        return await self.apply(
            "volume",
            self.name("disk"),
            spec,
            identityId=home.identity.id,
            networkId=home.network.id,
            **metadata,
        )

    async def attached(self, server: Ref, volume: Ref) -> None:
        """Wait until the server's row tells a device, and storage says that the volume is in use."""

        def told(document: Document) -> bool:
            return any(
                r["id"] == volume.id and r.get("device") for r in document["status"].get("volumes", ())
            )

        async def in_use() -> bool:
            found = await self.cloud.volume(volume.id)
            return found is not None and found["status"] == "in-use"

        await self.until(server, "provisioned", when=told, within=600)
        await self.eventually(in_use, "attachment in storage")

    async def build_home(self) -> Home:
        """A new identity with a network and a group, all provisioned."""
        identity = await self.apply("identity", self.name("team"), {"provider": "openstack"})
        network = await self.apply(
            "network",
            self.name("net"),
            {"prefix": "192.168.10.0/24", "dnsNameservers": ["192.0.2.53"]},
            identityId=identity.id,
        )
        group = await self.apply(
            "securitygroup",
            self.name("ssh"),
            {"rules": [TCP_22]},
            identityId=identity.id,
            networkId=network.id,
        )
        for each in (identity, network, group):
            await self.until(each, "provisioned")
        return Home(identity, network, group)

    async def cloud_project(self, identity: Ref) -> str:
        """The id of an identity's Keystone project, looked up by its name."""
        found = await self.cloud.projects(name=f"unikorn-identity-{identity.id}")
        assert len(found) == 1, f"{len(found)} projects of identity {identity.id}"
        return str(found[0]["id"])

    # ------------------------------------------------------------ the end

    async def clear(self) -> None:
        """Delete all that was applied, wait until it is gone, and prove that the cloud holds nothing of it."""
        order = ("loadbalancer", "server", "volume", "securitygroup", "network", "identity")
        seen: dict[Key, Ref] = {}
        for ref in self.applied:
            if ref.kind in order and self.state(ref) not in ("gone", "absent"):
                seen[ref.key] = ref
        for ref in sorted(seen.values(), key=lambda r: order.index(r.kind)):
            await self.delete(ref)
        for ref in sorted(seen.values(), key=lambda r: order.index(r.kind)):
            await self.until(ref, "gone", within=900)
        left = [
            (kind, row["name"])
            for ref in {r.key: r for r in self.applied}.values()
            for kind, row in await self.cloud.named_after(ref.kind, ref.id, ref.name)
        ]
        assert not left, f"left behind in the cloud: {left}"


def booted(document: Document) -> bool:
    """A server's document after the monitor saw it running."""
    status = document["status"]
    active = [c for c in status.get("conditions", ()) if c["type"] == "Active"]
    return bool(status.get("provisionedAt")) and bool(active) and active[0]["reason"] == "Running"


def observed_image(image: str) -> Check:
    """The monitor saw the server with that image."""
    return lambda document: (document["status"].get("observed") or {}).get("image") == image


def observed_error(document: Document) -> bool:
    return bool((document["status"].get("observed") or {}).get("errored"))


def _word(entry: Mapping[str, Any]) -> str:
    word = re.sub(r"\s", "", str(entry["verb"]))
    outcome = str(entry.get("outcome"))
    # A write whose answer was never seen is one all the same; what it made is adopted and not made again.
    return word if outcome in ("ok", "unknown") else f"{word} {outcome}"

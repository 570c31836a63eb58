"""What one pass read: a frozen value that decisions are made from, and nothing else.

A hidden field is None (unknown), never a default that would allow a create or a delete.
"""

from dataclasses import dataclass, replace
from uuid import UUID

from roadstead.reconcile.decision import Code
from roadstead.reconcile.kind import Problem

Pair = tuple[str, str | None]
"""(network in canonical form, MAC address in lower case or None for the port's own)."""

MOVING = frozenset({"attaching", "reserved", "detaching"})
"""States of a volume that is on its way onto a server or off one.  While it goes on, Cinder shows no row of the attachment."""

ATTACHABLE = frozenset({"ACTIVE", "PAUSED", "SHUTOFF", "VERIFY_RESIZE", "SHELVED", "SHELVED_OFFLOADED"})
"""States in which Nova takes volumes on and off."""


@dataclass(frozen=True)
class ServerSeen:
    """Our server, as its `serverID` metadata proves.

    status: upper case, "" when not told.  task: None for none (a cloud that hides it shows none too).  launched: whether it
    ever booted, None when the cloud hides that.  image: the reference if it is a UUID, else None.
    """

    id: str
    status: str
    task: str | None
    launched: bool | None
    image: str | None

    @property
    def rebuilding(self) -> bool:
        """A rebuild is active, its substates of later releases included (INV-087)."""
        return (self.task or "").startswith("rebuild") or self.status == "REBUILD"

    @property
    def busy(self) -> bool:
        """Any task runs."""
        return bool(self.task) or self.status == "REBUILD"

    @property
    def going(self) -> bool:
        """Being deleted, by whomever."""
        return self.task in ("deleting", "soft-deleting") or self.status in ("DELETED", "SOFT_DELETED")

    @property
    def attachable(self) -> bool:
        return self.status in ATTACHABLE and not self.busy


@dataclass(frozen=True)
class PortSeen:
    """The server's port.  device_id: "" or the server that uses it.  In pairs the port's own MAC counts as none."""

    id: str
    network_id: str
    address: str | None
    groups: frozenset[str]
    pairs: frozenset[Pair]
    device_id: str
    mac: str


@dataclass(frozen=True)
class AddressSeen:
    """A floating IP on the port, or one that was made for it and lost it (deletion)."""

    id: str
    address: str


@dataclass(frozen=True)
class VolumeSeen:
    """A volume that the spec, a row of the status or a claim ties to the server.

    ready: its owner says Provisioned.  claimed: its owner says that this server claims it.  status: Cinder's, None when no
    volume of the name is there or it was not looked up.  servers: Nova ids it is attached to.  failure: why this pass could go
    no further with it, a code and a text.  asked: a detach was sent in this pass.
    """

    id: str
    ready: bool = False
    claimed: bool = False
    exists: bool = True
    cloud_id: str | None = None
    status: str | None = None
    servers: frozenset[str] = frozenset()
    device: str | None = None
    failure: tuple[Code, str] | None = None
    asked: bool = False

    def on(self, server: ServerSeen | None) -> bool:
        return server is not None and server.id in self.servers

    @property
    def detaching(self) -> bool:
        return self.asked or self.status == "detaching"

    def off(self, server: ServerSeen | None) -> bool:
        """Proved off the server: without one, or with no row on it while nothing moves the volume."""
        return server is None or not (self.on(server) or self.asked or self.status in MOVING)


@dataclass(frozen=True)
class Seen:
    """One observation.

    network_id: None when the cloud has no such network (yet).  groups: ids of the wanted security groups in the cloud, None
    where there is none yet.  taken: another server uses the port.  refusals: what the inventory has against the spec, None
    while it is not loaded.  misplaced: security groups of another network.  attempts: creates of a server that never boots.
    """

    server: ServerSeen | None = None
    port: PortSeen | None = None
    addresses: tuple[AddressSeen, ...] = ()
    network_id: str | None = None
    groups: tuple[str | None, ...] = ()
    taken: bool = False
    refusals: tuple[Problem, ...] | None = ()
    misplaced: tuple[Problem, ...] = ()
    volumes: tuple[VolumeSeen, ...] = ()
    attempts: int = 3

    def volume(self, ident: str) -> VolumeSeen | None:
        return next((v for v in self.volumes if v.id == ident), None)

    def with_volume(self, changed: VolumeSeen) -> "Seen":
        return replace(self, volumes=tuple(changed if v.id == changed.id else v for v in self.volumes))

    def without_volume(self, ident: str) -> "Seen":
        return replace(self, volumes=tuple(v for v in self.volumes if v.id != ident))


def uuid_or_none(value: object) -> str | None:
    """The UUID in canonical form, None for anything else: an image reference may be a dict, a text or missing."""
    if not isinstance(value, str):
        return None
    try:
        return str(UUID(value))
    except ValueError:
        return None

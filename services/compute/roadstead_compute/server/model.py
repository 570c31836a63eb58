"""Spec and status of a server (resources.md section 5).

A server lives on exactly one network; its id is made from that network's id and its name, so a name is used once on a
network.  Times are RFC 3339 texts in UTC, addresses IPv4 texts.
"""

from ipaddress import IPv4Network
from typing import Annotated, Literal
from uuid import UUID, uuid5

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from roadstead.reconcile.kind import Metadata
from roadstead.region import Part


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise ValueError("must be a UUID") from None


def _network(text: str) -> str:
    try:
        return str(IPv4Network(text))
    except ValueError:
        raise ValueError(
            "must be an IPv4 address or network without host bits, such as 192.0.2.0/24"
        ) from None


def _mac(text: str) -> str:
    digits = text.lower().replace("-", ":").split(":")
    if len(digits) != 6 or any(len(d) != 2 or not set(d) <= set("0123456789abcdef") for d in digits):
        raise ValueError("must be a MAC address such as fa:16:3e:00:00:01")
    return ":".join(digits)


Uuid = Annotated[str, AfterValidator(_uuid)]
Cidr = Annotated[str, AfterValidator(_network)]
Mac = Annotated[str, AfterValidator(_mac)]


class Ref(Part):
    """Another resource by its id."""

    id: Uuid


class AddressPair(Part):
    """An address range, and optionally a MAC address, that the server may send from beside its own."""

    cidr: Cidr
    macAddress: Mac | None = None


class Nic(Part):
    """The network a server is on.  The id cannot change, the pairs can."""

    id: Uuid
    allowedAddressPairs: list[AddressPair] = Field(default_factory=list)


class PublicIp(Part):
    enabled: bool = False


class ServerSpec(Part):
    """What is wanted.  userData is base64; a changed image is a rebuild, which loses the root disk.

    image may be missing in what was stored long ago; a pass over such a server parks (row R1).
    """

    flavorID: Annotated[str, Field(min_length=1, max_length=255)]
    image: Ref | None = None
    networks: Annotated[list[Nic], Field(min_length=1)]
    securityGroups: list[Ref] = Field(default_factory=list)
    publicIPAllocation: PublicIp = Field(default_factory=PublicIp)
    volumes: list[Ref] = Field(default_factory=list)
    sshCertificateAuthorityID: Uuid | None = None
    sshInjection: Literal["ca", "identityKeypair", "none"] | None = None
    userData: str | None = None
    infrastructureRef: str | None = None
    tags: list[dict[str, str]] | None = None
    pause: bool = False

    @property
    def nic(self) -> Nic:
        return self.networks[0]

    @property
    def injection(self) -> str:
        """How a key gets into the guest: the field, else `ca` with an authority, else `identityKeypair`."""
        if self.sshInjection is not None:
            return self.sshInjection
        return "ca" if self.sshCertificateAuthorityID else "identityKeypair"


class Row(Part):
    """One attachment (resources.md section 7); device is the guest's name of it, where the cloud tells one."""

    id: str
    provisioningStatus: Literal["Provisioning", "Provisioned", "Errored", "Deprovisioning"]
    device: str | None = None
    message: str = ""


class Observed(Part):
    """The monitor's accepted facts, and what was derived from them.

    generation: of the spec that was known at the read.  image: the last readable reference, kept over unreadable reads and
    absence.  errored: exactly when the cloud said ERROR.  absent, readable: of the last read (a change of either is a wake of
    its own).  The other facts stand here so that the monitor can tell what is new; active and healthy are the reasons that
    followed, so that it sees when a pass stamped others since.
    """

    generation: int = 0
    image: str | None = None
    errored: bool = False
    absent: bool = False
    readable: bool = True
    novaStatus: str | None = None
    taskState: str | None = None
    powerState: int | None = None
    active: str | None = None
    healthy: str | None = None


class ServerStatus(Part):
    """How it stands.  Writers: resources.md section 16."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    observed: Observed | None = None
    launchedAt: str | None = None
    provisionedAt: str | None = None
    scheduledAt: str | None = None
    macAddress: str | None = None
    privateIP: str | None = None
    publicIP: str | None = None
    providerCreateFailures: int = 0
    providerCreateRetrying: bool = False
    volumes: list[Row] = Field(default_factory=list)


def server_id(network_id: str, name: str) -> str:
    """The id of the server named `name` on that network."""
    return str(uuid5(UUID(network_id), name))


def id_of(metadata: Metadata, spec: BaseModel) -> str | None:
    """The one id that this name may have; ingest refuses another and names this one (REF-037)."""
    assert isinstance(spec, ServerSpec)
    return server_id(spec.nic.id, metadata.name)

"""The Region's spec, which every service reads from its STATUS (resources.md section 1).

It stands in the common library because it is a message between services; the Region kind itself is the identity service's.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Part(BaseModel):
    """A piece of a spec: unknown fields are kept, ingest names them in a warning."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)


class Ids(Part):
    ids: list[str] | None = None


class ExternalNetworkSelector(Part):
    """ids: must be in the list; tags: must carry all.  Absent: every external network."""

    ids: list[str] | None = None
    tags: list[str] | None = None


class Gpu(Part):
    vendor: Literal["NVIDIA", "AMD"]
    model: str
    physicalCount: Annotated[int, Field(ge=1)] = 1
    logicalCount: Annotated[int, Field(ge=1)] = 1
    memory: str | int | None = None  # a quantity, per logical GPU


class Cpu(Part):
    architecture: Literal["x86_64", "aarch64"] | None = None
    count: Annotated[int, Field(ge=1)] | None = None
    family: str | None = None


class FlavorMetadata(Part):
    id: str
    baremetal: bool = False
    pinnedOnly: bool = False
    cpu: Cpu | None = None
    memory: str | int | None = None  # a quantity; overrides Nova's RAM
    gpu: Gpu | None = None


class Flavors(Part):
    selector: Ids | None = None
    metadata: list[FlavorMetadata] | None = None


class PlacementPreflight(Part):
    enabled: bool = False
    requiredTraits: list[str] = Field(default_factory=list)


class Compute(Part):
    serverGroupPolicy: str = "soft-anti-affinity"
    placementPreflight: PlacementPreflight | None = None
    flavors: Flavors | None = None


class ImageSelector(Part):
    signingKey: str | None = None


class Image(Part):
    selector: ImageSelector | None = None


class Segment(Part):
    startId: Annotated[int, Field(ge=1, le=4094)]
    endId: Annotated[int, Field(ge=1, le=4094)]


class Vlan(Part):
    segments: Annotated[list[Segment], Field(min_length=1)] | None = None


class ProviderNetworks(Part):
    physicalNetwork: str
    vlan: Vlan | None = None


class ExternalNetworks(Part):
    selector: ExternalNetworkSelector | None = None


class NetworkPart(Part):
    externalNetworks: ExternalNetworks | None = None
    providerNetworks: ProviderNetworks | None = None


class Performance(Part):
    """Caps, not guarantees."""

    maxIOPS: Annotated[int, Field(ge=1)] | None = None
    maxThroughputMiBps: Annotated[int, Field(ge=1)] | None = None


class SupportedFlavors(Part):
    selector: Ids | None = None


class VolumeClassMetadata(Part):
    id: str
    media: Literal["hdd", "ssd", "nvme", ""] = ""
    performance: Performance | None = None
    encrypted: bool = False
    minSize: str | int | None = None
    maxSize: str | int | None = None
    supportedFlavors: SupportedFlavors | None = None


class VolumeClasses(Part):
    """selector absent or its ids empty: nothing is exported."""

    selector: Ids | None = None
    metadata: list[VolumeClassMetadata] | None = None


class BlockStorage(Part):
    volumeClasses: VolumeClasses | None = None


class LoadBalancerPart(Part):
    algorithm: str = "ROUND_ROBIN"


class IdentityPart(Part):
    clusterRoles: list[str] | None = None

    @property
    def roles(self) -> list[str]:
        """The roles in effect; an empty list means the default."""
        return self.clusterRoles or ["member", "load-balancer_member"]


class SecretRef(Part):
    namespace: str = ""
    name: str


class OpenStack(Part):
    """How to reach and use one cloud.  regionName is Keystone's region, None: the catalog's only one."""

    endpoint: str
    serviceAccountSecret: SecretRef
    regionName: str | None = None
    defaultArchitecture: Literal["x86_64", "aarch64"] = "x86_64"
    identity: IdentityPart = Field(default_factory=IdentityPart)
    compute: Compute = Field(default_factory=Compute)
    image: Image = Field(default_factory=Image)
    network: NetworkPart = Field(default_factory=NetworkPart)
    blockStorage: BlockStorage = Field(default_factory=BlockStorage)
    loadBalancer: LoadBalancerPart = Field(default_factory=LoadBalancerPart)


class Organization(Part):
    id: str


class Security(Part):
    organizations: list[Organization] | None = None


class RegionSpec(Part):
    """spec of kind region."""

    provider: Annotated[str, Field(max_length=63)]
    tags: list[dict[str, str]] | None = None
    security: Security | None = None
    openstack: OpenStack | None = None
    pause: bool = False

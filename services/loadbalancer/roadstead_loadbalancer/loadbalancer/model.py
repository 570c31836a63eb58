"""A LoadBalancer: listeners on one virtual address in a network (resources.md section 9)."""

from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field

DEFAULT_IDLE = 60


def _address(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except ValueError:
        raise ValueError("must be an IPv4 address such as 192.0.2.10") from None


def _cidr(text: str) -> str:
    try:
        return str(IPv4Network(text, strict=False))
    except (AddressValueError, NetmaskValueError, ValueError):
        raise ValueError("must be an IPv4 CIDR such as 192.0.2.0/24") from None


Address = Annotated[str, AfterValidator(_address)]
Cidr = Annotated[str, AfterValidator(_cidr)]
PortNumber = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[int, Field(ge=1, le=300)]
Threshold = Annotated[int, Field(ge=1, le=10)]


class Part(BaseModel):
    """A piece of a spec or status; unknown fields are kept."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)


class Member(Part):
    """Where connections go; weights and admin states are not offered."""

    address: Address
    port: PortNumber


class HealthCheck(Part):
    """interval and timeout in seconds; so many good answers make a member healthy, so many bad ones unhealthy."""

    intervalSeconds: Seconds = 10
    timeoutSeconds: Seconds = 5
    healthyThreshold: Threshold = 2
    unhealthyThreshold: Threshold = 2


class Pool(Part):
    proxyProtocolV2: bool = False
    members: list[Member] = Field(default_factory=list)
    healthCheck: HealthCheck | None = None


class Listener(Part):
    """name is its key: protocol, port and proxyProtocolV2 of a name never change.  allowedCIDRs empty: open to all.
    idleTimeoutSeconds: tcp only, there 60 when left out."""

    name: Annotated[str, Field(max_length=63, pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")]
    protocol: Literal["tcp", "udp"]
    port: PortNumber
    allowedCIDRs: list[Cidr] | None = None
    idleTimeoutSeconds: Annotated[int, Field(ge=1, le=86400)] | None = None
    pool: Pool = Field(default_factory=Pool)


class LoadBalancerSpec(Part):
    """requestedVIPAddress (also spelled vipAddress) is chosen once; publicIP may be switched on and off."""

    requestedVIPAddress: Address | None = Field(
        default=None, validation_alias=AliasChoices("requestedVIPAddress", "vipAddress")
    )
    publicIP: bool = False
    listeners: Annotated[list[Listener], Field(min_length=1)]
    tags: list[dict[str, str]] | None = None
    pause: bool = False


class Refusal(Part):
    """wish: `generation:algorithm`, "" for a create that failed for another reason; at: when the pass that asked began.

    what: verb and name of the part whose change was refused, "" for the whole load balancer.  code, text: as the failed create was
    told, while its port is waited for.
    """

    wish: str
    at: str
    what: str = ""
    code: str = ""
    text: str = ""


class LoadBalancerStatus(Part):
    """vipAddress from the first moment that Octavia tells it until the load balancer is gone; publicIP while there is one.

    refused: the wish that Octavia's provider said it cannot do, so that no pass asks for it again (OC-10); forgotten when
    another wish is asked for.  differs: the part that was first found missing; a second look has to agree.
    """

    vipAddress: str | None = None
    publicIP: str | None = None
    refused: Refusal | None = None
    differs: str | None = None

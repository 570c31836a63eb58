"""A SecurityGroup: the whole list of what may pass, in an identity's project (resources.md section 4)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

DESCRIPTION = "Security group of the region service; it is managed, changes by hand are lost."

PortNumber = Annotated[int, Field(ge=1, le=65535)]


class Part(BaseModel):
    """A piece of a spec or status; unknown fields are kept."""

    model_config = ConfigDict(extra="allow")


class PortRange(Part):
    """Both ends included."""

    start: PortNumber
    end: PortNumber


class Port(Part):
    """Exactly one of both."""

    number: PortNumber | None = None
    range: PortRange | None = None


class Rule(Part):
    """prefix (also spelled cidr): IPv4 CIDR of the other side, absent: everybody.  port absent: all ports."""

    direction: Literal["ingress", "egress"]
    protocol: Literal["any", "icmp", "tcp", "udp", "vrrp"]
    port: Port | None = None
    prefix: str | None = None
    cidr: str | None = None


class SecurityGroupSpec(Part):
    """rules replace those before as a whole."""

    rules: Annotated[list[Rule], Field(min_length=1)]
    tags: list[dict[str, str]] | None = None
    pause: bool = False


class SecurityGroupStatus(Part):
    """Nothing but the conditions."""


@dataclass(frozen=True)
class RuleKey:
    """What makes two IPv4 rules the same: protocol by number (None: any), ports (None: all), prefix in canonical form."""

    direction: str
    protocol: int | str | None
    low: int | None
    high: int | None
    prefix: str


@dataclass(frozen=True)
class CloudRule:
    """key None: a rule of a sort that we never make.  implicit: one that Neutron made by itself."""

    id: str
    key: RuleKey | None
    implicit: bool = False


@dataclass(frozen=True)
class SecurityGroupSeen:
    """group: its id; None: absent.  foreign: network or identity are another tenant's.  mismatch: the network lives in
    another identity than the group names."""

    group: str | None = None
    rules: tuple[CloudRule, ...] = ()
    foreign: bool = False
    mismatch: bool = False

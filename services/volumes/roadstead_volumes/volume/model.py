"""A Volume: storage of one class and a whole number of GiB in an identity's project (resources.md section 6)."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from roadstead.reconcile.kind import Problem


class Part(BaseModel):
    """A piece of a spec or status; unknown fields are kept."""

    model_config = ConfigDict(extra="allow")


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise ValueError("must be a UUID") from None


class VolumeSpec(Part):
    """networkID anchors region, identity and project; volumeClassID is the Cinder type's id; size a quantity of whole GiB.

    None of the three can change.  Who claims the volume is no wish of its owner: it stands in the status.
    """

    networkID: Annotated[str, AfterValidator(_uuid)]
    volumeClassID: Annotated[str, Field(min_length=1, max_length=255)]
    size: str | int
    tags: list[dict[str, str]] | None = None
    pause: bool = False


class ClaimRef(Part):
    """Who holds the volume; kind is always Server."""

    kind: str
    id: str


class VolumeStatus(Part):
    """claimRef: the one claimant.  It is kept here, and not in the spec, because the volumes service alone writes it (through
    `rpc.volumes.claim` and `.release`); a spec message therefore never takes or loses a claim."""

    claimRef: ClaimRef | None = None


@dataclass(frozen=True)
class CloudVolume:
    """The Cinder volume of exactly our name.  status in lower case, whatever it says."""

    id: str
    status: str


@dataclass(frozen=True)
class VolumeSeen:
    """found None: a complete list has none.

    refusals: what the offered classes have against a first create, None while they are not known.  foreign: network or identity are another tenant's.
    mismatch: the network lives in another identity than the volume names.  no_surface: the region offers no block storage.
    """

    found: CloudVolume | None = None
    refusals: tuple[Problem, ...] | None = ()
    foreign: bool = False
    mismatch: bool = False
    no_surface: bool = False

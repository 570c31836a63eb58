"""An Identity: one tenant's service principal in one region.  Its record is the only provider state that is kept.

Record (resources.md section 2), sealed, every field written once: projectID, userID, password, applicationCredentialID,
applicationCredentialSecret, cloud, cloudConfig, serverGroupID, sshKeyName, sshPrivateKey.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from pydantic import BaseModel, ConfigDict

MANAGER = "manager"
CLOUD = "cloud"
COMPUTE, NETWORK, VOLUMES = "compute", "network", "block-storage"

UNLIMITED: Mapping[str, tuple[str, ...]] = {
    COMPUTE: (
        "instances",
        "cores",
        "ram",
        "key_pairs",
        "metadata_items",
        "server_groups",
        "server_group_members",
    ),
    NETWORK: (
        "security_group",
        "security_group_rule",
        "floatingip",
        "network",
        "port",
        "rbac_policy",
        "router",
        "subnet",
        "subnetpool",
    ),
    VOLUMES: (
        "volumes",
        "gigabytes",
        "snapshots",
        "backups",
        "backup_gigabytes",
        "per_volume_gigabytes",
        "groups",
    ),
}
"""Quota keys that are set to -1, by service, in the order of writing (resources.md section 13)."""


class IdentitySpec(BaseModel):
    """provider is the Region's; tags are the user's own."""

    model_config = ConfigDict(extra="allow")

    provider: str = "openstack"
    tags: list[dict[str, str]] | None = None
    pause: bool = False


class IdentityStatus(BaseModel):
    """Ids of what was made, no secret.

    projectReady: absent until a project is asked for, False while its id is not known, True from then on.  Absent
    proves that nothing was ever made; every other service's deletions rely on it (behaviour.md section 4.2).
    """

    model_config = ConfigDict(extra="allow")

    projectReady: bool | None = None
    projectId: str | None = None
    userId: str | None = None
    serverGroupId: str | None = None
    sshKeyName: str | None = None


class Unread(Enum):
    """Nobody looked yet: neither there nor absent."""

    UNREAD = "unread"


UNREAD: Final = Unread.UNREAD

Look = str | None | Unread
"""The id of what a look-up found, None when a complete list lacks it, UNREAD when nobody looked."""


@dataclass(frozen=True)
class Place:
    """What the Region says about its identities.  policy: of the server group."""

    visible: bool
    cluster_roles: tuple[str, ...]
    policy: str
    region_user: str


@dataclass(frozen=True)
class IdentitySeen:
    """What a creating pass found; whatever the record already holds is not looked for.

    place None: the Region is not known.  roles: Keystone's role ids by name.  foreign_project: one of our name without our
    tags.  grants: (user id, role id) on the project; None: not read.  quotas: keys to be written, by service; None: not read.
    """

    place: Place | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    project: Look = UNREAD
    foreign_project: bool = False
    grants: frozenset[tuple[str, str]] | None = None
    quotas: Mapping[str, tuple[str, ...]] | None = None
    user: Look = UNREAD
    credential: Look = UNREAD
    server_group: Look = UNREAD
    keypair: Look = UNREAD

    def missing_roles(self) -> tuple[str, ...]:
        """Roles that the region asks for and Keystone does not have."""
        wanted = (MANAGER, *self.place.cluster_roles) if self.place else ()
        return tuple(name for name in wanted if name not in self.roles)

    def ungranted(self, user: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the roles that the user does not hold on the project; all of them while the grants are not read."""
        held = self.grants or frozenset()
        return tuple(name for name in names if (user, self.roles.get(name, "")) not in held)

    @property
    def managed(self) -> bool:
        """The region's user holds manager on the project, so that it can act inside it."""
        return self.place is not None and not self.ungranted(self.place.region_user, (MANAGER,))


@dataclass(frozen=True)
class IdentityLeft:
    """What a deleting pass found; None: absent, or out of reach for ever because its owner is gone.

    default_group: the security group that Neutron made by itself.
    """

    keypair: str | None = None
    server_group: str | None = None
    user: str | None = None
    default_group: str | None = None
    project: str | None = None

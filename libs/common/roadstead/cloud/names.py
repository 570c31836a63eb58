"""Names, tags and metadata of everything we make in a cloud, for the create call and the look-up alike.

They are the only link between a resource and its cloud objects, so they never change: tests hold them against golden
values (INV-137).  Sources: behaviour.md sections 4.1, 5, 6.2, 13.1, 14, 18 and 15.3.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

NAME_LIMIT = 255
KEYPAIR_NAME = "unikorn-openstack-provider"

_TAG_NAME = re.compile(r"([a-z0-9-]+)\.[^/]+/([a-z0-9-]+)")


def fit(text: str, limit: int = NAME_LIMIT) -> str:
    """The text, or when it is longer than `limit` characters its beginning and a hash of the whole."""
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[: limit - 17]}-{digest}"


# ---------------------------------------------------------------- names


def identity_name(identity_id: str) -> str:
    """Project, user, application credential and server group of an identity."""
    return f"unikorn-identity-{identity_id}"


def network_name(network_id: str) -> str:
    """Network, subnet and router of a network."""
    return f"network-{network_id}"


def security_group_name(group_id: str) -> str:
    return f"securitygroup-{group_id}"


def server_name(display_name: str) -> str:
    """A server bears its display name, which cannot change; its id stands in the metadata."""
    return fit(display_name)


def port_name(server_id: str) -> str:
    """The one port of a server."""
    return f"server-{server_id}"


def volume_name(volume_id: str) -> str:
    return f"volume-{volume_id}"


def loadbalancer_name(loadbalancer_id: str) -> str:
    return f"lb-{loadbalancer_id}"


def loadbalancer_prefix(loadbalancer_id: str) -> str:
    """What the names of all parts of a load balancer begin with; ids have one length, so no other's do."""
    return f"lb-{loadbalancer_id}-"


def listener_name(loadbalancer_id: str, listener: str) -> str:
    return fit(f"{loadbalancer_prefix(loadbalancer_id)}{listener}-listener")


def pool_name(loadbalancer_id: str, listener: str) -> str:
    return fit(f"{loadbalancer_prefix(loadbalancer_id)}{listener}-pool")


def monitor_name(loadbalancer_id: str, listener: str) -> str:
    return fit(f"{loadbalancer_prefix(loadbalancer_id)}{listener}-monitor")


# ---------------------------------------------------------------- tags and metadata


def project_tags(organization_id: str, project_id: str) -> list[str]:
    """Tags of an identity's Keystone project; accounting reads them (INV-005)."""
    return [f"organization={organization_id}", f"project={project_id}"]


def metadata_key(tag_name: str) -> str | None:
    """The metadata key of a user's tag `{service}.{domain}/{local}`, None for a tag of any other shape.

    `service` and `local` are lower-case letters, digits and hyphens; hyphens of `local` become underscores.
    """
    match = _TAG_NAME.fullmatch(tag_name)
    return fit(f"{match[1]}:{match[2].replace('-', '_')}") if match else None


def user_metadata(tags: Iterable[Mapping[str, str]] | None) -> dict[str, str]:
    """Metadata of user tags `{name, value}`; tags of another shape are left out silently (REF-053)."""
    found: dict[str, str] = {}
    for tag in tags or ():
        key = metadata_key(tag["name"])
        if key is not None:
            found[key] = fit(tag["value"])
    return found


def server_metadata(
    tags: Iterable[Mapping[str, str]] | None,
    *,
    server_id: str,
    region_id: str,
    organization_id: str,
    project_id: str,
) -> dict[str, str]:
    """User tags, then our namespaced keys, then the four old ones, which are frozen; later ones win (INV-134, 136)."""
    return {
        **user_metadata(tags),
        "region:server_id": server_id,
        "region:region_id": region_id,
        "identity:organization_id": organization_id,
        "identity:project_id": project_id,
        "serverID": server_id,
        "organizationID": organization_id,
        "projectID": project_id,
        "regionID": region_id,
    }


def volume_metadata(
    tags: Iterable[Mapping[str, str]] | None,
    *,
    volume_id: str,
    network_id: str,
    region_id: str,
    identity_id: str,
    organization_id: str,
    project_id: str,
) -> dict[str, str]:
    """User tags, then our namespaced keys, which win (INV-152, 153); no old keys (INV-154)."""
    return {
        **user_metadata(tags),
        "identity:organization_id": organization_id,
        "identity:project_id": project_id,
        "region:identity_id": identity_id,
        "region:region_id": region_id,
        "region:network_id": network_id,
        "region:volume_id": volume_id,
    }


# ---------------------------------------------------------------- ownership


def bears_server(server_id: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a Nova server is this one: by its `serverID` metadata, never by its name."""
    return lambda found: (found.get("metadata") or {}).get("serverID") == server_id

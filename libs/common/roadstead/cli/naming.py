"""Names in files become ids.

One rule: in a field that holds the id of another resource, a word that is no UUID is that resource's name.  Which fields those are
stands in one table.  A resource of the file itself comes before one that exists already.

A resource's own id: the one given; for a server the one its network and name fix; else the id of the resource that has this name
in the same place; else a UUIDv5 of place, project, kind and name.  The place is the network where the resource has one, else the
region.  So applying a file twice edits and never makes a second one.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

from roadstead.cli.context import is_uuid
from roadstead.cli.documents import Document
from roadstead.cli.failures import UserError
from roadstead.cli.kinds import has_project

Path = tuple[str | int, ...]

_EVERYWHERE: tuple[tuple[tuple[str, ...], str], ...] = (
    (("metadata", "identityId"), "identity"),
    (("metadata", "networkId"), "network"),
)
# `*` stands for every item of a list.
REFERENCES: Mapping[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    "server": (
        (("spec", "networks", "*", "id"), "network"),
        (("spec", "securityGroups", "*", "id"), "securitygroup"),
        (("spec", "volumes", "*", "id"), "volume"),
        (("spec", "image", "id"), "image"),
        (("spec", "flavorID"), "flavor"),
        (("spec", "sshCertificateAuthorityID"), "sshcertificateauthority"),
    ),
    "volume": (
        (("spec", "networkID"), "network"),
        (("spec", "volumeClassID"), "volumeclass"),
    ),
    "region": (
        (("spec", "openstack", "network", "externalNetworks", "selector", "ids", "*"), "externalnetwork"),
        (("spec", "openstack", "compute", "flavors", "selector", "ids", "*"), "flavor"),
        (("spec", "openstack", "blockStorage", "volumeClasses", "selector", "ids", "*"), "volumeclass"),
    ),
}


def references(document: Document) -> Iterator[tuple[Path, str, str]]:
    """(where, kind, word) of every field that names another resource, ids included."""
    whole = {"metadata": document.metadata, "spec": document.spec}
    for pattern, kind in (*_EVERYWHERE, *REFERENCES.get(document.kind, ())):
        for path, value in _matches(whole, pattern):
            if isinstance(value, str) and value:
                yield path, kind, value


def _matches(value: Any, pattern: Sequence[str], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if not pattern:
        yield path, value
        return
    head, rest = pattern[0], pattern[1:]
    if head == "*":
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _matches(item, rest, (*path, index))
    elif isinstance(value, Mapping) and head in value:
        yield from _matches(value[head], rest, (*path, head))


def replaced(document: Document, values: Mapping[Path, Any]) -> Document:
    """The document with other values in those places."""
    whole: dict[str, Any] = {"metadata": dict(document.metadata), "spec": copy.deepcopy(dict(document.spec))}
    for path, value in values.items():
        place: Any = whole
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
    return document.with_parts(whole["metadata"], whole["spec"])


def member_servers(document: Document) -> Iterator[tuple[Path, str]]:
    """Members of a load balancer's pools that name a server instead of an address: (where, the server's name or id)."""
    if document.kind != "loadbalancer":
        return
    pattern = ("spec", "listeners", "*", "pool", "members", "*")
    for path, member in _matches({"spec": document.spec}, pattern):
        if isinstance(member, Mapping) and "server" in member:
            if "address" in member:
                raise UserError(
                    f"{document.where}: {dotted(path)} has both server and address; leave one out", 2
                )
            yield path, str(member["server"])


def with_addresses(document: Document, addresses: Mapping[str, str]) -> Document:
    """Each `server: WORD` of the members as the address of that server."""
    values: dict[Path, Any] = {}
    for path, word in member_servers(document):
        member = dict(_value_at(document, path))
        member.pop("server")
        values[path] = {"address": addresses[word], **member}
    return replaced(document, values)


def _value_at(document: Document, path: Path) -> Any:
    value: Any = {"metadata": document.metadata, "spec": document.spec}
    for step in path:
        value = value[step]
    return value


def dotted(path: Path) -> str:
    """spec.networks[0].id"""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def network_of(document: Document) -> str | None:
    """The network a resolved document hangs on."""
    metadata, spec = document.metadata, document.spec
    if isinstance(metadata.get("networkId"), str):
        return str(metadata["networkId"])
    if isinstance(spec.get("networkID"), str):
        return str(spec["networkID"])
    networks = spec.get("networks")
    if isinstance(networks, list) and networks and isinstance(networks[0], Mapping):
        found = networks[0].get("id")
        return found if isinstance(found, str) else None
    return None


def id_for(kind: str, name: str, *, region: str, project: str | None, network: str | None) -> str:
    """The id of a resource that does not exist yet; network: where it hangs on one."""
    if kind == "server":
        if network is None or not is_uuid(network):
            raise UserError(f"the server {name} names no network; set spec.networks[0].id", 2)
        return str(uuid5(UUID(network), name))
    place = network if network and is_uuid(network) else region
    return str(uuid5(UUID(place), f"{project if has_project(kind) else '_'}/{kind}/{name}"))


def hidden_identity(network: str) -> str:
    """The id of the identity that a network brings along when it names none (events.md)."""
    return str(uuid5(UUID(network), "identity"))

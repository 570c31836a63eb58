"""The identity that a network brings along when it names none: made before it, gone after it (architecture.md section 3.9)."""

from uuid import UUID, uuid5

from roadstead.reconcile.kind import Admission, Metadata, Publication, Resource
from roadstead.subjects import Key
from roadstead_network.network.model import NetworkSpec, NetworkStatus

NAME = "networkv2-service-principal"


def hidden_identity(network_id: str) -> str:
    """Its id, which follows from the network's, so that the same network never brings two."""
    return str(uuid5(UUID(network_id), "identity"))


def admit(key: Key, metadata: Metadata, _spec: NetworkSpec) -> Admission:
    """A network without identity gets the hidden one.  One that names it already is told nothing new, but the identity is
    published again: the network may be a next life, whose last identity went with it."""
    ident = hidden_identity(key.id)
    if metadata.identityId not in (None, "", ident):
        return Admission()
    body = {
        "metadata": {"name": NAME, "organizationId": metadata.organizationId, "projectId": key.project},
        "spec": {"provider": "openstack"},
    }
    return Admission(
        {"identityId": ident}, (Publication(Key(key.region, key.project, "identity", ident), body),)
    )


def on_gone(resource: Resource[NetworkSpec, NetworkStatus]) -> tuple[Publication, ...]:
    """The hidden identity goes with its network; one that somebody made stays (REF-024)."""
    ident = hidden_identity(resource.key.id)
    if resource.metadata.identityId != ident:
        return ()
    key = Key(resource.key.region, resource.key.project, "identity", ident)
    return (Publication(key, {"delete": True}),)

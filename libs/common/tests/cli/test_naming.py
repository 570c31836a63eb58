"""Names become ids: which fields hold one, what replaces it, and the ids of what does not exist yet."""

import uuid

import pytest

from roadstead.cli.documents import Document
from roadstead.cli.failures import UserError
from roadstead.cli.naming import (
    dotted,
    hidden_identity,
    id_for,
    member_servers,
    references,
    replaced,
    with_addresses,
)

REGION = "7377fb11-e0f1-53a2-b166-13fba73ab5a5"
NETWORK = "71b9f21c-972a-508c-8e8f-024510765378"
SERVER = Document(
    "server",
    {"name": "web", "identityId": "me"},
    {
        "flavorID": "small",
        "image": {"id": "debian"},
        "networks": [{"id": "net"}],
        "securityGroups": [{"id": "a"}, {"id": "b"}],
        "volumes": [{"id": "disk"}],
    },
    "f",
)
BALANCER = Document(
    "loadbalancer",
    {"name": "lb", "networkId": "net"},
    {
        "listeners": [
            {"pool": {"members": [{"server": "web", "port": 80}, {"address": "10.0.0.9", "port": 81}]}}
        ]
    },
    "f",
)


def test_every_field_of_a_server_that_holds_an_id_is_known() -> None:
    found = {dotted(path): (kind, word) for path, kind, word in references(SERVER)}
    assert found == {
        "metadata.identityId": ("identity", "me"),
        "spec.networks[0].id": ("network", "net"),
        "spec.securityGroups[0].id": ("securitygroup", "a"),
        "spec.securityGroups[1].id": ("securitygroup", "b"),
        "spec.volumes[0].id": ("volume", "disk"),
        "spec.image.id": ("image", "debian"),
        "spec.flavorID": ("flavor", "small"),
    }


def test_ids_take_the_places_of_words_and_the_file_s_document_stays_as_it_was() -> None:
    fresh = replaced(SERVER, {path: f"id of {word}" for path, _, word in references(SERVER)})
    assert fresh.spec["securityGroups"] == [{"id": "id of a"}, {"id": "id of b"}]
    assert fresh.metadata["identityId"] == "id of me"
    assert SERVER.spec["securityGroups"] == [{"id": "a"}, {"id": "b"}]


def test_a_member_may_name_a_server_and_gets_its_address() -> None:
    ((path, word),) = member_servers(BALANCER)
    assert (dotted(path), word) == ("spec.listeners[0].pool.members[0]", "web")
    members = with_addresses(BALANCER, {"web": "10.0.0.5"}).spec["listeners"][0]["pool"]["members"]
    assert members == [{"address": "10.0.0.5", "port": 80}, {"address": "10.0.0.9", "port": 81}]


def test_a_member_with_both_server_and_address_is_refused() -> None:
    spec = {"listeners": [{"pool": {"members": [{"server": "web", "address": "10.0.0.5", "port": 80}]}}]}
    with pytest.raises(UserError, match="both server and address"):
        list(member_servers(Document("loadbalancer", {"name": "lb"}, spec, "f")))


def test_ref_037_a_server_s_id_is_made_of_its_network_and_name() -> None:
    made = id_for("server", "web-1", region=REGION, project="p", network=NETWORK)
    assert made == str(uuid.uuid5(uuid.UUID(NETWORK), "web-1"))
    with pytest.raises(UserError, match="names no network"):
        id_for("server", "web-1", region=REGION, project="p", network=None)


def test_an_id_follows_from_place_project_kind_and_name_and_from_nothing_else() -> None:
    def made(kind: str = "volume", name: str = "a", project: str = "p", network: str | None = None) -> str:
        return id_for(kind, name, region=REGION, project=project, network=network)

    assert made() == made()
    assert len({made(), made(kind="network"), made(name="b"), made(project="q"), made(network=NETWORK)}) == 5


def test_the_hidden_identity_is_the_one_that_the_network_service_makes() -> None:
    assert hidden_identity(NETWORK) == str(uuid.uuid5(uuid.UUID(NETWORK), "identity"))

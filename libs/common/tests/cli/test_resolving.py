"""Words looked up and ids settled before anything is sent."""

from typing import Any

import pytest

from roadstead.cli.documents import Document, ordered, parse
from roadstead.cli.failures import UserError
from roadstead.cli.naming import hidden_identity, id_for
from roadstead.cli.resolving import Resolved, Resolver

from .stand_ins import REGION, Answers, held

OFFERED: dict[str, list[dict[str, Any]]] = {
    "flavor": [
        {"id": "f-1", "name": "small"},
        {"id": "small-2", "name": "twin"},
        {"id": "f-3", "name": "twin"},
    ],
    "image": [{"id": "0d4b0a4c-9a30-4a6e-8f6c-5f4f27a7a9f1", "name": "debian"}],
}
FILE = """
kind: server
metadata: {name: web}
spec: {flavorID: small, image: {id: debian}, networks: [{id: net}], securityGroups: [{id: web}]}
---
kind: securitygroup
metadata: {name: web, networkId: net}
---
kind: network
metadata: {name: net, identityId: me}
---
kind: identity
metadata: {name: me}
"""


async def resolve(client: Answers, text: str) -> dict[str, Resolved]:
    found = await Resolver(client).all(ordered(parse(text, "f")))
    return {item.kind: item for item in found}


async def test_names_of_the_same_file_become_the_ids_that_it_will_have() -> None:
    found = await resolve(Answers(offered=OFFERED), FILE)
    network = found["network"].id
    assert network == id_for("network", "net", region=REGION, project="demo", network=None)
    server = found["server"]
    assert server.id == id_for("server", "web", region=REGION, project="demo", network=network)
    assert server.document.spec["networks"] == [{"id": network}]
    assert server.document.spec["securityGroups"] == [{"id": found["securitygroup"].id}]
    assert server.document.spec["flavorID"] == "f-1"
    assert (
        server.document.metadata["identityId"]
        == found["identity"].id
        == found["network"].document.metadata["identityId"]
    )
    assert server.document.metadata["organizationId"] == "acme"
    assert not server.exists


async def test_the_same_file_again_means_the_resources_that_bear_the_names() -> None:
    first = await resolve(Answers(offered=OFFERED), FILE)
    there = {
        kind: [
            held(
                kind,
                item.id,
                item.name,
                **{k: v for k, v in item.document.metadata.items() if k == "networkId"},
            )
        ]
        for kind, item in first.items()
    }
    again = await resolve(Answers(there, OFFERED), FILE)
    assert {kind: item.id for kind, item in again.items()} == {kind: item.id for kind, item in first.items()}
    assert all(item.exists for item in again.values())


async def test_a_resource_that_bears_the_name_under_another_id_is_edited_and_not_doubled() -> None:
    other = "c1e7f3f0-6a7e-4e38-9b54-0a3f0a9e6c11"
    found = await resolve(
        Answers({"network": [held("network", other, "net")]}), "kind: network\nmetadata: {name: net}"
    )
    assert found["network"].id == other


async def test_a_network_without_identity_lends_its_hidden_one_to_what_hangs_on_it() -> None:
    text = FILE.replace(", identityId: me", "").rpartition("---")[0]
    found = await resolve(Answers(offered=OFFERED), text)
    assert found["server"].document.metadata["identityId"] == hidden_identity(found["network"].id)
    assert "identityId" not in found["network"].document.metadata


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("flavorID: small", "flavorID: huge"),
            "spec.flavorID: the region offers no flavor huge; it offers: small, twin, twin",
        ),
        (("flavorID: small", "flavorID: twin"), "2 entries of flavor are named twin"),
        (
            ("networks: [{id: net}]", "networks: [{id: other}]"),
            "spec.networks[0].id: there is no network named other",
        ),
    ],
)
async def test_a_word_that_means_nothing_is_refused_with_its_place(
    change: tuple[str, str], said: str
) -> None:
    with pytest.raises(UserError) as caught:
        await resolve(Answers(offered=OFFERED), FILE.replace(*change))
    assert said in str(caught.value)
    assert str(caught.value).startswith("f, document 1")


async def test_an_offered_id_is_taken_as_it_is() -> None:
    found = await resolve(Answers(offered=OFFERED), FILE.replace("flavorID: small", "flavorID: small-2"))
    assert found["server"].document.spec["flavorID"] == "small-2"


async def test_two_that_bear_the_name_must_be_told_apart_by_id() -> None:
    twins = [held("volume", f"c1e7f3f0-6a7e-4e38-9b54-0a3f0a9e6c1{n}", "disk") for n in (1, 2)]
    with pytest.raises(UserError, match="2 of kind volume are named disk"):
        await Resolver(Answers({"volume": twins})).all([Document("volume", {"name": "disk"}, {}, "f")])

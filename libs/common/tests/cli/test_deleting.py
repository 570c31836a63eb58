"""Deleting what a file names: what is refused is told and holds nothing up, and nothing is taken for something else."""

import uuid
from typing import Any

import pytest

from roadstead.cli.deleting import delete_documents
from roadstead.cli.documents import parse
from roadstead.cli.failures import Refused, UserError
from roadstead.cli.naming import id_for

from .stand_ins import REGION, Owner, held

NETWORK, OTHER = (str(uuid.UUID(int=n)) for n in (1, 2))
FILE = """
kind: network
metadata: {name: net}
---
kind: volume
metadata: {name: first}
spec: {networkID: net}
---
kind: volume
metadata: {name: second}
spec: {networkID: net}
"""


def owner(*volumes: str) -> Owner:
    client = Owner()
    client.held["network"] = [held("network", NETWORK, "net", generation=1)]
    client.held["volume"] = [
        held("volume", str(uuid.UUID(int=10 + n)), name, networkId=NETWORK, generation=1)
        for n, name in enumerate(volumes)
    ]
    return client


async def delete(client: Owner, text: str = FILE, **how: Any) -> list[str]:
    options = {"cascade": False, "wait": False, "timeout": 5, **how}
    return await delete_documents(client, parse(text, "f.yaml"), **options)


async def test_a_refused_deletion_holds_nothing_else_up_and_is_told() -> None:
    client = owner("first", "second")
    client.keeps["second"] = Refused("IN_USE", "a server uses it", 403, [{"consumer": "x/server-9"}])
    with pytest.raises(UserError) as caught:
        await delete(client)
    assert client.deleted == [str(uuid.UUID(int=10)), NETWORK]
    assert str(caught.value) == "volume second: a server uses it (IN_USE); 2 of 3 deleted"
    assert caught.value.status == 1


async def test_each_refusal_is_told_also_while_the_others_are_waited_for() -> None:
    client = owner("first", "second")
    for name in ("first", "net"):
        client.keeps[name] = Refused("FORBIDDEN", f"no {name}", 403)
    with pytest.raises(UserError) as caught:
        await delete(client, wait=True)
    assert client.deleted == [str(uuid.UUID(int=11))]
    text = "volume first: no first (FORBIDDEN); network net: no net (FORBIDDEN); 1 of 3 deleted"
    assert str(caught.value) == text


async def test_a_single_one_is_refused_in_its_own_words() -> None:
    client = owner()
    client.keeps["net"] = Refused("IN_USE", "a volume uses it", 403, [{"consumer": "x/volume-9"}])
    with pytest.raises(Refused, match=r"^a volume uses it \(IN_USE\)$"):
        await delete(client, "kind: network\nmetadata: {name: net}\n")


async def test_an_owner_that_does_not_answer_is_asked_once() -> None:
    client = owner("first", "second")
    client.away["volume", "delete"] = 1
    with pytest.raises(UserError) as caught:
        await delete(client)
    assert client.away["volume", "delete"] == 0
    assert client.deleted == [NETWORK]
    assert str(caught.value).count("does not answer") == 2


async def test_nothing_is_deleted_where_it_is_not_known_what_there_is() -> None:
    client = owner("first", "second")
    client.away["network", "list"] = 1
    with pytest.raises(UserError, match="nothing was deleted"):
        await delete(client)
    assert client.deleted == []


async def test_a_word_that_two_bear_is_told_and_the_rest_goes() -> None:
    client = owner("first", "first", "second")
    with pytest.raises(UserError, match=r"f\.yaml, document 2: volume first: 2 resources .* 2 of 3 deleted$"):
        await delete(client)
    assert client.deleted == [str(uuid.UUID(int=12)), NETWORK]


@pytest.mark.parametrize("kind", ["server", "volume"])
async def test_what_hangs_on_a_network_that_is_gone_is_not_looked_for_elsewhere(kind: str) -> None:
    client = owner()
    ident = id_for("server", "one", region=REGION, project="demo", network=OTHER)
    client.held[kind] = [held(kind, ident, "one", networkId=OTHER, generation=1)]
    spec = "{networks: [{id: gone}]}" if kind == "server" else "{networkID: gone}"
    assert await delete(client, f"kind: {kind}\nmetadata: {{name: one}}\nspec: {spec}\n") == []
    assert client.deleted == []


async def test_a_document_is_deleted_in_its_own_region_and_project() -> None:
    asked: list[tuple[str, str | None]] = []

    class Placed(Owner):
        def at(self, region: str, project: str | None) -> "Owner":
            asked.append((region, project))
            return self

    client = Placed()
    client.held["network"] = [held("network", NETWORK, "net", generation=1)]
    text = f"kind: network\nmetadata: {{name: net, regionId: {OTHER}, projectId: theirs}}\n"
    await delete(client, text)
    assert asked == [(OTHER, "theirs")]

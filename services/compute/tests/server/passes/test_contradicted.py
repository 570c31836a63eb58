"""A list that lacks a server which an earlier pass noted is compared with a read by its id (K6)."""

from typing import Any

import pytest

from roadstead.reconcile.decision import Code, Done, Retry

VOLUME = "66666666-6666-4666-8666-666666666666"


def lies(scene: Any, times: int) -> None:
    """Neither the server nor its port are in the lists; by their ids they are there."""
    scene.fault("empty_list", service="compute", method="GET", path="/servers/detail", times=times)
    scene.fault("empty_list", service="network", method="GET", path=r"/ports$", times=times)


@pytest.mark.parametrize("deleting", [False, True])
async def test_k6_a_server_that_two_lists_hide_is_neither_made_again_nor_called_gone(
    scene: Any, deleting: bool
) -> None:
    await scene.settled()
    scene.bench.deleting = deleting
    scene.forget()
    lies(scene, 2)
    for _ in range(2):
        ending = await scene.run()
        assert isinstance(ending.outcome, Retry)
        assert ending.outcome.code is Code.UNAVAILABLE
        scene.clock.advance(10)
    assert scene.writes() == []
    assert len(scene.servers()) == 1


async def test_k6_a_volume_that_a_list_hides_is_not_let_go_of(scene: Any) -> None:
    await scene.settled()
    await scene.volume()
    scene.bench.edit(volumes=[{"id": VOLUME}])
    await scene.settled()
    scene.bench.edit(volumes=[])
    scene.fault("empty_list", service="volume", method="GET", path="/volumes/detail", times=1)
    ending = await scene.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.UNAVAILABLE
    assert scene.claims
    for _ in range(3):
        scene.clock.advance(10)
        ending = await scene.run()
    assert ending.outcome == Done()
    assert scene.claims == {}
    assert scene.server.attachments == {}


async def test_a_server_that_is_gone_by_its_id_too_is_made_again_with_one_read_more(scene: Any) -> None:
    await scene.settled()
    old = scene.server.id
    assert scene.bench.notes.of(scene.bench.key) == {"server": old}
    scene.cloud.foreign("compute", "delete", old)
    scene.forget()
    for _ in range(10):
        ending = await scene.run()
        if ending.outcome == Done():
            break
        scene.clock.advance(10)
    asked = [c for c in scene.reads() if c.path.endswith(f"/servers/{old}")]
    assert scene.server.id != old
    assert scene.bench.notes.of(scene.bench.key) == {"server": scene.server.id}
    assert 1 <= len(asked) <= 2
    assert scene.server.id not in str(scene.bench.status)


async def test_oc_24_a_renamed_server_is_ours_by_its_note_when_its_port_is_gone(scene: Any) -> None:
    await scene.settled()
    server = scene.server
    port = next(
        p
        for p in await scene.call(scene.principal, "network", "port.list")
        if p["name"].startswith("server-")
    )
    server.name = "somebody-s"
    scene.cloud.foreign("network", "delete", port["id"])
    scene.bench.deleting = True
    for _ in range(10):
        ending = await scene.run()
        if ending.outcome == Done():
            break
        scene.clock.advance(10)
    assert scene.servers() == []


async def test_a_settled_server_asks_nothing_by_id(scene: Any) -> None:
    await scene.settled()
    scene.forget()
    await scene.run()
    assert len(scene.reads()) <= 5
    assert [c.path for c in scene.reads() if c.path.endswith(scene.server.id)] == []

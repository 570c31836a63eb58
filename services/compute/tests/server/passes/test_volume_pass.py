"""Attachments against the simulated cloud (behaviour.md section 13.4): calls are counted one by one."""

from typing import Any

import pytest

from roadstead.reconcile.decision import Code, Done, Retry, Yield
from roadstead.testing.passbench import view
from roadstead_compute.server import texts

VOLUME = "66666666-6666-4666-8666-666666666666"
OTHER = "77777777-7777-4777-8777-777777777777"


def attachments(scene: Any, method: str | None = None) -> list[Any]:
    return list(scene.cloud.log.calls(service="compute", method=method, path="os-volume_attachments"))


def row(scene: Any, ident: str = VOLUME) -> dict[str, Any]:
    return next(r for r in scene.bench.status["volumes"] if r["id"] == ident)


async def wanting(scene: Any) -> str:
    """A settled server whose spec now names a volume that is ready."""
    await scene.settled()
    cinder = await scene.volume()
    scene.forget()
    scene.bench.edit(volumes=[{"id": VOLUME}])
    return str(cinder)


async def test_inv_186_inv_189_inv_195_inv_207_claim_then_one_attach(scene: Any) -> None:
    cinder = await wanting(scene)
    ending = await scene.run()
    assert ending.outcome == Done()
    assert scene.claims == {VOLUME: scene.bench.key.id}
    (call,) = attachments(scene)
    assert call.method == "POST"
    assert call.body == {"volumeAttachment": {"volumeId": cinder}}
    assert row(scene) == {
        "id": VOLUME,
        "provisioningStatus": "Provisioned",
        "device": "/dev/vdb",
        "message": "",
    }
    order = [c.path for c in scene.cloud.log]
    assert order.index(call.path) > max(i for i, p in enumerate(order) if "/volumes/detail" in p)


async def test_inv_192_attached_already_costs_one_list_and_no_nova_call(scene: Any) -> None:
    await wanting(scene)
    await scene.settled()
    assert (await scene.run()).outcome == Done()
    assert attachments(scene) == []
    assert len(scene.reads()) == 6
    assert scene.writes() == []


async def test_13_4_a_server_that_builds_is_waited_for(scene: Any) -> None:
    await scene.volume()
    scene.bench.edit(volumes=[{"id": VOLUME}])
    ending = await scene.run()
    assert isinstance(ending.outcome, Yield)
    assert row(scene)["message"] == texts.ATTACH_WAIT_SERVER
    assert attachments(scene) == []
    await scene.settled()
    assert row(scene)["provisioningStatus"] == "Provisioned"


async def test_13_4_a_volume_that_is_not_ready_is_waited_for_without_a_look(scene: Any) -> None:
    await scene.settled()
    scene.bench.edit(volumes=[{"id": VOLUME}])
    ending = await scene.run()
    assert isinstance(ending.outcome, Yield)
    assert scene.cloud.log.calls(service="volume") == []
    assert scene.bench.requests.asked == []


async def test_inv_193_inv_194_on_another_server_is_a_conflict_without_a_create(scene: Any) -> None:
    cinder = await wanting(scene)
    body = {
        "name": "other",
        "imageRef": scene.images["debian-12"],
        "flavorRef": scene.flavors["small"],
        "networks": "none",
    }
    other = await scene.call(scene.principal, "compute", "server.create", json={"server": body})
    scene.clock.advance(10)
    await scene.call(
        scene.principal,
        "compute",
        "attachment.create",
        server=other["id"],
        json={"volumeAttachment": {"volumeId": cinder}},
    )
    scene.clock.advance(10)
    scene.forget()
    ending = await scene.run()
    assert ending.outcome == Retry(Code.CONFLICT, texts.ATTACH_CONFLICT)
    assert attachments(scene) == []


@pytest.mark.parametrize("status", [400, 409])
async def test_inv_196_a_refused_create_that_was_attached_all_the_same(scene: Any, status: int) -> None:
    cinder = await wanting(scene)
    text = f"Invalid volume: volume {cinder} is already attached to instances: {scene.server.id}"
    answer = {"badRequest": {"code": status, "message": text}}
    scene.fault(
        "status_after", service="compute", method="POST", path="attachments", status=status, answer=answer
    )
    assert (await scene.run()).outcome == Done()
    assert [c.method for c in attachments(scene)] == ["POST", "GET"]
    assert row(scene)["device"] == "/dev/vdb"


@pytest.mark.parametrize("status", [400, 409])
async def test_inv_197_a_refused_create_that_left_nothing_is_a_conflict(scene: Any, status: int) -> None:
    await wanting(scene)
    text = "Invalid volume: volume x is already attached to instances: y"
    answer = {"badRequest": {"code": status, "message": text}}
    scene.fault("status", service="compute", method="POST", path="attachments", status=status, answer=answer)
    ending = await scene.run()
    assert ending.outcome == Retry(Code.CONFLICT, texts.ATTACH_REFUSED_NOW)
    assert [c.method for c in attachments(scene)] == ["POST", "GET"]
    assert row(scene)["provisioningStatus"] == "Errored"


async def test_inv_198_a_500_is_preserved_and_nothing_is_read_after_it(scene: Any) -> None:
    await wanting(scene)
    scene.fault("status", service="compute", method="POST", path="attachments", status=500)
    ending = await scene.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.UNKNOWN
    assert [c.method for c in attachments(scene)] == ["POST"]


@pytest.mark.parametrize("kind", ["no_answer_after", "no_answer_before"])
async def test_a_lost_answer_of_an_attach_is_looked_up(scene: Any, kind: str) -> None:
    await wanting(scene)
    scene.fault(kind, service="compute", method="POST", path="attachments")
    assert isinstance((await scene.run()).outcome, Retry)
    for _ in range(10):
        scene.clock.advance(10)
        await scene.run()
    assert (await scene.run()).outcome == Done()
    assert len(scene.server.attachments) == 1


async def test_inv_187_inv_188_only_the_exact_name_counts(scene: Any) -> None:
    scene.cloud.settings.name_filter = "fuzzy"
    await wanting(scene)
    near = await scene.volume(OTHER, name=f"volume-{VOLUME}-extra")
    assert (await scene.run()).outcome == Done()
    assert near not in scene.server.attachments
    await scene.volume(VOLUME)
    scene.bench.edit(volumes=[])
    scene.forget()
    ending = await scene.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.CONSISTENCY
    assert attachments(scene) == []


async def test_inv_191_a_volume_that_the_cloud_does_not_have(scene: Any) -> None:
    await scene.settled()
    scene.bench.directory.put(view("volume", VOLUME, scene.bench.key.region, "proj"))
    scene.bench.edit(volumes=[{"id": VOLUME}])
    ending = await scene.run()
    assert ending.outcome == Retry(Code.NOT_FOUND, texts.ATTACH_NO_VOLUME)


async def test_a_volume_of_another_project_is_none(scene: Any) -> None:
    await scene.settled()
    await scene.volume(project="another-project")
    scene.bench.edit(volumes=[{"id": VOLUME}])
    scene.forget()
    ending = await scene.run()
    assert ending.outcome == Retry(Code.NOT_FOUND, texts.ATTACH_NO_VOLUME)
    assert scene.bench.requests.asked == [], "not even its owner is asked"
    assert scene.cloud.log.calls(service="volume") == []


async def test_a_volume_claimed_by_another_server_does_not_hold_up_the_rest(scene: Any) -> None:
    await wanting(scene)
    await scene.volume(OTHER)
    scene.claims[VOLUME] = "another-server"
    scene.bench.edit(volumes=[{"id": VOLUME}, {"id": OTHER}])
    ending = await scene.run()
    assert ending.outcome == Retry(Code.CONFLICT, texts.ATTACH_CLAIMED)
    assert row(scene)["message"] == texts.ATTACH_CLAIMED
    assert row(scene, OTHER)["provisioningStatus"] == "Provisioned"


async def test_inv_199_detach_then_release_only_after_it_is_confirmed(scene: Any) -> None:
    await wanting(scene)
    await scene.settled()
    scene.bench.edit(volumes=[])
    ending = await scene.run()
    assert isinstance(ending.outcome, Yield)
    assert [c.method for c in attachments(scene)] == ["DELETE"]
    assert row(scene)["provisioningStatus"] == "Deprovisioning"
    assert scene.claims, "the detach is not confirmed yet"
    ending = await scene.run()
    assert isinstance(ending.outcome, Yield)
    assert len(attachments(scene)) == 1, "it is not asked for twice"
    assert scene.claims
    scene.clock.advance(10)
    assert (await scene.run()).outcome == Done()
    assert scene.claims == {}
    assert "volumes" not in scene.bench.status


async def test_13_4_an_attachment_taken_back_at_once_keeps_its_claim_until_it_is_off(scene: Any) -> None:
    """The cloud took the attachment and is at it still when an edit wants the volume no more."""
    cinder = await wanting(scene)
    await scene.run()
    scene.bench.edit(volumes=[])
    assert isinstance((await scene.run()).outcome, Yield)
    assert scene.claims, "the volume is on its way onto the server"
    scene.clock.advance(10)
    assert isinstance((await scene.run()).outcome, Yield)
    assert [c.method for c in attachments(scene)] == ["POST", "DELETE"]
    assert scene.claims
    scene.clock.advance(10)
    assert (await scene.run()).outcome == Done()
    assert scene.claims == {}
    assert scene.cloud.cinder.volume(cinder)["status"] == "available"


async def test_13_4_a_claim_is_kept_while_the_fate_of_an_attach_is_open(scene: Any) -> None:
    """A request without an answer may still take effect; until the settling time is over no missing row proves anything."""
    await wanting(scene)
    scene.fault("no_answer_before", service="compute", method="POST", path="attachments")
    ending = await scene.run()
    assert isinstance(ending.outcome, Retry)
    scene.bench.edit(volumes=[])
    ending = await scene.run()
    assert isinstance(ending.outcome, Yield)
    assert ending.outcome.code is Code.SETTLING
    assert scene.claims
    scene.clock.advance(70)
    assert (await scene.run()).outcome == Done()
    assert scene.claims == {}


async def test_inv_203_a_404_of_the_detach_is_success(scene: Any) -> None:
    await wanting(scene)
    await scene.settled()
    scene.bench.edit(volumes=[])
    answer = {"itemNotFound": {"code": 404, "message": "Instance x is not attached to volume y"}}
    scene.fault(
        "status",
        service="compute",
        method="DELETE",
        path="attachments",
        status=404,
        answer=answer,
        times=None,
    )
    assert (await scene.run()).outcome == Done()
    assert scene.claims == {}


async def test_inv_204_a_409_of_the_detach_is_a_conflict(scene: Any) -> None:
    await wanting(scene)
    await scene.settled()
    scene.bench.edit(volumes=[])
    answer = {"conflictingRequest": {"code": 409, "message": "Cannot 'detach_volume' instance"}}
    scene.fault("status", service="compute", method="DELETE", path="attachments", status=409, answer=answer)
    ending = await scene.run()
    assert ending.outcome == Retry(Code.CONFLICT, texts.DETACH_FAILED)
    assert scene.claims


async def test_inv_205_a_503_of_the_detach_is_preserved(scene: Any) -> None:
    await wanting(scene)
    await scene.settled()
    scene.bench.edit(volumes=[])
    scene.fault("status", service="compute", method="DELETE", path="attachments", status=503)
    ending = await scene.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.UNKNOWN
    assert scene.claims


async def test_inv_201_inv_202_what_is_not_on_this_server_is_released_without_a_nova_call(scene: Any) -> None:
    await wanting(scene)
    await scene.settled()
    (held,) = scene.server.attachments.values()
    scene.cloud.foreign("compute", "detach_volume", scene.server.id, volume_id=held.volume_id)
    scene.bench.edit(volumes=[])
    assert (await scene.run()).outcome == Done()
    assert attachments(scene) == []
    assert scene.claims == {}


async def test_inv_208_an_attach_asks_the_owner_for_the_claim_and_nothing_else(scene: Any) -> None:
    await wanting(scene)
    await scene.run()
    assert [s for s, _ in scene.bench.requests.asked] == ["rpc.volumes.claim"]


async def test_a_claim_that_the_status_does_not_know_of_is_released_too(scene: Any) -> None:
    """A process that died between claim and status leaves a claim that only its owner's STATUS shows."""
    await scene.settled()
    await scene.volume()
    claim = {"claimRef": {"kind": "Server", "id": scene.bench.key.id}}
    scene.bench.directory.put(
        view("volume", VOLUME, scene.bench.key.region, "proj", status=claim, resource_version=2)
    )
    scene.claims[VOLUME] = scene.bench.key.id
    assert (await scene.run()).outcome == Done()
    assert scene.claims == {}


async def test_inv_185_attach_and_detach_are_the_principals(scene: Any) -> None:
    await wanting(scene)
    await scene.run()
    scene.clock.advance(10)
    scene.bench.edit(volumes=[])
    await scene.run()
    asked = [c for c in scene.cloud.log if c.service in ("compute", "volume")]
    assert {c.user_name for c in asked} == {"identity"}
    assert {c.project_id for c in asked} == {scene.project_id}
    assert {c.method for c in attachments(scene)} == {"POST", "DELETE"}


async def test_inv_190_without_its_server_nothing_is_attached(scene: Any) -> None:
    await wanting(scene)
    scene.cloud.foreign("compute", "delete", scene.server.id)
    scene.fault("status", service="compute", method="POST", path=r"/servers$", status=403, times=None)
    for _ in range(3):
        await scene.run()
        scene.clock.advance(10)
    assert attachments(scene) == []
    assert row(scene)["message"] == texts.ATTACH_WAIT_SERVER


async def test_inv_200_without_its_server_a_volume_is_released_without_a_nova_call(scene: Any) -> None:
    await wanting(scene)
    await scene.settled()
    scene.cloud.foreign("compute", "delete", scene.server.id)
    scene.bench.deleting = True
    await scene.bench.until_settled()
    assert attachments(scene) == []
    assert scene.claims == {}

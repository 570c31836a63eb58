"""Image rebuild against the simulated cloud (behaviour.md section 9)."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from roadstead.reconcile.decision import Code, Done, Park, Retry, Yield
from roadstead_compute.server import texts


def rebuilds(scene: Any) -> list[Any]:
    return [c for c in scene.writes("compute") if c.path.endswith("/action")]


async def edited(scene: Any, name: str = "debian-12") -> None:
    """A settled server whose spec now names another image."""
    await scene.settled()
    scene.bench.edit(image={"id": scene.images[name]})


async def test_inv_084_inv_111_inv_112_inv_123_one_rebuild_in_that_same_pass_then_wait(scene: Any) -> None:
    await edited(scene)
    ending = await scene.run()
    assert isinstance(ending.outcome, Yield)
    assert scene.conditions()["Active"] == ("False", "Rebuilding")
    assert scene.conditions()["Healthy"] == ("Unknown", "Unknown")
    (call,) = rebuilds(scene)
    assert call.body == {"rebuild": {"imageRef": scene.images["debian-12"]}}
    scene.clock.advance(30)
    assert (await scene.run()).outcome == Done()
    assert len(rebuilds(scene)) == 1


async def test_inv_051_inv_053_a_rebuild_sends_the_image_alone(scene: Any) -> None:
    await scene.settled()
    scene.bench.edit(userData="I2Nsb3VkLWNvbmZpZwo=", image={"id": scene.images["debian-12"]})
    await scene.run()
    assert set(rebuilds(scene)[0].body["rebuild"]) == {"imageRef"}


async def test_inv_127_inv_128_a_rebuild_keeps_all_but_the_disk(scene: Any) -> None:
    scene.bench.edit(publicIPAllocation={"enabled": True}, volumes=[{"id": await known_volume(scene)}])
    await scene.settled()
    before = kept(scene)
    scene.bench.edit(image={"id": scene.images["debian-12"]})
    await scene.settled()
    assert kept(scene) == before
    assert scene.server.image_id == scene.images["debian-12"]


async def known_volume(scene: Any) -> str:
    ident = "66666666-6666-4666-8666-666666666666"
    await scene.volume(ident)
    return ident


def kept(scene: Any) -> tuple[Any, ...]:
    s = scene.server
    nics = [n.port_id for n in s.nics]
    status = scene.bench.status
    return (
        s.id,
        nics,
        sorted(s.attachments),
        s.flavor["name"],
        s.metadata,
        s.host,
        status["privateIP"],
        status["publicIP"],
    )


async def test_inv_075_re_asserted_while_it_runs(scene: Any) -> None:
    await edited(scene)
    await scene.run()
    scene.sweep_state("ACTIVE", launched="2026-01-01T00:00:10Z")
    assert scene.conditions()["Active"] == ("True", "Running")
    ending = await scene.run()
    assert ending.rule == "R3"
    assert scene.conditions()["Active"] == ("False", "Rebuilding")
    assert len(rebuilds(scene)) == 1


async def test_inv_069_inv_114_inv_288_a_409_is_a_silent_yield(scene: Any) -> None:
    await edited(scene)
    before = scene.conditions()
    scene.cloud.settings.hide_task_state = True
    scene.cloud.foreign("compute", "set", scene.server.id, task_state="rebooting")
    ending = await scene.run()
    assert ending.rule == "R4''", "a hidden task shows as none"
    assert rebuilds(scene)[0].status == 409
    assert isinstance(ending.outcome, Yield)
    assert ending.outcome.after is None
    assert scene.conditions() == before


async def test_inv_115_inv_119_inv_120_inv_121_inv_295_an_image_that_is_gone_parks_until_another_is_chosen(
    scene: Any,
) -> None:
    await scene.settled()
    before = scene.conditions()
    scene.bench.edit(image={"id": "77777777-7777-4777-8777-777777777777"})
    with capture_logs() as logs:
        ending = await scene.run()
    assert ending.outcome == Park(Code.REBUILD_IMAGE_NOT_FOUND, texts.REBUILD_IMAGE_NOT_FOUND)
    assert scene.conditions() == before
    assert scene.server.vm_state == "active"
    assert scene.server.image_id == scene.images["ubuntu-24.04"]
    assert any("Cannot find image for rebuild" in str(line.get("body")) for line in logs)
    assert "Cannot find image" not in str(scene.bench.status) + str(ending.outcome)
    scene.bench.edit(image={"id": scene.images["debian-12"]})
    await scene.settled()
    assert scene.server.image_id == scene.images["debian-12"]


@pytest.mark.parametrize(
    ("status", "answer", "code"),
    [
        (400, {"badRequest": {"code": 400, "message": "Image x is not active."}}, Code.REFUSED),
        (400, {}, Code.REFUSED),
        (400, {"badRequest": {"code": 400, "message": "cannot find an image to rebuild"}}, Code.REFUSED),
        (403, {"forbidden": {"code": 403, "message": "Quota exceeded for cores"}}, Code.QUOTA_EXCEEDED),
        (404, {"itemNotFound": {"code": 404, "message": "Instance could not be found."}}, Code.NOT_FOUND),
        (503, None, Code.UNKNOWN),
    ],
)
async def test_inv_116_inv_117_inv_118_inv_119_other_rejections_are_tried_again(
    scene: Any, status: int, answer: Any, code: Code
) -> None:
    await edited(scene)
    before = scene.conditions()
    scene.fault(
        "status", service="compute", method="POST", path="/action", status=status, answer=answer, times=2
    )
    for _ in range(2):
        ending = await scene.run()
        assert isinstance(ending.outcome, Retry)
        assert ending.outcome.code is code
        assert ending.outcome.after is None
        assert scene.conditions() == before
        scene.clock.advance(10)
    assert isinstance((await scene.run()).outcome, Yield), "no edit was needed"
    assert len(rebuilds(scene)) == 3


async def test_inv_092_inv_094_inv_296_a_failed_rebuild_parks_from_the_pass_alone(scene: Any) -> None:
    await edited(scene)
    scene.fails("server_rebuild")
    await scene.run()
    scene.clock.advance(30)
    ending = await scene.run()
    assert ending.rule == "R3'"
    assert ending.outcome == Park(Code.REBUILD_CONVERGED_ERROR, texts.REBUILD_CONVERGED_ERROR)


async def test_inv_085_an_edit_recovers_a_parked_server(scene: Any) -> None:
    await edited(scene)
    scene.fails("server_rebuild")
    await scene.run()
    scene.clock.advance(30)
    assert isinstance((await scene.run()).outcome, Park)
    scene.bench.edit(image={"id": scene.images["ubuntu-24.04"]})
    await scene.settled()
    assert scene.server.vm_state == "active"


async def test_inv_246_an_errored_server_costs_no_read_by_id(scene: Any) -> None:
    await scene.settled()
    scene.cloud.foreign("compute", "error", scene.server.id)
    await scene.run()
    assert scene.cloud.log.calls(service="compute", method="GET", path=r"/servers/[0-9a-f]{8}-") == []


async def test_inv_059_inv_060_before_first_boot_it_waits_and_then_submits_without_an_edit(
    scene: Any,
) -> None:
    await scene.run()
    scene.bench.edit(image={"id": scene.images["debian-12"]})
    ending = await scene.run()
    assert ending.rule == "R4"
    assert isinstance(ending.outcome, Yield)
    await scene.settled()
    assert scene.server.image_id == scene.images["debian-12"]


async def test_inv_106_inv_107_a_foreign_rebuild_onto_another_image_is_put_back(scene: Any) -> None:
    for fail in (False, True):
        await scene.settled()
        scene.cloud.foreign("compute", "rebuild", scene.server.id, image=scene.images["debian-12"], fail=fail)
        scene.clock.advance(30)
        await scene.settled()
        assert scene.server.image_id == scene.images["ubuntu-24.04"]
        assert scene.server.vm_state == "active"


async def test_inv_108_foreign_acts_on_the_wanted_image_are_never_answered_with_a_rebuild(scene: Any) -> None:
    for verb, more in (
        ("evacuate", {}),
        ("evacuate", {"fail": True}),
        ("recover", {}),
        ("stop", {}),
        ("start", {}),
    ):
        await scene.bench.until_settled()
        scene.cloud.foreign("compute", verb, scene.server.id, **more)
        for _ in range(4):
            await scene.run()
            scene.clock.advance(1)
        scene.clock.advance(30)
    assert rebuilds(scene) == []


async def test_inv_067_a_stale_observation_decides_nothing(scene: Any) -> None:
    await edited(scene)
    scene.sweep_state("ACTIVE", launched="2026-01-01T00:00:10Z")
    assert scene.bench.status["observed"]["image"] == scene.images["debian-12"]
    assert (await scene.run()).rule == "R4''"


async def test_inv_297_nothing_but_the_status_is_read_of_an_errored_server(scene: Any) -> None:
    await scene.settled()
    fault = {"code": 400, "message": "marker-in-a-fault", "created": "2026-01-01T00:00:00Z"}
    scene.cloud.foreign("compute", "set", scene.server.id, vm_state="error", fault=fault)
    ending = await scene.run()
    assert ending.rule == "R3'"
    assert "marker-in-a-fault" not in str(ending)


async def read(scene: Any) -> tuple[str, str | None, str]:
    """Status, task and image as the principal reads them now."""
    found = await scene.call(scene.principal, "compute", "server.get", id=scene.server.id)
    return found["status"], found["OS-EXT-STS:task_state"], found["image"]["id"]


async def test_inv_292_the_first_read_after_an_accepted_rebuild_shows_target_and_task(scene: Any) -> None:
    await edited(scene)
    await scene.run()
    status, task, image = await read(scene)
    assert (task or "").startswith("rebuild")
    assert (status, image) == ("REBUILD", scene.images["debian-12"])


async def test_inv_293_a_rebuild_that_fails_turns_into_error_and_clears_the_task_in_one_step(
    scene: Any,
) -> None:
    await edited(scene)
    scene.fails("server_rebuild")
    await scene.run()
    samples = []
    for _ in range(60):
        samples.append(await read(scene))
        scene.clock.advance(0.1)
    assert {image for _, _, image in samples} == {scene.images["debian-12"]}
    assert {task for status, task, _ in samples if status == "ERROR"} == {None}
    assert all((task or "").startswith("rebuild") for status, task, _ in samples if status != "ERROR")
    assert samples[-1][0] == "ERROR"

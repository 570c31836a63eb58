"""The bounded create retry against the simulated cloud (behaviour.md section 6.3)."""

from typing import Any

from roadstead.reconcile.decision import Code, Done, Park, Yield


async def minutes(scene: Any, count: int) -> Any:
    """Passes every 10 s and a sweep every minute, as loop and monitor make them; the last ending."""
    ending = None
    for _ in range(count):
        for _ in range(6):
            ending = await scene.run()
            scene.clock.advance(10)
            if isinstance(ending.outcome, Park):
                return ending
        for server in scene.servers():
            state = "ERROR" if server.vm_state == "error" else "ACTIVE"
            launched = server.launched_at.isoformat() if server.launched_at else None
            scene.sweep_state(state, launched, power=1 if state == "ACTIVE" else 0)
    return ending


def deletes(scene: Any) -> list[Any]:
    return list(scene.cloud.log.calls(service="compute", method="DELETE", path="/servers/"))


async def test_inv_299_inv_300_inv_301_three_creates_two_deletes_then_a_park_that_stays(scene: Any) -> None:
    scene.fails("server_build", times=None)
    ending = await minutes(scene, 12)
    assert isinstance(ending.outcome, Park)
    assert ending.outcome.terminal
    assert ending.outcome.code is Code.CREATE_EXHAUSTED
    assert (len(scene.creates()), len(deletes(scene))) == (3, 2)
    scene.forget()
    for _ in range(5):  # a restart, an edit, time: nothing is asked of the cloud any more
        assert isinstance((await scene.run()).outcome, Park)
        scene.clock.advance(600)
        scene.bench.edit(image={"id": scene.images["debian-12"]})
    assert scene.writes() == []
    assert scene.bench.status["providerCreateFailures"] == 3


async def test_inv_299_one_failure_is_mended(scene: Any) -> None:
    scene.fails("server_build", times=1)
    ending = await minutes(scene, 5)
    assert ending.outcome == Done()
    assert (len(scene.creates()), len(deletes(scene)), len(scene.servers())) == (2, 1, 1)
    assert scene.bench.status["providerCreateFailures"] == 1
    assert not scene.bench.status.get("providerCreateRetrying")
    assert scene.conditions()["Active"] == ("True", "Running")


async def test_inv_303_no_second_server_while_the_first_one_goes(scene: Any) -> None:
    scene.cloud.settings.durations.server_delete = 45.0
    scene.fails("server_build", times=1)
    for _ in range(30):
        await scene.run()
        scene.clock.advance(10)
        assert len(scene.servers()) <= 1
        for server in scene.servers():
            if server.vm_state == "error":
                scene.sweep_state("ERROR", power=0)
    assert len(deletes(scene)) == 1, "a delete under way is not sent again"
    assert len(scene.servers()) == 1


async def test_inv_304_the_next_create_uses_the_image_of_then(scene: Any) -> None:
    scene.fails("server_build", times=1)
    await scene.run()
    scene.clock.advance(10)
    scene.sweep_state("ERROR", power=0)
    await scene.run()
    scene.bench.edit(image={"id": scene.images["debian-12"]})
    await minutes(scene, 3)
    assert scene.creates()[-1].body["server"]["imageRef"] == scene.images["debian-12"]


async def test_inv_061_inv_062_an_edit_before_first_boot_is_absorbed_by_the_retry(scene: Any) -> None:
    scene.fails("server_build", times=1)
    await scene.run()
    scene.clock.advance(10)
    scene.bench.edit(image={"id": scene.images["debian-12"]})
    before = scene.conditions()
    ending = await scene.run()
    assert isinstance(ending.outcome, Yield)
    assert scene.conditions() == before
    ending = await minutes(scene, 4)
    assert ending.outcome == Done()
    assert scene.server.image_id == scene.images["debian-12"]
    assert not [c for c in scene.writes("compute") if c.path.endswith("/action")]


async def test_inv_302_a_server_that_booted_once_is_never_made_again(scene: Any) -> None:
    await scene.settled()
    scene.sweep_state("ACTIVE", launched="2026-01-01T00:00:10Z")
    scene.cloud.foreign("compute", "error", scene.server.id)
    ident = scene.server.id
    for _ in range(60):
        scene.sweep_state("ERROR", launched="2026-01-01T00:00:10Z", power=0)
        await scene.run()
        scene.clock.advance(60)
    assert scene.writes() == []
    assert scene.server.id == ident


async def test_inv_302_not_even_when_every_latch_was_lost(scene: Any) -> None:
    await scene.settled()
    scene.cloud.foreign("compute", "error", scene.server.id)
    scene.sweep_state("ERROR", launched=None, power=0)
    for name in ("provisionedAt", "launchedAt"):
        scene.bench.status.pop(name, None)
    ending = await scene.run()
    assert ending.rule == "R3'"
    assert scene.writes() == []


async def test_the_port_goes_with_the_failed_server_and_comes_back(scene: Any) -> None:
    scene.bench.edit(publicIPAllocation={"enabled": True})
    scene.fails("server_build", times=1)
    ending = await minutes(scene, 5)
    assert ending.outcome == Done()
    made = [c.path.rsplit("/", 1)[1] for c in scene.writes("network") if c.method == "POST"]
    assert made == ["ports", "floatingips", "ports", "floatingips"]
    assert scene.count("floating_ips") == 1

"""A server's deletion against the simulated cloud (behaviour.md section 6.4)."""

from typing import Any

import pytest

from roadstead.reconcile.decision import Done, Retry, Yield

VOLUME = "66666666-6666-4666-8666-666666666666"


async def full(scene: Any) -> None:
    """A settled server with public address and a volume, now to be deleted."""
    scene.bench.edit(publicIPAllocation={"enabled": True}, volumes=[{"id": VOLUME}])
    await scene.volume()
    await scene.settled()
    scene.bench.deleting = True


def left(scene: Any) -> tuple[int, int, int]:
    mine = [p for p in scene.cloud.dump()["network"]["ports"]["objects"] if p["name"].startswith("server-")]
    return len(scene.servers()), len(mine), scene.count("floating_ips")


async def gone(scene: Any, passes: int = 40) -> None:
    for _ in range(passes):
        ending = await scene.run()
        if ending.outcome == Done():
            return
        scene.clock.advance(10)
    raise AssertionError(ending)


async def test_ref_051_volume_server_floating_ip_port_then_the_claim(scene: Any) -> None:
    await full(scene)
    await gone(scene)
    removed = [c.path.split("/")[-2] for c in scene.writes() if c.method == "DELETE"]
    assert removed == ["os-volume_attachments", "servers", "floatingips", "ports"]
    assert left(scene) == (0, 0, 0)
    assert scene.claims == {}


async def test_a_delete_under_way_is_waited_for_and_not_sent_again(scene: Any) -> None:
    await scene.settled()
    scene.bench.deleting = True
    scene.cloud.settings.durations.server_delete = 45.0
    for _ in range(4):
        assert isinstance((await scene.run()).outcome, Yield)
        scene.clock.advance(10)
    await gone(scene)
    assert len([c for c in scene.writes("compute") if c.method == "DELETE"]) == 1


@pytest.mark.parametrize("what", ["server", "port", "address", "volume", "all"])
async def test_what_is_missing_is_done(scene: Any, what: str) -> None:
    await full(scene)
    if what in ("server", "all"):
        scene.cloud.foreign("compute", "delete", scene.server.id)
    for kind, name in (("floatingips", "address"), ("ports", "port")):
        if what in (name, "all"):
            found = await scene.call(scene.principal, "network", f"{kind[:-1]}.list")
            for item in found:
                if kind == "floatingips" or item["name"].startswith("server-"):
                    scene.cloud.foreign("network", "delete", item["id"])
    await gone(scene)
    assert left(scene) == (0, 0, 0)
    assert scene.claims == {}


@pytest.mark.parametrize("steps", range(6))
async def test_oc_25_a_deletion_at_every_point_of_a_create_leaves_nothing(scene: Any, steps: int) -> None:
    """The create is cut off after `steps` writes; then the server is to go."""
    scene.bench.edit(publicIPAllocation={"enabled": True}, volumes=[{"id": VOLUME}])
    await scene.volume()
    scene.fault(
        "no_answer_after",
        method="POST",
        path=r"/(ports|floatingips|servers|os-volume_attachments)$",
        skip=steps,
    )
    for _ in range(3):
        await scene.run()
        scene.clock.advance(3)
    scene.bench.deleting = True
    await gone(scene)
    assert left(scene) == (0, 0, 0)
    assert scene.claims == {}


async def test_a_late_server_of_a_lost_answer_is_not_left_behind(scene: Any) -> None:
    """Nothing is called absent while a create's answer is open."""
    scene.fault("no_answer_before", service="compute", method="POST", path=r"/servers$")
    await scene.run()
    scene.bench.deleting = True
    ending = await scene.run()
    assert not isinstance(ending.outcome, Done)
    scene.clock.advance(70)
    await gone(scene)
    assert left(scene) == (0, 0, 0)


@pytest.mark.parametrize("status", [404, 409, 500, 503])
async def test_every_refusal_of_a_delete_is_overcome_when_it_ends(scene: Any, status: int) -> None:
    await full(scene)
    answer = (
        {"itemNotFound": {"code": 404, "message": "Instance x could not be found."}}
        if status == 404
        else None
    )
    for path in ("/servers/[^/]+$", "/floatingips/", "/ports/"):
        scene.fault("status", method="DELETE", path=path, status=status, answer=answer, times=2)
    for _ in range(60):
        ending = await scene.run()
        if ending.outcome == Done():
            break
        assert isinstance(ending.outcome, Yield | Retry)
        scene.clock.advance(10)
    assert left(scene) == (0, 0, 0), "a 404 is no proof, the list is"


async def test_a_failed_list_never_finishes_a_deletion(scene: Any) -> None:
    await full(scene)
    scene.fault("status", service="compute", path="/servers/detail", status=500, times=None)
    for _ in range(3):
        assert isinstance((await scene.run()).outcome, Retry)
    assert left(scene) == (1, 1, 1)


async def test_an_address_that_lost_its_port_goes_too(scene: Any) -> None:
    await full(scene)
    fip = await scene.call(scene.principal, "network", "floatingip.list")
    scene.cloud.foreign("network", "disassociate", fip[0]["id"])
    await gone(scene)
    assert left(scene) == (0, 0, 0)


async def test_a_guest_that_does_not_let_go_of_its_volume_cannot_hold_the_deletion_up(scene: Any) -> None:
    await full(scene)
    scene.cloud.settings.durations.volume_detach = 1e9
    await gone(scene, passes=10)
    assert left(scene) == (0, 0, 0)


async def test_a_claim_whose_owner_does_not_answer_keeps_the_server(scene: Any) -> None:
    await full(scene)
    reply = scene.bench.requests.replies.pop("rpc.volumes.release")

    def silent(_ask: Any) -> Any:
        from roadstead.reconcile.views import RequestFailed

        raise RequestFailed

    scene.bench.requests.replies["rpc.volumes.release"] = silent
    for _ in range(6):
        ending = await scene.run()
        scene.clock.advance(10)
    assert isinstance(ending.outcome, Retry)
    scene.bench.requests.replies["rpc.volumes.release"] = reply
    await gone(scene)
    assert scene.claims == {}

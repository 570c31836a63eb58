"""History: how a resource stood at an earlier time, as long as that is kept."""

from datetime import timedelta
from typing import Any

from tests.world.base import Ref, World

from roadstead.clock import iso, parse_time


def rules(port: int) -> dict[str, Any]:
    return {"rules": [{"direction": "ingress", "protocol": "tcp", "port": {"number": port}}]}


async def test_history_at_a_time_shows_the_status_of_then(world: World) -> None:
    """GIVEN a group that was made, edited and deleted WHEN its history is asked for at times in between
    THEN each answer has the spec and the status that stood then, and says so where nothing did."""
    home = await world.home()

    async def last() -> str:
        return str((await world.history(group))[-1]["at"])

    async def at(moment: str) -> dict[str, Any]:
        return await world.request("securitygroup", "history", {"id": group.id, "at": moment})

    async def port_at(moment: str) -> tuple[int, str]:
        document = (await at(moment))["status"]
        return document["spec"]["rules"][0]["port"]["number"], document["status"]["provisioningStatus"]

    ids = {"networkId": home.network.id, "identityId": home.identity.id}
    group: Ref = await world.apply("securitygroup", world.name("any"), rules(22), **ids)
    await world.until(group, "provisioned")
    first = await last()
    group = await world.edit(group, **rules(443))
    await world.until(group, "provisioned")
    second = await last()
    assert (await port_at(first), await port_at(second)) == ((22, "provisioned"), (443, "provisioned"))
    await world.delete(group)
    gone = await world.until(group, "gone")
    assert (await port_at(first), await port_at(second)) == ((22, "provisioned"), (443, "provisioned"))
    assert (await port_at(str(gone["gone"])))[1] == "deprovisioned"
    made = parse_time(str(gone["metadata"]["creationTime"]))
    before = await at(iso(made - timedelta(milliseconds=5)))
    assert before["status"] is None
    assert before["entries"] == []
    assert "not there yet" in before["note"]
    old = await at(iso(made - timedelta(days=40)))
    assert old["status"] is None
    assert "is not kept" in old["note"]
    now = await world.request("securitygroup", "history", {"id": group.id})
    assert now["status"]["gone"] == gone["gone"]
    assert {e["kind"] for e in now["entries"]} == {"decided", "acted"}

"""Cases from fault reports about many members in one call."""

import asyncio
from typing import Any

import pytest

from .building import Built, build, member, removed
from .client import Client
from .ground import Ground
from .people import Home


@pytest.fixture
async def built(user: Client, red: Home) -> Any:
    made = await build(user, red.subnet)
    yield made
    await removed(user, made.lb)


async def addresses(user: Client, built: Built) -> list[tuple[str, int]]:
    rows = (await user.call("GET", built.members_path)).body["members"]
    return sorted((row["address"], row["protocol_port"]) for row in rows)


async def statuses(user: Client, built: Built) -> Any:
    return (await user.call("GET", f"loadbalancers/{built.lb}/status")).body


async def test_oc_02_a_pool_is_emptied_by_one_call_and_what_is_no_list_is_refused(
    user: Client, built: Built, ground: Ground
) -> None:
    before = ground.rows()
    for body in ({"members": None}, {}):
        reply = await user.call("PUT", built.members_path, body)
        assert reply.status == 400, reply.body
        assert "members" in reply.fault
        assert ground.rows() == before
    for _ in range(2):
        reply = await user.call("PUT", built.members_path, {"members": []})
        assert reply.status == 202, reply.body
        await user.active(f"loadbalancers/{built.lb}")
        assert await addresses(user, built) == []
    assert ground.pending() == []


@pytest.mark.parametrize(
    ("members", "codes"),
    [
        ([member("192.0.2.10", weight=1), member("192.0.2.10", weight=5)], (400,)),
        ([member("192.0.2.20"), member("192.0.2.20")], (400, 409)),
        ([member("2001:db8::5"), member("2001:0db8:0:0:0:0:0:5")], (400, 409)),
    ],
    ids=["known", "new", "two-spellings"],
)
async def test_oc_03_the_same_member_twice_changes_nothing_and_locks_nothing(
    user: Client, built: Built, ground: Ground, members: list[Any], codes: tuple[int, ...]
) -> None:
    before, rows = await statuses(user, built), ground.rows()
    reply = await user.call("PUT", built.members_path, {"members": members})
    assert reply.status in codes, reply.body
    assert await statuses(user, built) == before
    assert ground.rows() == rows
    again = await user.call("PUT", built.members_path, {"members": [member("192.0.2.10")]})
    assert again.status == 202, again.body
    await user.active(f"loadbalancers/{built.lb}")
    assert await addresses(user, built) == [("192.0.2.10", 80)]


async def test_oc_03_a_member_is_known_in_any_spelling(user: Client, built: Built) -> None:
    await user.made("member", built.members_path, built.lb, **member("2001:db8::5"))
    reply = await user.call("POST", built.members_path, {"member": member("2001:DB8:0::5")})
    assert reply.status == 409, reply.body
    sixes = [m for m in await addresses(user, built) if ":" in m[0]]
    reply = await user.call("PUT", built.members_path, {"members": [member("2001:0db8::0005", weight=3)]})
    assert reply.status == 202, reply.body
    await user.active(f"loadbalancers/{built.lb}")
    (row,) = (await user.call("GET", built.members_path)).body["members"]
    assert (row["address"], row["weight"]) == (sixes[0][0], 3)


async def test_oc_19_two_batches_at_the_same_instant_never_mix(user: Client, built: Built) -> None:
    a, b, c = (member(f"192.0.2.{n}") for n in (101, 102, 103))
    first, second = [("192.0.2.101", 80), ("192.0.2.102", 80)], [("192.0.2.102", 80), ("192.0.2.103", 80)]
    both = 0
    for round_ in range(50):
        replies = await asyncio.gather(
            user.call("PUT", built.members_path, {"members": [a, b]}),
            user.call("PUT", built.members_path, {"members": [b, c]}),
        )
        codes = sorted(reply.status for reply in replies)
        assert codes in ([202, 409], [202, 202]), [r.body for r in replies]
        both += codes == [202, 202]
        await user.active(f"loadbalancers/{built.lb}")
        found = await addresses(user, built)
        assert found in (first, second), (round_, found)
        if codes == [202, 409]:
            assert found == (first if replies[0].status == 202 else second)
    assert both < 50

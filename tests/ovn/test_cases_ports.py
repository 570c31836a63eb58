"""Cases from fault reports: whose a VIP port is (OC-16), and hundreds of members in one call (OC-20)."""

import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from roadstead.testing.private_ovn import PrivateOvn

from .building import built
from .lbaas import Json, Refused
from .machines import within
from .stack import Stack

ANSWERED_WITHIN = 2.0


@pytest.fixture(scope="module")
def rows_ovn() -> Iterator[PrivateOvn]:
    """Rows alone: nobody sends a packet here."""
    with PrivateOvn(northd=False) as made:
        yield made


@pytest.fixture(scope="module")
def rows_stack(make_stack: Callable[..., Stack], rows_ovn: PrivateOvn) -> Stack:
    return make_stack(rows_ovn)


def marks(port: Json) -> dict[str, Any]:
    return {key: port[key] for key in ("id", "name", "device_owner", "device_id", "fixed_ips")}


@pytest.mark.parametrize("name", ["front", "ovn-lb-vip-of-mine"])
def test_oc_16_a_port_that_the_user_brought_stays_the_users(rows_stack: Stack, name: str) -> None:
    scene, user = rows_stack.scene, rows_stack.user
    port = scene.make(
        "port", name=name, network_id=scene.front.network, fixed_ips=[{"subnet_id": scene.front.subnet}]
    )
    before = marks(port)
    lb = user.balancer(name="brought", vip_port_id=port["id"])
    assert lb["vip_address"] == before["fixed_ips"][0]["ip_address"]
    rows_stack.restart_worker()
    user.change(lb["id"], f"loadbalancers/{lb['id']}", "loadbalancer", description="seen by the new process")
    assert [marks(p) for p in scene.ports(id=port["id"])] == [before]
    user.destroy(lb["id"])
    assert [marks(p) for p in scene.ports(id=port["id"])] == [before]
    # A creation that fails
    pool = {"name": "refused", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}
    with pytest.raises(Refused, match="501"):
        user.call("POST", "loadbalancers", {"loadbalancer": {"vip_port_id": port["id"], "pools": [pool]}})
    assert user.list("loadbalancers") == []
    assert [marks(p) for p in scene.ports(id=port["id"])] == [before]
    scene.drop("port", port["id"])


def test_oc_16_a_port_that_we_made_says_whose_it_is_and_goes_with_its_load_balancer(
    rows_stack: Stack,
) -> None:
    scene, user = rows_stack.scene, rows_stack.user
    lb = user.balancer(name="ours", vip_subnet_id=scene.front.subnet)
    (port,) = scene.ports(id=lb["vip_port_id"])
    assert (port["device_owner"], port["device_id"]) == ("ovn-lb:vip", f"lb-{lb['id']}")
    assert port["name"] == f"ovn-lb-vip-{lb['id']}"
    answer = scene.admin.send(
        "compute", "POST", "/v2.1/servers",
        {
            "server": {
                "name": "thief", "networks": [{"port": port["id"]}],
                "imageRef": scene.admin.call("image", "GET", "/v2/images")["images"][0]["id"],
                "flavorRef": scene.admin.call("compute", "GET", "/v2.1/flavors")["flavors"][0]["id"],
            }
        },
    )  # fmt: skip
    assert answer.status in (400, 409)
    assert marks(scene.ports(id=port["id"])[0]) == marks(port)
    user.destroy(lb["id"])
    assert within(10, lambda: scene.ports(id=port["id"]) == []) is not None


def transactions(ovn: PrivateOvn) -> int:
    """How many the database's own log holds."""
    shown = subprocess.run(
        ["ovsdb-tool", "show-log", str(ovn.home / "db/nb.db")],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout
    return sum(line.startswith("record ") for line in shown.splitlines())


def timed(action: Callable[[], object]) -> float:
    start = time.monotonic()
    action()
    return time.monotonic() - start


def members_of(stack: Stack, count: int) -> list[Json]:
    subnet = stack.scene.front.subnet
    return [
        {"address": f"10.50.1.{n}", "protocol_port": 8000 + n, "subnet_id": subnet}
        for n in range(10, 10 + count)
    ]


def test_oc_20_a_batch_of_members_is_one_transaction_however_many(
    rows_stack: Stack, rows_ovn: PrivateOvn
) -> None:
    user, made = rows_stack.user, built(rows_stack, "batch", [])
    written = []
    for count in (20, 200):
        before = transactions(rows_ovn)
        body = {"members": members_of(rows_stack, count)}
        spent = timed(lambda body=body: user.call("PUT", f"pools/{made.pool}/members", body))  # type: ignore[misc]  # a lambda with a default
        assert spent < ANSWERED_WITHIN
        user.settled(made.id)
        written.append(transactions(rows_ovn) - before)
        assert len(next(iter(rows_stack.vips_of(made.id).values()))) == count
    assert written == [1, 1]
    assert rows_stack.differences(made.id) == {}
    user.destroy(made.id)


@pytest.mark.timeout(240)
def test_oc_20_a_cascade_delete_of_a_thousand_members_is_answered_at_once_and_is_one_transaction(
    rows_stack: Stack, rows_ovn: PrivateOvn
) -> None:
    user, front = rows_stack.user, rows_stack.scene.front
    pools = [
        {
            "name": f"pool{n}", "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT",
            "members": members_of(rows_stack, 50),
        }
        for n in range(20)
    ]  # fmt: skip
    listeners = [
        {"protocol": "TCP", "protocol_port": 80 + n, "default_pool": {"name": f"pool{n}"}} for n in range(20)
    ]
    lb = user.balancer(name="large", vip_subnet_id=front.subnet, pools=pools, listeners=listeners, within=60)
    assert sum(len(backends) for backends in rows_stack.vips_of(lb["id"]).values()) == 1000
    (port,) = rows_stack.scene.ports(id=lb["vip_port_id"])
    before = transactions(rows_ovn)
    assert timed(lambda: user.call("DELETE", f"loadbalancers/{lb['id']}?cascade=true")) < ANSWERED_WITHIN
    assert within(60, lambda: rows_stack.rows_of(lb["id"]) == []) is not None
    assert (
        within(60, lambda: not any(one["id"] == lb["id"] for one in user.list("loadbalancers"))) is not None
    )
    # One for the rows, and the removal of the VIP's switch port, which is the network service's.
    assert within(10, lambda: rows_stack.scene.ports(id=port["id"]) == []) is not None
    assert transactions(rows_ovn) - before == 2

"""Ports of VIPs: asked for as the original asks, left behind by nobody, removed only when they are ours."""

from collections.abc import Sequence
from typing import Any

import pytest

from roadstead_ovn.network import Json, NetworkRefused
from roadstead_ovn.vip_ports import PortRefused, make_vip_ports, remove_vip_ports

LB = "0000001b-0000-4000-8000-000000000001"
WANTED = {
    "vip_network_id": "net",
    "vip_subnet_id": "sub",
    "vip_port_id": None,
    "vip_address": "10.0.1.100",
    "vip_qos_policy_id": None,
}
MORE = [
    {"network_id": "net", "subnet_id": "sub-2", "ip_address": "10.0.9.100", "port_id": None},
    {"network_id": "net", "subnet_id": "sub-6", "ip_address": None, "port_id": None},
]


class Scripted:
    """Neutron with ports by id.  refuses: (status, text) of the creation with that number, counted from 1."""

    def __init__(self, refuses: dict[int, tuple[int, str]] | None = None, **ports: Json) -> None:
        self.ports: dict[str, Json] = dict(ports)
        self.refuses = refuses or {}
        self.bodies: list[Json] = []
        self.removed: list[str] = []

    async def subnets(self, identifiers: Sequence[str]) -> Sequence[Json]:
        raise AssertionError("no subnet is asked for")

    async def port(self, identifier: str) -> Json | None:
        return self.ports.get(identifier)

    async def ports_named(self, name: str, network_id: str) -> Sequence[Json]:
        return [p for p in self.ports.values() if (p["name"], p["network_id"]) == (name, network_id)]

    async def ports_of(self, identifiers: Sequence[str]) -> Sequence[Json]:
        raise AssertionError("no port is looked for by id")

    async def ports_owned(self, owners: Sequence[str]) -> Sequence[Json]:
        raise AssertionError("no port is looked for by its owner")

    async def make_port(self, body: Json) -> Json:
        self.bodies.append(body)
        number = len(self.bodies)
        if number in self.refuses:
            raise NetworkRefused(*self.refuses[number])
        fixed = {"ip_address": f"10.9.9.{number}", **body["fixed_ips"][0]}
        made = {**body, "id": f"port-{number}", "fixed_ips": [fixed]}
        self.ports[made["id"]] = made
        return made

    async def remove_port(self, identifier: str) -> None:
        self.removed.append(identifier)
        self.ports.pop(identifier, None)

    async def recompute_floating_ip(self, address: str) -> None:
        raise AssertionError("no floating IP is touched")

    def close(self) -> None:
        return


async def make(network: Scripted, wanted: Json = WANTED, more: Sequence[Json] = ()) -> Any:
    return await make_vip_ports(network, LB, "project", wanted, more)


async def test_the_port_is_made_as_the_original_makes_it() -> None:
    network = Scripted()
    vip, more = await make(network)
    assert vip == {**WANTED, "vip_port_id": "port-1"}
    assert more == []
    assert network.bodies == [
        {
            "name": f"ovn-lb-vip-{LB}",
            "network_id": "net",
            "fixed_ips": [{"subnet_id": "sub", "ip_address": "10.0.1.100"}],
            "admin_state_up": True,
            "project_id": "project",
            "device_owner": "ovn-lb:vip",
            "device_id": f"lb-{LB}",
        }
    ]


async def test_an_address_that_was_not_wanted_is_the_ports() -> None:
    network = Scripted()
    vip, _ = await make(network, {**WANTED, "vip_address": None})
    assert vip["vip_address"] == "10.9.9.1"
    assert network.bodies[0]["fixed_ips"] == [{"subnet_id": "sub"}]


async def test_additional_ports_are_numbered() -> None:
    network = Scripted()
    _, more = await make(network, more=MORE)
    assert [body["name"] for body in network.bodies[1:]] == [
        f"ovn-lb-vip-additional-{n}-{LB}" for n in (1, 2)
    ]
    assert more == [
        {"port_id": "port-2", "network_id": "net", "subnet_id": "sub-2", "ip_address": "10.0.9.100"},
        {"port_id": "port-3", "network_id": "net", "subnet_id": "sub-6", "ip_address": "10.9.9.3"},
    ]


async def test_a_users_port_is_read_and_left_as_it_is() -> None:
    mine = {
        "id": "mine",
        "name": "my-own",
        "network_id": "net",
        "fixed_ips": [{"subnet_id": "sub", "ip_address": "10.0.1.150"}],
    }
    network = Scripted(mine=mine)
    vip, _ = await make(network, {**WANTED, "vip_port_id": "mine", "vip_address": None})
    assert (vip["vip_port_id"], vip["vip_address"]) == ("mine", "10.0.1.150")
    assert network.bodies == []


async def test_after_a_conflict_the_port_of_our_name_is_used() -> None:
    ours = {
        "id": "ours",
        "name": f"ovn-lb-vip-{LB}",
        "network_id": "net",
        "fixed_ips": [{"subnet_id": "sub", "ip_address": "10.0.1.100"}],
    }
    vip, _ = await make(Scripted({1: (409, "taken")}, ours=ours))
    assert vip["vip_port_id"] == "ours"


@pytest.mark.parametrize(("status", "kind"), [(409, "Conflict"), (500, "DriverError"), (403, "DriverError")])
async def test_a_refusal_has_the_networks_words(status: int, kind: str) -> None:
    with pytest.raises(PortRefused) as caught:
        await make(Scripted({1: (status, "said so")}))
    assert (caught.value.kind, caught.value.text) == (kind, "said so")


async def test_a_later_refusal_leaves_nothing_behind() -> None:
    network = Scripted({3: (409, "taken")})
    with pytest.raises(PortRefused):
        await make(network, more=MORE)
    assert network.removed == ["port-1", "port-2"]
    assert network.ports == {}


def tree(**more: Any) -> Json:
    model = {"vip_port_id": "vip", "additional_vips": [{"port_id": "further"}]}
    return {"loadbalancer_id": LB, "loadbalancer": model, "vip_port_owned": False, **more}


def named(name: str) -> Json:
    return {"name": name, "network_id": "net"}


async def test_ports_that_the_provider_made_go_with_their_load_balancer() -> None:
    network = Scripted(vip=named(f"ovn-lb-vip-{LB}"), further=named(f"ovn-lb-vip-additional-1-{LB}"))
    assert await remove_vip_ports(network, tree()) == 2
    assert network.removed == ["vip", "further"]
    assert await remove_vip_ports(network, tree()) == 0


async def test_a_users_port_stays() -> None:
    network = Scripted(vip=named("my-own"), further=named("my-other"))
    assert await remove_vip_ports(network, tree()) == 0
    assert network.removed == []


async def test_a_port_that_is_the_apis_stays() -> None:
    network = Scripted(vip=named(f"ovn-lb-vip-{LB}"))
    assert await remove_vip_ports(network, tree(vip_port_owned=True)) == 0


async def test_a_brought_port_serves_the_additional_vips_whose_subnets_it_reaches() -> None:
    """The API names it for each of them; another subnet gets a port of its own, and no foreign address."""
    brought = {
        "id": "mine",
        "name": "x",
        "network_id": "net",
        "fixed_ips": [
            {"subnet_id": "sub", "ip_address": "10.0.1.150"},
            {"subnet_id": "sub-2", "ip_address": "10.0.9.7"},
        ],
    }
    network = Scripted(mine=brought)
    named = [{**item, "port_id": "mine", "ip_address": None} for item in MORE]
    vip, further = await make_vip_ports(network, LB, "project", {**WANTED, "vip_port_id": "mine"}, named)
    assert vip["vip_port_id"] == "mine"
    assert [(one["port_id"], one["ip_address"]) for one in further] == [
        ("mine", "10.0.9.7"),
        ("port-1", "10.9.9.1"),
    ]
    assert network.bodies[0]["fixed_ips"] == [{"subnet_id": "sub-6"}]

"""Ports, their addresses and groups, their life with a server, and floating IPs."""

from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud, Stage, stage
from roadstead.testing.cloudsim.caller import Caller
from roadstead.testing.cloudsim.neutron_scene import RoutedNetwork, routed_network


@pytest.fixture
def world() -> Stage:
    cloud = Cloud()
    cloud.clock.freeze()
    return stage(cloud)


@pytest.fixture
def net(world: Stage) -> RoutedNetwork:
    return routed_network(world)


def port(world: Stage, net: RoutedNetwork, **more: Any) -> dict[str, Any]:
    body = {"port": {"name": "p", "network_id": net.network} | more}
    made: dict[str, Any] = world.principal.call("network", "POST", "/v2.0/ports", body, want=201)["port"]
    return made


def floating(world: Stage, net: RoutedNetwork, **more: Any) -> dict[str, Any]:
    body = {"floatingip": {"floating_network_id": net.external} | more}
    made: dict[str, Any] = world.principal.call("network", "POST", "/v2.0/floatingips", body, want=201)
    found: dict[str, Any] = made["floatingip"]
    return found


def read(caller: Caller, path: str, key: str) -> dict[str, Any]:
    found: dict[str, Any] = caller.call("network", "GET", f"/v2.0{path}")[key]
    return found


def refusal(caller: Caller, method: str, path: str, body: Any = None) -> tuple[int, str]:
    response = caller.send("network", method, f"/v2.0{path}", body)
    assert response.status >= 400, response.body
    return response.status, response.body["NeutronError"]["type"]


def test_a_port_takes_the_lowest_free_address_and_the_default_group(world: Stage, net: RoutedNetwork) -> None:
    made = port(world, net)
    assert made["fixed_ips"] == [{"subnet_id": net.subnet, "ip_address": "192.168.10.128"}]
    group = read(world.principal, f"/security-groups/{made['security_groups'][0]}", "security_group")
    assert group["name"] == "default"
    assert (made["status"], made["device_id"], made["device_owner"]) == ("DOWN", "", "")
    assert port(world, net)["fixed_ips"][0]["ip_address"] == "192.168.10.129"


def test_binding_details_are_the_administrators(world: Stage, net: RoutedNetwork) -> None:
    made = port(world, net)
    for caller in (world.principal, world.privileged):
        seen = read(caller, f"/ports/{made['id']}", "port")
        assert [key for key in seen if key.startswith("binding:")] == ["binding:vnic_type"]
    seen = read(world.admin, f"/ports/{made['id']}", "port")
    assert {"binding:host_id", "binding:vif_type", "binding:profile"} <= set(seen)


def test_address_pairs_get_the_ports_mac_and_can_be_cleared(world: Stage, net: RoutedNetwork) -> None:
    made = port(world, net, allowed_address_pairs=[{"ip_address": "10.99.0.0/24"}])
    pair = {"mac_address": made["mac_address"], "ip_address": "10.99.0.0/24"}
    assert made["allowed_address_pairs"] == [pair]
    cleared: dict[str, Any] = {"port": {"allowed_address_pairs": []}}
    changed = world.principal.call("network", "PUT", f"/v2.0/ports/{made['id']}", cleared)["port"]
    assert changed["allowed_address_pairs"] == []
    double = {"port": {"allowed_address_pairs": [{"ip_address": "10.0.0.1"}, {"ip_address": "10.0.0.1"}]}}
    assert refusal(world.principal, "PUT", f"/ports/{made['id']}", double)[0] == 400


@pytest.mark.parametrize(
    ("fixed_ip", "answer"),
    [
        ({"ip_address": "192.168.10.128"}, (409, "IpAddressAlreadyAllocated")),
        ({"ip_address": "10.0.0.1"}, (400, "InvalidIpForNetwork")),
        ({"subnet_id": "nope"}, (404, "SubnetNotFound")),
        ({"ip_address": "192.168.10.255"}, (400, "InvalidIpForSubnet")),
        ({"ip_address": "x"}, (400, "HTTPBadRequest")),
    ],
)
def test_addresses_that_cannot_be_given(
    world: Stage, net: RoutedNetwork, fixed_ip: dict[str, str], answer: tuple[int, str]
) -> None:
    port(world, net)
    body = {"port": {"network_id": net.network, "fixed_ips": [fixed_ip]}}
    assert refusal(world.principal, "POST", "/ports", body) == answer


def test_an_exhausted_pool_is_409_and_a_deleted_port_frees_its_address(
    world: Stage, net: RoutedNetwork
) -> None:
    subnet = {"subnet": {"allocation_pools": [{"start": "192.168.10.200", "end": "192.168.10.200"}]}}
    world.privileged.call("network", "PUT", f"/v2.0/subnets/{net.subnet}", subnet)
    made = port(world, net)
    body = {"port": {"network_id": net.network}}
    assert refusal(world.principal, "POST", "/ports", body) == (409, "IpAddressGenerationFailure")
    world.principal.call("network", "DELETE", f"/v2.0/ports/{made['id']}", want=204)
    assert port(world, net)["fixed_ips"][0]["ip_address"] == "192.168.10.200"


def test_a_group_that_is_not_there_is_404(world: Stage, net: RoutedNetwork) -> None:
    made = port(world, net)
    body = {"port": {"security_groups": ["11111111-1111-4111-8111-111111111111"]}}
    assert refusal(world.principal, "PUT", f"/ports/{made['id']}", body) == (404, "SecurityGroupNotFound")


def test_port_quota_is_409(world: Stage, net: RoutedNetwork) -> None:
    quota = {"quota": {"port": 1, "force": True}}
    world.privileged.call("network", "PUT", f"/v2.0/quotas/{world.project_id}", quota)
    assert refusal(world.principal, "POST", "/ports", {"port": {"network_id": net.network}}) == (
        409,
        "OverQuota",
    )


def test_a_bound_port_turns_active_and_a_port_left_by_its_server_is_down(
    world: Stage, net: RoutedNetwork
) -> None:
    made = port(world, net)
    world.cloud.neutron.port_bind(made["id"], "server-1", "compute-1")
    assert read(world.principal, f"/ports/{made['id']}", "port")["status"] == "DOWN"
    world.cloud.rest()
    seen = read(world.principal, f"/ports/{made['id']}", "port")
    assert (seen["status"], seen["device_id"], seen["device_owner"]) == ("ACTIVE", "server-1", "compute:nova")
    assert len(world.principal.call("network", "GET", "/v2.0/ports?device_id=server-1")["ports"]) == 1
    world.cloud.neutron.port_unbind(made["id"])
    seen = read(world.principal, f"/ports/{made['id']}", "port")
    assert (seen["status"], seen["device_id"], seen["device_owner"]) == ("DOWN", "", "")
    assert world.principal.call("network", "GET", "/v2.0/ports?device_id=server-1")["ports"] == []


def test_a_port_unbound_before_it_came_up_stays_down(world: Stage, net: RoutedNetwork) -> None:
    made = port(world, net)
    world.cloud.neutron.port_bind(made["id"], "server-1", "compute-1")
    world.cloud.neutron.port_unbind(made["id"])
    world.cloud.rest()
    assert read(world.principal, f"/ports/{made['id']}", "port")["status"] == "DOWN"


def test_ports_are_found_by_address(world: Stage, net: RoutedNetwork) -> None:
    made = port(world, net)
    rows = world.principal.call("network", "GET", "/v2.0/ports?fixed_ips=ip_address%3D192.168.10.128")[
        "ports"
    ]
    assert [row["id"] for row in rows] == [made["id"]]
    rows = world.principal.call("network", "GET", f"/v2.0/ports?fixed_ips=subnet_id%3D{net.subnet}")["ports"]
    assert len(rows) == 2


def test_router_ports_are_listed_by_owner_without_the_gateway_port(world: Stage, net: RoutedNetwork) -> None:
    rows = world.principal.call("network", "GET", f"/v2.0/ports?device_id={net.router}")["ports"]
    assert [row["device_owner"] for row in rows] == ["network:router_interface"]
    assert len(world.admin.call("network", "GET", f"/v2.0/ports?device_id={net.router}")["ports"]) == 2
    assert refusal(world.principal, "DELETE", f"/ports/{rows[0]['id']}") == (409, "ServicePortInUse")


def test_a_floating_ip_is_associated_and_a_second_one_on_the_port_is_409(
    world: Stage, net: RoutedNetwork
) -> None:
    made = port(world, net)
    first = floating(world, net, port_id=made["id"], description="managed")
    assert (first["status"], first["fixed_ip_address"], first["router_id"]) == (
        "ACTIVE",
        "192.168.10.128",
        net.router,
    )
    assert first["port_details"]["name"] == "p"
    body = {"floatingip": {"floating_network_id": net.external, "port_id": made["id"]}}
    assert refusal(world.principal, "POST", "/floatingips", body) == (409, "FloatingIPPortAlreadyAssociated")
    assert (
        len(world.principal.call("network", "GET", f"/v2.0/floatingips?port_id={made['id']}")["floatingips"])
        == 1
    )
    second = floating(world, net)
    assert second["floating_ip_address"] == "203.0.113.12", "the refused request left an address behind"
    path = f"/floatingips/{second['id']}"
    assert refusal(world.principal, "PUT", path, {"floatingip": {"port_id": made["id"]}})[0] == 409


def test_a_floating_ip_can_be_taken_off_and_deleted_twice_is_404(world: Stage, net: RoutedNetwork) -> None:
    made = floating(world, net, port_id=port(world, net)["id"])
    path = f"/v2.0/floatingips/{made['id']}"
    off = world.principal.call("network", "PUT", path, {"floatingip": {"port_id": None}})["floatingip"]
    assert (off["port_id"], off["fixed_ip_address"], off["status"]) == (None, None, "DOWN")
    world.principal.call("network", "DELETE", path, want=204)
    assert refusal(world.principal, "DELETE", f"/floatingips/{made['id']}") == (404, "FloatingIPNotFound")
    assert world.cloud.neutron.ports_of(made["id"]) == []


def test_deleting_the_port_leaves_its_floating_ip_unassociated(world: Stage, net: RoutedNetwork) -> None:
    inner = port(world, net)
    made = floating(world, net, port_id=inner["id"])
    world.principal.call("network", "DELETE", f"/v2.0/ports/{inner['id']}", want=204)
    assert read(world.principal, f"/floatingips/{made['id']}", "floatingip")["port_id"] is None


def test_floating_ips_that_cannot_be_made(world: Stage, net: RoutedNetwork) -> None:
    def ask(**body: Any) -> tuple[int, str]:
        return refusal(world.principal, "POST", "/floatingips", {"floatingip": body})

    assert ask(floating_network_id=net.network) == (400, "BadRequest")
    assert ask(floating_network_id="nope") == (404, "NetworkNotFound")
    assert ask(floating_network_id=net.external, port_id="nope") == (404, "PortNotFound")
    call = world.privileged.call
    island = call("network", "POST", "/v2.0/networks", {"network": {"name": "island"}})["network"]["id"]
    subnet = {"network_id": island, "ip_version": 4, "cidr": "10.5.0.0/24"}
    call("network", "POST", "/v2.0/subnets", {"subnet": subnet})
    lonely = world.principal.call("network", "POST", "/v2.0/ports", {"port": {"network_id": island}})["port"]
    answer = ask(floating_network_id=net.external, port_id=lonely["id"])
    assert answer == (404, "ExternalGatewayForFloatingIPNotFound")
    call("network", "PUT", f"/v2.0/quotas/{world.project_id}", {"quota": {"floatingip": 0}})
    assert ask(floating_network_id=net.external) == (409, "OverQuota")


def test_router_interface_rules(world: Stage, net: RoutedNetwork) -> None:
    add, remove = (f"/routers/{net.router}/{verb}_router_interface" for verb in ("add", "remove"))
    subnet = {"subnet_id": net.subnet}
    response = world.privileged.send("network", "PUT", f"/v2.0{add}", subnet)
    assert response.status == 400
    assert "overlaps with cidr" in response.body["NeutronError"]["message"]
    made = floating(world, net, port_id=port(world, net)["id"])
    assert refusal(world.privileged, "PUT", remove, subnet) == (409, "RouterInterfaceInUseByFloatingIP")
    assert refusal(world.privileged, "DELETE", f"/routers/{net.router}") == (409, "RouterInUse")
    body: dict[str, Any] = {"router": {"external_gateway_info": {}}}
    answer = refusal(world.privileged, "PUT", f"/routers/{net.router}", body)
    assert answer == (409, "RouterExternalGatewayInUseByFloatingIp")
    world.principal.call("network", "DELETE", f"/v2.0/floatingips/{made['id']}")
    world.privileged.call("network", "PUT", f"/v2.0{remove}", subnet, want=200)
    assert refusal(world.privileged, "PUT", remove, subnet) == (404, "RouterInterfaceNotFoundForSubnet")
    assert refusal(world.privileged, "PUT", add, {}) == (400, "BadRequest")


def test_a_gateway_must_be_on_an_external_network(world: Stage, net: RoutedNetwork) -> None:
    body = {"router": {"external_gateway_info": {"network_id": net.network}}}
    assert refusal(world.privileged, "POST", "/routers", body) == (400, "BadRequest")


def test_foreign_changes_of_ports_and_floating_ips(world: Stage, net: RoutedNetwork) -> None:
    inner = port(world, net)
    made = floating(world, net, port_id=inner["id"])
    neutron = world.cloud.neutron
    neutron.foreign("disassociate", made["id"], {})
    assert read(world.principal, f"/floatingips/{made['id']}", "floatingip")["port_id"] is None
    neutron.foreign("rename", inner["id"], {"name": "renamed"})
    assert world.principal.call("network", "GET", "/v2.0/ports?name=p")["ports"] == []
    neutron.foreign("delete", inner["id"], {})
    assert refusal(world.principal, "GET", f"/ports/{inner['id']}") == (404, "PortNotFound")
    with pytest.raises(ValueError, match="knows no foreign change"):
        neutron.foreign("explode", made["id"], {})
    with pytest.raises(KeyError):
        neutron.foreign("delete", inner["id"], {})

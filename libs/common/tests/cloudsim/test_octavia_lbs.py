"""Load balancers: nested create, the order in which parts come up, refusals, cascade delete."""

from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud, Outcome, Stage, stage
from roadstead.testing.cloudsim.neutron_scene import RoutedNetwork, routed_network

ROOT = "/v2/lbaas"


@pytest.fixture
def world() -> Stage:
    cloud = Cloud()
    cloud.clock.freeze()
    return stage(cloud)


@pytest.fixture
def net(world: Stage) -> RoutedNetwork:
    return routed_network(world)


def tree(net: RoutedNetwork, **more: Any) -> dict[str, Any]:
    pool = {
        "name": "lb-1-web-pool", "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT",
        "members": [{"address": "192.168.10.130", "protocol_port": 8080, "subnet_id": net.subnet}],
        "healthmonitor": {
            "name": "lb-1-web-monitor", "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 3,
        },
    }  # fmt: skip
    listener = {"name": "lb-1-web-listener", "protocol": "TCP", "protocol_port": 80, "default_pool": pool}
    body = {
        "name": "lb-1", "vip_subnet_id": net.subnet, "provider": "ovn", "vip_address": "192.168.10.140",
        "listeners": [listener],
    }  # fmt: skip
    return {"loadbalancer": body | more}


def create(world: Stage, net: RoutedNetwork, **more: Any) -> dict[str, Any]:
    made = world.principal.call("load-balancer", "POST", f"{ROOT}/loadbalancers", tree(net, **more), want=201)
    found: dict[str, Any] = made["loadbalancer"]
    return found


def settled(world: Stage, net: RoutedNetwork, **more: Any) -> dict[str, Any]:
    made = create(world, net, **more)
    world.cloud.rest()
    return made


def rows(world: Stage, kind: str, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.principal.call("load-balancer", "GET", f"{ROOT}/{kind}{query}")[kind]
    return found


def statuses(world: Stage, lb_id: str) -> list[str]:
    answered = world.principal.call("load-balancer", "GET", f"{ROOT}/loadbalancers/{lb_id}/status")
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "provisioning_status" in value:
                found.append(value["provisioning_status"])
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(answered["statuses"]["loadbalancer"])
    return found


def refusal(world: Stage, method: str, path: str, body: Any = None) -> tuple[int, str]:
    response = world.principal.send("load-balancer", method, f"{ROOT}{path}", body)
    assert response.status >= 400, response.body
    return response.status, response.body["faultstring"]


def test_a_nested_create_answers_the_whole_tree_and_makes_the_vip_port(
    world: Stage, net: RoutedNetwork
) -> None:
    made = create(world, net)
    assert (made["provisioning_status"], made["vip_address"]) == ("PENDING_CREATE", "192.168.10.140")
    (pool,) = made["pools"]
    assert made["listeners"][0]["default_pool_id"] == pool["id"]
    assert pool["members"][0]["address"] == "192.168.10.130"
    assert pool["healthmonitor"]["name"] == "lb-1-web-monitor"
    port = world.principal.call("network", "GET", f"/v2.0/ports/{made['vip_port_id']}")["port"]
    assert (port["device_owner"], port["device_id"]) == ("ovn-lb:vip", f"lb-{made['id']}")
    read = world.principal.call("load-balancer", "GET", f"{ROOT}/loadbalancers/{made['id']}")["loadbalancer"]
    assert read["listeners"] == [{"id": made["listeners"][0]["id"]}]


def test_a_load_balancer_is_active_before_its_children(world: Stage, net: RoutedNetwork) -> None:
    made = create(world, net)
    assert statuses(world, made["id"]) == ["PENDING_CREATE"] * 5
    world.cloud.advance(world.cloud.settings.durations.lb_build)
    assert statuses(world, made["id"]) == ["ACTIVE", *["PENDING_CREATE"] * 4]
    world.cloud.advance(world.cloud.settings.durations.lb_children)
    assert statuses(world, made["id"]) == ["ACTIVE"] * 5


def test_the_switch_brings_children_up_with_the_load_balancer(world: Stage, net: RoutedNetwork) -> None:
    world.cloud.settings.lb_active_before_children = False
    made = create(world, net)
    world.cloud.advance(world.cloud.settings.durations.lb_build)
    assert statuses(world, made["id"]) == ["ACTIVE"] * 5


def test_a_cascade_delete_before_the_children_are_up_strands_pool_and_monitor(
    world: Stage, net: RoutedNetwork
) -> None:
    made = create(world, net)
    world.cloud.advance(world.cloud.settings.durations.lb_build)
    path = f"/loadbalancers/{made['id']}"
    world.principal.call("load-balancer", "DELETE", f"{ROOT}{path}?cascade=true", want=204)
    world.cloud.rest()
    assert refusal(world, "GET", path)[0] == 404
    assert rows(world, "listeners") == []
    (pool,) = rows(world, "pools", "?name=lb-1-web-pool")
    (monitor,) = rows(world, "healthmonitors")
    assert (pool["provisioning_status"], monitor["provisioning_status"]) == ("PENDING_CREATE", "ERROR")
    expected = (409, f"Load Balancer {made['id']} is immutable and cannot be updated.")
    assert refusal(world, "DELETE", f"/pools/{pool['id']}") == expected
    assert refusal(world, "DELETE", f"/healthmonitors/{monitor['id']}") == expected
    again = settled(world, net)
    (own,) = rows(world, "pools", f"?name=lb-1-web-pool&loadbalancer_id={again['id']}")
    assert own["id"] != pool["id"]


def test_a_settled_load_balancer_is_deleted_with_all_its_parts_and_its_port(
    world: Stage, net: RoutedNetwork
) -> None:
    made = settled(world, net)
    path = f"/loadbalancers/{made['id']}"
    refused = refusal(world, "DELETE", path)
    assert refused == (400, f"Validation failure: Cannot delete Load Balancer {made['id']} - it has children")
    world.principal.call("load-balancer", "DELETE", f"{ROOT}{path}?cascade=true", want=204)
    again = refusal(world, "DELETE", f"{path}?cascade=true")
    assert again == (409, f"Invalid state PENDING_DELETE of loadbalancer resource {made['id']}")
    world.cloud.rest()
    assert refusal(world, "DELETE", f"{path}?cascade=true") == (404, f"Load Balancer {made['id']} not found.")
    assert all(not found for found in world.cloud.octavia.dump().values())
    assert world.cloud.neutron.port(made["vip_port_id"]) is None


def test_changes_while_pending_are_409(world: Stage, net: RoutedNetwork) -> None:
    made = create(world, net)
    lb_id, listener = made["id"], made["listeners"][0]["id"]
    change = {"loadbalancer": {"description": "x"}}
    pending = (409, f"Invalid state PENDING_CREATE of loadbalancer resource {lb_id}")
    assert refusal(world, "PUT", f"/loadbalancers/{lb_id}", change) == pending
    assert refusal(world, "DELETE", f"/loadbalancers/{lb_id}?cascade=true") == pending
    immutable = (409, f"Load Balancer {lb_id} is immutable and cannot be updated.")
    assert refusal(world, "PUT", f"/listeners/{listener}", {"listener": {"name": "x"}}) == immutable
    world.cloud.rest()
    world.principal.call("load-balancer", "PUT", f"{ROOT}/loadbalancers/{lb_id}", change, want=200)
    assert statuses(world, lb_id)[0] == "PENDING_UPDATE"
    world.cloud.rest()
    assert statuses(world, lb_id) == ["ACTIVE"] * 5


@pytest.mark.parametrize(
    ("where", "change", "words"),
    [
        ("listener", {"allowed_cidrs": ["10.0.0.0/8"]}, "allowed_cidrs"),
        ("pool", {"lb_algorithm": "ROUND_ROBIN"}, "ROUND_ROBIN"),
        ("pool", {"protocol": "PROXYV2"}, "PROXYV2"),
    ],
)
def test_ovn_refuses_options_with_501_and_leaves_the_vip_port(
    world: Stage, net: RoutedNetwork, where: str, change: dict[str, Any], words: str
) -> None:
    body = tree(net)
    listener = body["loadbalancer"]["listeners"][0]
    (listener if where == "listener" else listener["default_pool"]).update(change)
    status, text = refusal(world, "POST", "/loadbalancers", body)
    assert status == 501
    assert text.startswith("Provider 'ovn' does not support a requested option: ")
    assert words in text
    assert all(not found for found in world.cloud.octavia.dump().values())
    query = "/v2.0/ports?fixed_ips=ip_address%3D192.168.10.140"
    (port,) = world.principal.call("network", "GET", query)["ports"]
    assert (port["device_owner"], port["device_id"][:3]) == ("ovn-lb:vip", "lb-")
    taken = refusal(world, "POST", "/loadbalancers", tree(net))
    assert taken[0] == 409
    assert taken[1].startswith("The VIP IP address is already in use: ")
    world.principal.call("network", "DELETE", f"/v2.0/ports/{port['id']}", want=204)
    create(world, net)


def test_the_switch_takes_the_vip_port_of_a_refused_create_away(world: Stage, net: RoutedNetwork) -> None:
    world.cloud.settings.refused_lb_leaves_vip_port = False
    body = tree(net)
    body["loadbalancer"]["listeners"][0]["allowed_cidrs"] = ["10.0.0.0/8"]
    assert refusal(world, "POST", "/loadbalancers", body)[0] == 501
    create(world, net)


def test_amphora_takes_what_ovn_refuses(world: Stage, net: RoutedNetwork) -> None:
    body = tree(net, provider="amphora")
    listener = body["loadbalancer"]["listeners"][0]
    listener["allowed_cidrs"] = ["10.0.0.0/8"]
    listener["default_pool"].update(lb_algorithm="ROUND_ROBIN", protocol="PROXYV2")
    made = world.principal.call("load-balancer", "POST", f"{ROOT}/loadbalancers", body, want=201)[
        "loadbalancer"
    ]
    assert made["listeners"][0]["allowed_cidrs"] == ["10.0.0.0/8"]
    assert made["pools"][0]["protocol"] == "PROXYV2"


def test_an_unknown_provider_is_400_and_leaves_nothing(world: Stage, net: RoutedNetwork) -> None:
    answer = refusal(world, "POST", "/loadbalancers", tree(net, provider="nope"))
    assert answer == (400, "Provider 'nope' is not enabled.")
    create(world, net)


def test_the_same_name_again_is_accepted_and_both_are_found(world: Stage, net: RoutedNetwork) -> None:
    settled(world, net)
    create(world, net, vip_address="192.168.10.141")
    assert len(rows(world, "loadbalancers", "?name=LB-1")) == 2
    assert rows(world, "loadbalancers", "?name=lb") == []


def test_inv_313_fuzzy_filters_of_load_balancers_match_prefixes(world: Stage, net: RoutedNetwork) -> None:
    settled(world, net)
    world.cloud.settings.change({"name_filter": "fuzzy"})
    assert len(rows(world, "loadbalancers", "?name=lb-")) == 1
    assert len(rows(world, "pools", "?name=lb-1-")) == 1


def test_pages_name_a_next_link(world: Stage, net: RoutedNetwork) -> None:
    for number in range(3):
        create(world, net, name=f"lb{number}", vip_address=f"192.168.10.15{number}")
    world.cloud.settings.pages.load_balancer = 2
    body = world.principal.call("load-balancer", "GET", f"{ROOT}/loadbalancers")
    assert [row["name"] for row in body["loadbalancers"]] == ["lb0", "lb1"]
    path = body["loadbalancers_links"][0]["href"].split("/load-balancer", 1)[1]
    body = world.principal.call("load-balancer", "GET", path)
    assert [row["name"] for row in body["loadbalancers"]] == ["lb2"]
    assert body["loadbalancers_links"] == []


def test_an_unknown_filter_and_attribute_are_400(world: Stage, net: RoutedNetwork) -> None:
    settled(world, net)
    expected = (400, "One or more arguments are either duplicate or invalid")
    assert refusal(world, "GET", "/loadbalancers?nope=1") == expected
    assert refusal(world, "POST", "/loadbalancers", tree(net, nope=1))[0] == 400


def test_nested_pools_need_names_that_are_unique_and_defined(world: Stage, net: RoutedNetwork) -> None:
    body = tree(net)
    body["loadbalancer"]["listeners"][0]["default_pool"] = {"name": "elsewhere"}
    assert (
        "was referenced but no full definition was found" in refusal(world, "POST", "/loadbalancers", body)[1]
    )
    body = tree(net, vip_address="192.168.10.142")
    del body["loadbalancer"]["listeners"][0]["default_pool"]["name"]
    assert "Pools must be named" in refusal(world, "POST", "/loadbalancers", body)[1]


def test_outcomes_turn_load_balancer_or_one_part_to_error(world: Stage, net: RoutedNetwork) -> None:
    world.cloud.faults.add_outcome(Outcome("lb_build", "^lb-1$"))
    made = settled(world, net)
    assert statuses(world, made["id"])[0] == "ERROR"
    world.principal.call(
        "load-balancer", "DELETE", f"{ROOT}/loadbalancers/{made['id']}?cascade=true", want=204
    )
    world.cloud.rest()
    world.cloud.faults.add_outcome(Outcome("monitor_build", "monitor"))
    made = settled(world, net)
    assert sorted(statuses(world, made["id"])) == ["ACTIVE"] * 4 + ["ERROR"]


def test_other_projects_see_403_and_empty_lists(world: Stage, net: RoutedNetwork) -> None:
    made = settled(world, net)
    response = world.region.send("load-balancer", "GET", f"{ROOT}/loadbalancers/{made['id']}")
    assert (response.status, response.body["faultstring"]) == (
        403,
        "Policy does not allow this request to be performed.",
    )
    assert world.region.call("load-balancer", "GET", f"{ROOT}/loadbalancers")["loadbalancers"] == []


def test_quota_is_403_and_written_by_the_administrator_only(world: Stage, net: RoutedNetwork) -> None:
    path = f"{ROOT}/quotas/{world.project_id}"
    body = {"quota": {"loadbalancer": 0}}
    assert world.privileged.send("load-balancer", "PUT", path, body).status == 403
    world.admin.call("load-balancer", "PUT", path, body, want=202)
    expected = (403, "Quota has been met for resources: Load Balancer")
    assert refusal(world, "POST", "/loadbalancers", tree(net)) == expected
    assert world.cloud.neutron.dump()["ports"] == [
        row for row in world.cloud.neutron.dump()["ports"] if not row["name"].startswith("ovn-lb")
    ]


def test_a_floating_ip_goes_on_the_vip_port(world: Stage, net: RoutedNetwork) -> None:
    made = settled(world, net)
    body = {"floatingip": {"floating_network_id": net.external, "port_id": made["vip_port_id"]}}
    floating = world.principal.call("network", "POST", "/v2.0/floatingips", body, want=201)["floatingip"]
    assert floating["fixed_ip_address"] == "192.168.10.140"


def test_a_vip_of_a_given_port_is_not_deleted_with_the_load_balancer(
    world: Stage, net: RoutedNetwork
) -> None:
    port = world.principal.call("network", "POST", "/v2.0/ports", {"port": {"network_id": net.network}})[
        "port"
    ]
    body = {"loadbalancer": {"name": "own", "vip_port_id": port["id"], "provider": "ovn"}}
    made = world.principal.call("load-balancer", "POST", f"{ROOT}/loadbalancers", body, want=201)[
        "loadbalancer"
    ]
    assert made["vip_address"] == port["fixed_ips"][0]["ip_address"]
    world.cloud.rest()
    world.principal.call("load-balancer", "DELETE", f"{ROOT}/loadbalancers/{made['id']}", want=204)
    world.cloud.rest()
    assert world.cloud.neutron.port(port["id"]) is not None


def test_providers_are_listed_and_both_roots_answer(world: Stage) -> None:
    for root in ("/v2/lbaas", "/v2.0/lbaas"):
        listed = world.principal.call("load-balancer", "GET", f"{root}/providers")["providers"]
        assert [row["name"] for row in listed] == ["ovn", "amphora"]
    versions = world.principal.call("load-balancer", "GET", "/")["versions"]
    assert {"v2.0", "v2.22"} <= {row["id"] for row in versions}

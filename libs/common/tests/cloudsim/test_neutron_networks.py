"""Networks and subnets: provider attributes by scope, in-use refusals, lists and quotas."""

from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud, Stage, policy, stage
from roadstead.testing.cloudsim.caller import Caller
from roadstead.testing.cloudsim.neutron_scene import routed_network

TYPE, PHYSICAL, SEGMENT = "provider:network_type", "provider:physical_network", "provider:segmentation_id"


@pytest.fixture
def world() -> Stage:
    cloud = Cloud()
    cloud.clock.freeze()
    return stage(cloud)


def vlan(number: int | None = 100, physical: str = "physnet1", name: str = "v") -> dict[str, Any]:
    segment = {TYPE: "vlan", PHYSICAL: physical, SEGMENT: number}
    return {"network": {"name": name, "segments": [segment]}}


def refusal(caller: Caller, method: str, path: str, body: Any = None) -> tuple[int, str, str]:
    response = caller.send("network", method, f"/v2.0{path}", body)
    assert response.status >= 400, response.body
    error = response.body["NeutronError"]
    return response.status, error["type"], error["message"]


def test_a_vlan_network_by_one_segment_shows_provider_attributes_to_the_manager_only(world: Stage) -> None:
    made = world.privileged.call("network", "POST", "/v2.0/networks", vlan(123))["network"]
    assert (made[TYPE], made[PHYSICAL], made[SEGMENT]) == ("vlan", "physnet1", 123)
    assert "segments" not in made
    seen = world.principal.call("network", "GET", f"/v2.0/networks/{made['id']}")["network"]
    assert not [key for key in seen if key.startswith("provider:")]
    listed = world.principal.call("network", "GET", "/v2.0/networks?name=v")["networks"]
    assert [row["id"] for row in listed] == [made["id"]]
    assert SEGMENT not in listed[0]


def test_two_segments_are_shown_as_segments(world: Stage) -> None:
    body = vlan(10)
    body["network"]["segments"].append({TYPE: "vlan", PHYSICAL: "physnet1", SEGMENT: 11})
    made = world.privileged.call("network", "POST", "/v2.0/networks", body)["network"]
    assert [segment[SEGMENT] for segment in made["segments"]] == [10, 11]
    assert SEGMENT not in made


@pytest.mark.parametrize("who", ["principal", "region"])
def test_a_member_and_a_stock_cloud_refuse_vlan_networks(world: Stage, who: str) -> None:
    if who == "region":
        world.cloud.settings.change({"policy": "stock"})
    caller = world.principal if who == "principal" else world.privileged
    status, kind, text = refusal(caller, "POST", "/networks", vlan())
    assert (status, kind) == (403, "PolicyNotAuthorized")
    assert text == "(rule:create_network and rule:create_network:segments) is disallowed by policy"


def test_three_provider_attributes_need_their_own_three_overrides(world: Stage) -> None:
    body = {"network": {"name": "v", TYPE: "vlan", PHYSICAL: "physnet1", SEGMENT: 7}}
    world.cloud.settings.policy_overrides.discard(policy.NEUTRON_CREATE_PROVIDER_SEGMENT)
    assert refusal(world.privileged, "POST", "/networks", body)[0] == 403
    world.cloud.settings.policy_overrides.add(policy.NEUTRON_CREATE_PROVIDER_SEGMENT)
    assert world.privileged.call("network", "POST", "/v2.0/networks", body, want=201)["network"][SEGMENT] == 7


def test_a_missing_read_override_hides_the_vlan_id_without_an_error(world: Stage) -> None:
    made = world.privileged.call("network", "POST", "/v2.0/networks", vlan())["network"]
    world.cloud.settings.policy_overrides.discard(policy.NEUTRON_GET_PROVIDER_SEGMENT)
    seen = world.privileged.call("network", "GET", f"/v2.0/networks/{made['id']}", want=200)["network"]
    assert SEGMENT not in seen
    assert seen[TYPE] == "vlan"


def test_a_vlan_id_in_use_is_409_and_an_unknown_physical_network_400(world: Stage) -> None:
    world.privileged.call("network", "POST", "/v2.0/networks", vlan(100))
    status, kind, text = refusal(world.privileged, "POST", "/networks", vlan(100))
    assert (status, kind) == (409, "VlanIdInUse")
    assert "The VLAN 100 on physical network physnet1 is in use." in text
    assert refusal(world.privileged, "POST", "/networks", vlan(101, "nope"))[:2] == (400, "InvalidInput")
    assert refusal(world.privileged, "POST", "/networks", vlan(4095))[:2] == (400, "InvalidInput")
    world.privileged.call("network", "POST", "/v2.0/networks", vlan(100, "physnet2"), want=201)


def test_a_vlan_without_id_takes_the_lowest_free_one(world: Stage) -> None:
    world.privileged.call("network", "POST", "/v2.0/networks", vlan(1))
    made = world.privileged.call("network", "POST", "/v2.0/networks", vlan(None))["network"]
    assert made[SEGMENT] == 2


def test_external_and_shared_networks_are_the_administrators(world: Stage) -> None:
    for key in ("router:external", "shared"):
        body = {"network": {"name": "x", key: True}}
        assert refusal(world.privileged, "POST", "/networks", body)[0] == 403
        assert world.admin.call("network", "POST", "/v2.0/networks", body, want=201)["network"][key] is True


def test_networks_of_other_projects_are_404_and_the_external_one_is_seen_but_not_changed(
    world: Stage,
) -> None:
    made = world.privileged.call("network", "POST", "/v2.0/networks", {"network": {"name": "n"}})["network"]
    assert refusal(world.region, "GET", f"/networks/{made['id']}")[:2] == (404, "NetworkNotFound")
    external = world.principal.call("network", "GET", "/v2.0/networks?router:external=True")["networks"][0]
    assert refusal(world.privileged, "DELETE", f"/networks/{external['id']}")[0] == 403


def test_names_are_not_unique(world: Stage) -> None:
    for _ in range(2):
        world.privileged.call("network", "POST", "/v2.0/networks", {"network": {"name": "n"}}, want=201)
    assert len(world.privileged.call("network", "GET", "/v2.0/networks?name=n")["networks"]) == 2


@pytest.mark.parametrize(
    ("query", "found"), [("n1", 1), ("N1", 1), ("n", 0), ("n1%25", 0), ("", 0), ("n1&name=n10", 2)]
)
def test_the_name_filter_matches_whole_names_without_regard_to_case(
    world: Stage, query: str, found: int
) -> None:
    for name in ("n1", "n10"):
        world.privileged.call("network", "POST", "/v2.0/networks", {"network": {"name": name}})
    assert len(world.privileged.call("network", "GET", f"/v2.0/networks?name={query}")["networks"]) == found


@pytest.mark.parametrize("query", ["n", "^n1", "1"])
def test_inv_313_fuzzy_name_filters_return_prefix_and_expression_matches(world: Stage, query: str) -> None:
    world.cloud.settings.change({"name_filter": "fuzzy"})
    for name in ("n1", "n10"):
        world.privileged.call("network", "POST", "/v2.0/networks", {"network": {"name": name}})
    rows = world.privileged.call("network", "GET", f"/v2.0/networks?name={query}")["networks"]
    assert {"n1", "n10"} <= {row["name"] for row in rows}


def test_pages_follow_the_marker_and_name_a_next_link(world: Stage) -> None:
    for number in range(5):
        world.privileged.call("network", "POST", "/v2.0/networks", {"network": {"name": f"n{number}"}})
    world.cloud.settings.pages.network = 2
    seen: list[str] = []
    path = "/v2.0/networks?sort_key=name&sort_dir=asc"
    while True:
        body = world.privileged.call("network", "GET", path)
        seen += [row["name"] for row in body["networks"]]
        assert len(body["networks"]) <= 2
        if "networks_links" not in body:
            break
        path = body["networks_links"][0]["href"].split("/network", 1)[1]
    assert seen == ["external", "n0", "n1", "n2", "n3", "n4"]


def test_an_unknown_marker_or_filter_is_400(world: Stage) -> None:
    assert refusal(world.privileged, "GET", "/networks?marker=nope")[0] == 400
    assert (
        refusal(world.privileged, "GET", "/networks?nope=1")[2]
        == "['nope'] is invalid attribute for filtering"
    )


def test_unknown_attributes_and_a_missing_root_are_400(world: Stage) -> None:
    text = refusal(world.privileged, "POST", "/networks", {"network": {"nope": 1}})[2]
    assert text == "Unrecognized attribute(s) 'nope'"
    assert refusal(world.privileged, "POST", "/networks", {"net": {}})[0] == 400
    assert refusal(world.privileged, "POST", "/networks", b"{")[1] == "MalformedRequestBody"


def test_a_network_and_a_subnet_with_ports_are_in_use(world: Stage) -> None:
    net = routed_network(world)
    status, kind, text = refusal(world.privileged, "DELETE", f"/networks/{net.network}")
    assert (status, kind) == (409, "NetworkInUse")
    port = world.principal.call("network", "GET", f"/v2.0/ports?network_id={net.network}")["ports"][0]["id"]
    assert port in text
    assert refusal(world.privileged, "DELETE", f"/subnets/{net.subnet}")[:2] == (409, "SubnetInUse")


def test_deletes_in_order_work_and_the_second_delete_is_404(world: Stage) -> None:
    net, call = routed_network(world), world.privileged.call
    call("network", "PUT", f"/v2.0/routers/{net.router}/remove_router_interface", {"subnet_id": net.subnet})
    for kind, object_id in (("routers", net.router), ("subnets", net.subnet), ("networks", net.network)):
        call("network", "DELETE", f"/v2.0/{kind}/{object_id}", want=204)
        assert refusal(world.privileged, "DELETE", f"/{kind}/{object_id}")[0] == 404
    left = world.cloud.neutron.dump()
    assert [row["name"] for row in left["networks"]] == ["external"]
    assert left["ports"] == left["routers"] == []


def test_deleting_a_network_takes_its_subnets_along(world: Stage) -> None:
    call = world.privileged.call
    network = call("network", "POST", "/v2.0/networks", {"network": {}})["network"]["id"]
    body = {"subnet": {"network_id": network, "ip_version": 4, "cidr": "10.0.0.0/24"}}
    subnet = call("network", "POST", "/v2.0/subnets", body)["subnet"]["id"]
    assert call("network", "GET", f"/v2.0/networks/{network}")["network"]["subnets"] == [subnet]
    call("network", "DELETE", f"/v2.0/networks/{network}", want=204)
    assert refusal(world.privileged, "GET", f"/subnets/{subnet}")[:2] == (404, "SubnetNotFound")


def test_subnet_lists_can_be_emptied_and_overlap_is_400(world: Stage) -> None:
    net = routed_network(world)
    body = {
        "subnet": {
            "dns_nameservers": ["192.0.2.53"],
            "host_routes": [{"destination": "10.9.0.0/16", "nexthop": "192.168.10.9"}],
        }
    }
    made = world.privileged.call("network", "PUT", f"/v2.0/subnets/{net.subnet}", body)["subnet"]
    assert made["dns_nameservers"] == ["192.0.2.53"]
    assert made["host_routes"] == body["subnet"]["host_routes"]
    empty: dict[str, Any] = {"subnet": {"dns_nameservers": [], "host_routes": []}}
    made = world.privileged.call("network", "PUT", f"/v2.0/subnets/{net.subnet}", empty)["subnet"]
    assert made["dns_nameservers"] == made["host_routes"] == []
    overlap = {"subnet": {"network_id": net.network, "ip_version": 4, "cidr": "192.168.10.0/25"}}
    assert refusal(world.privileged, "POST", "/subnets", overlap)[:2] == (400, "InvalidInput")


def test_the_subnet_of_the_external_network_cannot_be_added_to_by_a_tenant(world: Stage) -> None:
    external = routed_network(world).external
    body = {"subnet": {"network_id": external, "ip_version": 4, "cidr": "10.0.0.0/24"}}
    assert refusal(world.privileged, "POST", "/subnets", body)[0] == 403


def quota(caller: Caller, project: str, **values: Any) -> Any:
    return caller.send("network", "PUT", f"/v2.0/quotas/{project}", {"quota": values})


def test_quotas_are_written_by_the_manager_where_the_override_is_and_refused_otherwise(world: Stage) -> None:
    response = quota(world.privileged, world.project_id, network=-1, port=7)
    assert response.status == 200
    assert (response.body["quota"]["network"], response.body["quota"]["port"]) == (-1, 7)
    assert quota(world.principal, world.project_id, network=-1).status == 403
    assert quota(world.privileged, world.region_project_id, network=-1).status == 403
    world.cloud.settings.policy_overrides.discard(policy.NEUTRON_QUOTA_UPDATE)
    assert quota(world.privileged, world.project_id, network=-1).status == 403
    assert world.privileged.call("network", "GET", f"/v2.0/quotas/{world.project_id}")["quota"]["port"] == 7


def test_an_unknown_quota_key_is_400(world: Stage) -> None:
    response = quota(world.privileged, world.project_id, no_such=-1)
    assert response.status == 400
    assert response.body["NeutronError"]["message"] == "Unrecognized attribute(s) 'no_such'"


def test_a_limit_below_the_use_is_400_unless_forced_and_then_stops_new_objects(world: Stage) -> None:
    world.privileged.call("network", "POST", "/v2.0/networks", {"network": {}})
    world.privileged.call("network", "POST", "/v2.0/networks", {"network": {}})
    response = quota(world.privileged, world.project_id, network=1)
    assert response.status == 400
    assert "must be greater than or equal to already used" in response.body["NeutronError"]["message"]
    assert quota(world.privileged, world.project_id, network=1, force=True).status == 200
    status, kind, text = refusal(world.privileged, "POST", "/networks", {"network": {}})
    assert (status, kind, text) == (409, "OverQuota", "Quota exceeded for resources: ['network'].")


def test_a_reader_may_look_but_not_make(world: Stage) -> None:
    roles = {r["name"]: r["id"] for r in world.admin.call("identity", "GET", "/v3/roles")["roles"]}
    body = {"user": {"name": "reader", "domain_id": world.domain_id, "password": "pw"}}
    user = world.admin.call("identity", "POST", "/v3/users", body)["user"]["id"]
    where = f"/v3/projects/{world.project_id}/users/{user}/roles/{roles['reader']}"
    world.admin.call("identity", "PUT", where, want=204)
    reader = Caller.login(world.cloud, {"id": user}, "pw", {"project": {"id": world.project_id}})
    assert reader.send("network", "GET", "/v2.0/networks").status == 200
    assert refusal(reader, "POST", "/networks", {"network": {}})[:2] == (403, "PolicyNotAuthorized")


def test_extensions_zones_and_tags(world: Stage) -> None:
    aliases = [
        row["alias"] for row in world.principal.call("network", "GET", "/v2.0/extensions")["extensions"]
    ]
    assert {"router", "security-group", "provider", "quotas"} <= set(aliases)
    assert refusal(world.principal, "GET", "/extensions/nope")[0] == 404
    zones = world.principal.call("network", "GET", "/v2.0/availability_zones")["availability_zones"]
    assert {zone["resource"] for zone in zones} == {"network", "router"}
    made = world.privileged.call("network", "POST", "/v2.0/networks", {"network": {"name": "t"}})["network"]
    world.privileged.call("network", "PUT", f"/v2.0/networks/{made['id']}/tags", {"tags": ["b", "a"]})
    rows = world.privileged.call("network", "GET", "/v2.0/networks?tags=a,b")["networks"]
    assert [row["tags"] for row in rows] == [["a", "b"]]
    assert world.privileged.call("network", "GET", "/v2.0/networks?tags=a,c")["networks"] == []


def test_a_qos_policy_is_seen_by_its_project_and_when_it_is_shared(world: Stage) -> None:
    made = {}
    for shared in (False, True):
        wanted = {"policy": {"name": "q", "shared": shared}}
        made[shared] = world.admin.call("network", "POST", "/v2.0/qos/policies", wanted)["policy"]["id"]
    listed = world.privileged.call("network", "GET", "/v2.0/qos/policies")["policies"]
    assert [row["id"] for row in listed] == [made[True]]
    hidden = world.privileged.send("network", "GET", f"/v2.0/qos/policies/{made[False]}")
    assert hidden.status == 404
    assert hidden.body["NeutronError"]["type"] == "QosPolicyNotFound"
    assert world.privileged.send("network", "POST", "/v2.0/qos/policies", {"policy": {}}).status == 403
    assert world.admin.send("network", "DELETE", f"/v2.0/qos/policies/{made[True]}").status == 204
    world.cloud.settings.qos_policies = False
    assert world.admin.send("network", "GET", "/v2.0/extensions/qos").status == 404
    assert world.admin.send("network", "GET", "/v2.0/qos/policies").status == 404

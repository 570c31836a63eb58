"""Servers: create with its refusals, what each scope sees, lists with filters and pages, delete."""

import base64
from typing import Any

import pytest

from roadstead.testing.cloudsim import Fault, Outcome, Stage
from roadstead.testing.cloudsim.policy import NOVA_PIN_HOST

ABSENT = "11111111-1111-4111-8111-111111111111"


def create(world: Stage, want: int, **changes: Any) -> Any:
    body = {
        "name": "web", "imageRef": world.image_ids()[0], "flavorRef": world.flavor_id(), "networks": "none",
    } | changes  # fmt: skip
    return world.principal.call("compute", "POST", "/v2.1/servers", {"server": body}, want=want)


def names(world: Stage, query: str, path: str = "/v2.1/servers") -> list[str]:
    found = world.principal.call("compute", "GET", f"{path}?{query}")
    return sorted(row["name"] for row in found["servers"])


def message(body: Any) -> str:
    return str(next(iter(body.values()))["message"])


def test_the_create_answer_has_no_status(world: Stage) -> None:
    made = create(world, 202)["server"]
    assert sorted(made) == ["OS-DCF:diskConfig", "adminPass", "id", "links", "security_groups"]


def test_a_first_boot_passes_the_states_nova_shows(world: Stage) -> None:
    server_id = world.boot()
    seen: list[tuple[str, str | None, bool]] = []
    for _ in range(60):
        server = world.server(server_id)
        now = (
            server["status"],
            server["OS-EXT-STS:task_state"],
            server["OS-SRV-USG:launched_at"] is not None,
        )
        if not seen or seen[-1] != now:
            seen.append(now)
        world.cloud.advance(0.05)
    assert seen == [
        ("BUILD", "scheduling", False),
        ("BUILD", None, False),
        ("BUILD", "networking", False),
        ("BUILD", "block_device_mapping", False),
        ("BUILD", "spawning", False),
        ("ACTIVE", None, True),
    ]


def test_two_reads_without_time_between_them_show_the_same_state(world: Stage) -> None:
    server_id = world.boot()
    assert [world.state(server_id) for _ in range(5)] == [("BUILD", "scheduling")] * 5


@pytest.mark.parametrize(
    ("changes", "status", "text"),
    [
        ({"imageRef": ABSENT}, 400, "Can not find requested image"),
        ({"flavorRef": "nope"}, 400, "Flavor nope could not be found."),
        ({"networks": [{"port": ABSENT}]}, 400, f"Port id {ABSENT} could not be found."),
        ({"key_name": "nope"}, 400, "Invalid key_name provided."),
        ({"user_data": "abcde"}, 400, "Invalid input for field/attribute user_data."),
        ({"nope": 1}, 400, "Additional properties are not allowed ('nope' was unexpected)"),
        ({"metadata": {"a": 1}}, 400, "Invalid input for field/attribute a."),
        (
            {"availability_zone": "nova:compute-1"},
            403,
            "Policy doesn't allow os_compute_api:servers:create:forced_host",
        ),
        ({"hypervisor_hostname": "compute-1"}, 403, f"Policy doesn't allow {NOVA_PIN_HOST} to be performed."),
        ({"networks": [{"uuid": ABSENT}]}, 400, f"Network {ABSENT} could not be found."),
        ({"imageRef": ""}, 400, "Missing imageRef attribute"),
    ],
)
def test_a_create_that_cannot_be_is_refused(
    world: Stage, changes: dict[str, Any], status: int, text: str
) -> None:
    assert message(create(world, status, **changes)).startswith(text)
    assert names(world, "") == []


def test_a_port_in_use_is_409_and_stays_with_its_server(world: Stage) -> None:
    network_id, _ = world.network()
    port = world.port(network_id)["id"]
    server_id = world.settled(networks=[{"port": port}])
    assert message(create(world, 409, networks=[{"port": port}])) == f"Port {port} is still in use."
    held = world.principal.call("network", "GET", f"/v2.0/ports/{port}")["port"]
    assert (held["device_id"], held["status"], held["device_owner"]) == (server_id, "ACTIVE", "compute:nova")


def test_pinning_needs_the_policy_and_a_host_that_is_there(world: Stage) -> None:
    body = {
        "name": "pin", "imageRef": world.image_ids()[0], "flavorRef": world.flavor_id(), "networks": "none",
        "hypervisor_hostname": "compute-2",
    }  # fmt: skip
    made = world.privileged.call("compute", "POST", "/v2.1/servers", {"server": body}, want=202)
    world.cloud.rest()
    shown = world.admin.call("compute", "GET", f"/v2.1/servers/{made['server']['id']}")["server"]
    assert (shown["OS-EXT-SRV-ATTR:host"], shown["user_id"]) == ("compute-2", world.region_user_id)
    nowhere = {"server": body | {"hypervisor_hostname": "nowhere"}}
    refused = world.privileged.call("compute", "POST", "/v2.1/servers", nowhere, want=400)
    assert message(refused) == "Compute host nowhere could not be found."
    world.privileged.call("compute", "POST", "/v2.1/servers", {"server": body}, want=400, version="2.73")
    world.cloud.settings.policy_overrides.remove(NOVA_PIN_HOST)
    world.privileged.call("compute", "POST", "/v2.1/servers", {"server": body}, want=403)


def test_addresses_come_from_the_port_and_its_floating_ip(world: Stage) -> None:
    network_id, subnet_id = world.network("blue")
    external = world.principal.call("network", "GET", "/v2.0/networks?router:external=true")["networks"][0][
        "id"
    ]
    router = {"router": {"name": "r", "external_gateway_info": {"network_id": external}}}
    router_id = world.privileged.call("network", "POST", "/v2.0/routers", router)["router"]["id"]
    world.privileged.call(
        "network", "PUT", f"/v2.0/routers/{router_id}/add_router_interface", {"subnet_id": subnet_id}
    )
    port = world.port(network_id)
    fip = {"floatingip": {"floating_network_id": external, "port_id": port["id"]}}
    floating = world.principal.call("network", "POST", "/v2.0/floatingips", fip)["floatingip"]
    server = world.server(world.settled(networks=[{"port": port["id"]}]))
    assert [
        (a["addr"], a["OS-EXT-IPS:type"], a["OS-EXT-IPS-MAC:mac_addr"]) for a in server["addresses"]["blue"]
    ] == [
        (port["fixed_ips"][0]["ip_address"], "fixed", port["mac_address"]),
        (floating["floating_ip_address"], "floating", port["mac_address"]),
    ]


def test_a_server_is_hidden_from_other_projects_and_host_names_from_members(world: Stage) -> None:
    server_id = world.settled()
    world.region.call("compute", "GET", f"/v2.1/servers/{server_id}", want=404)
    hidden = {
        "OS-EXT-SRV-ATTR:host",
        "OS-EXT-SRV-ATTR:user_data",
        "host_status",
        "OS-EXT-SRV-ATTR:instance_name",
    }
    assert not hidden & set(world.server(server_id))
    shown = world.admin.call("compute", "GET", f"/v2.1/servers/{server_id}")["server"]
    assert hidden <= set(shown)
    world.privileged.call("compute", "GET", "/v2.1/servers/detail?all_tenants=1", want=403)
    rows = world.admin.call("compute", "GET", "/v2.1/servers/detail?all_tenants=1")["servers"]
    assert [row["id"] for row in rows] == [server_id]
    assert "server_groups" in world.server(server_id)
    listed = world.principal.call("compute", "GET", "/v2.1/servers/detail")["servers"][0]
    assert "server_groups" not in listed


@pytest.mark.parametrize(
    ("version", "present", "absent"),
    [
        ("2.1", {"image", "flavor"}, {"locked", "description", "tags", "server_groups", "locked_reason"}),
        ("2.47", {"locked", "description", "tags"}, {"server_groups", "locked_reason"}),
        (
            "2.73",
            {"server_groups", "locked_reason"},
            {"OS-EXT-SRV-ATTR:hostname", "pinned_availability_zone"},
        ),
        ("2.90", {"OS-EXT-SRV-ATTR:hostname"}, {"pinned_availability_zone"}),
        ("latest", {"pinned_availability_zone"}, set()),
    ],
)
def test_fields_of_a_server_follow_the_microversion(
    world: Stage, version: str, present: set[str], absent: set[str]
) -> None:
    server_id = world.settled()
    shown = world.principal.call("compute", "GET", f"/v2.1/servers/{server_id}", version=version)["server"]
    assert present <= set(shown)
    assert not absent & set(shown)
    assert ("id" in shown["flavor"]) is (version == "2.1")


@pytest.mark.parametrize(
    ("version", "status", "text"),
    [
        ("2.999", 406, "Version 2.999 is not supported by the API. Minimum is 2.1 and maximum is 2.104."),
        ("9.1", 406, "Version 9.1 is not supported by the API. Minimum is 2.1 and maximum is 2.104."),
        ("x", 400, "API Version String x is of invalid format."),
    ],
)
def test_a_microversion_beyond_the_range_is_406_and_a_malformed_one_400(
    world: Stage, version: str, status: int, text: str
) -> None:
    refused = world.principal.call("compute", "GET", "/v2.1/servers", want=status, version=version)
    assert message(refused).startswith(text)


def test_answers_name_the_microversion_they_are_in(world: Stage) -> None:
    headers = world.principal.send("compute", "GET", "/v2.1/servers").headers
    assert headers["OpenStack-API-Version"] == "compute 2.90"
    assert headers["X-Openstack-Request-Id"].startswith("req-")


def test_inv_313_a_name_filter_finds_more_than_the_equal_name(world: Stage) -> None:
    for name in ("web-1", "web-10", "xweb-1", "web.1", "db"):
        world.settled(name)
    assert names(world, "name=web-1") == ["web-1", "web-10", "xweb-1"]
    assert names(world, "name=WEB-1") == ["web-1", "web-10", "xweb-1"]
    assert names(world, "name=%5Eweb-1%24") == ["web-1"]
    assert names(world, "name=web.1") == ["web-1", "web-10", "web.1", "xweb-1"]
    assert names(world, "name=%5Eweb%5C.1%24") == ["web.1"]
    for bad in ("*", "%5B"):
        refused = world.principal.call("compute", "GET", f"/v2.1/servers?name={bad}", want=400)
        assert "is not a 'regex'" in message(refused)


def test_other_filters_of_the_list(world: Stage) -> None:
    first, second = world.image_ids()
    network_id, _ = world.network()
    port = world.port(network_id)
    world.settled("a", networks=[{"port": port["id"]}])
    world.cloud.faults.add_outcome(Outcome("server_build", "broken"))
    world.settled("broken", imageRef=second)
    assert names(world, "status=ERROR") == ["broken"]
    assert names(world, f"image={second}") == ["broken"]
    assert names(world, f"image={first}") == ["a"]
    assert names(world, f"ip={port['fixed_ips'][0]['ip_address']}") == ["a"]
    # Accepted and without effect, as in Nova.
    assert names(world, "metadata=%7B%22a%22%3A%22b%22%7D") == ["a", "broken"]
    assert names(world, "deleted=true") == ["a", "broken"]
    world.principal.call("compute", "GET", "/v2.1/servers?nope=1", want=400)
    world.principal.call("compute", "GET", "/v2.1/servers?nope=1", want=200, version="2.1")


def test_pages_follow_limit_and_marker(world: Stage) -> None:
    for number in range(5):
        world.settled(f"s{number}")
    base = "/v2.1/servers/detail?limit=2&sort_key=created_at&sort_dir=asc"
    seen: list[str] = []
    path = base
    for _ in range(3):
        page = world.principal.call("compute", "GET", path)
        seen += [row["name"] for row in page["servers"]]
        links = page.get("servers_links", [])
        if not links:
            break
        assert links[0]["rel"] == "next"
        path = links[0]["href"].removeprefix(f"{world.cloud.settings.base_url}/compute")
        assert "sort_dir=asc" in path
    assert seen == ["s0", "s1", "s2", "s3", "s4"]
    assert names(world, "limit=0") == []
    for bad in ("limit=-1", "limit=x", f"marker={ABSENT}"):
        world.principal.call("compute", "GET", f"/v2.1/servers?{bad}", want=400)


def test_a_small_page_size_makes_links_without_a_limit(world: Stage) -> None:
    world.cloud.settings.pages.compute = 2
    for number in range(3):
        world.settled(f"s{number}")
    page = world.principal.call("compute", "GET", "/v2.1/servers")
    assert [row["name"] for row in page["servers"]] == ["s2", "s1"]
    assert page["servers_links"][0]["href"].endswith(f"marker={page['servers'][-1]['id']}")


def test_changes_since_shows_the_deleted_to_their_project(world: Stage) -> None:
    start = world.cloud.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    server_id = world.settled("gone")
    world.settled("kept")
    world.principal.call("compute", "DELETE", f"/v2.1/servers/{server_id}", want=204)
    world.cloud.rest()
    assert names(world, "") == ["kept"]
    rows = world.principal.call("compute", "GET", f"/v2.1/servers/detail?changes-since={start}")["servers"]
    assert sorted((row["name"], row["status"]) for row in rows) == [("gone", "DELETED"), ("kept", "ACTIVE")]
    assert names(world, "changes-since=2099-01-01T00:00:00Z") == []


def test_a_client_made_port_outlives_its_server_down_and_unbound(world: Stage) -> None:
    network_id, _ = world.network()
    port = world.port(network_id)["id"]
    server_id = world.settled(networks=[{"port": port}])
    world.principal.call("compute", "DELETE", f"/v2.1/servers/{server_id}", want=204)
    assert world.state(server_id) == ("ACTIVE", "deleting")
    world.principal.call("compute", "DELETE", f"/v2.1/servers/{server_id}", want=204)
    world.cloud.rest()
    world.principal.call("compute", "GET", f"/v2.1/servers/{server_id}", want=404)
    world.principal.call("compute", "DELETE", f"/v2.1/servers/{server_id}", want=404)
    left = world.principal.call("network", "GET", f"/v2.0/ports/{port}")["port"]
    assert (left["status"], left["device_id"]) == ("DOWN", "")


def test_a_port_made_by_nova_goes_with_its_server(world: Stage) -> None:
    network_id, _ = world.network()
    server_id = world.settled(networks=[{"uuid": network_id}])
    query = f"/v2.0/ports?device_id={server_id}"
    assert len(world.principal.call("network", "GET", query)["ports"]) == 1
    world.principal.call("compute", "DELETE", f"/v2.1/servers/{server_id}")
    world.cloud.rest()
    assert world.principal.call("network", "GET", f"/v2.0/ports?network_id={network_id}")["ports"] == []


def test_a_failed_first_boot_frees_its_port_for_the_next_try(world: Stage) -> None:
    network_id, _ = world.network()
    port = world.port(network_id)["id"]
    world.cloud.faults.add_outcome(Outcome("server_build", "web", times=1))
    failed = world.settled(networks=[{"port": port}])
    assert world.server(failed)["status"] == "ERROR"
    world.principal.call("compute", "DELETE", f"/v2.1/servers/{failed}", want=204)
    world.cloud.rest()
    again = world.settled(networks=[{"port": port}])
    assert world.server(again)["status"] == "ACTIVE"


@pytest.mark.parametrize(
    ("quota", "text"),
    [
        ({"instances": 1}, "Quota exceeded for instances: Requested 1, but already used 1 of 1 instances"),
        ({"cores": 1}, "Quota exceeded for cores: Requested 1, but already used 1 of 1 cores"),
        ({"ram": 2048}, "Quota exceeded for ram: Requested 2048, but already used 2048 of 2048 ram"),
    ],
)
def test_a_server_beyond_a_quota_is_403(world: Stage, quota: dict[str, int], text: str) -> None:
    world.settled()
    path = f"/v2.1/os-quota-sets/{world.project_id}"
    world.privileged.call("compute", "PUT", path, {"quota_set": quota})
    assert message(create(world, 403)) == text
    world.privileged.call("compute", "PUT", path, {"quota_set": dict.fromkeys(quota, -1)})
    create(world, 202)


def test_a_quota_below_the_use_is_400_unless_forced(world: Stage) -> None:
    for name in ("a", "b"):
        world.settled(name)
    path = f"/v2.1/os-quota-sets/{world.project_id}"
    refused = world.privileged.call("compute", "PUT", path, {"quota_set": {"instances": 1}}, want=400)
    assert message(refused) == (
        "Quota limit 1 for instances must be greater than or equal to already used and reserved 2."
    )
    world.privileged.call("compute", "PUT", path, {"quota_set": {"instances": 1, "force": True}})
    assert world.privileged.call("compute", "GET", path)["quota_set"]["instances"] == 1
    for key in ("floating_ips", "injected_files", "no_such"):
        refused = world.privileged.call("compute", "PUT", path, {"quota_set": {key: -1}}, want=400)
        assert message(refused).startswith("Additional properties are not allowed")
    world.principal.call("compute", "PUT", path, {"quota_set": {"instances": -1}}, want=403)
    world.cloud.settings.change({"policy": "stock"})
    world.privileged.call("compute", "PUT", path, {"quota_set": {"instances": -1}}, want=403)


@pytest.mark.parametrize(
    ("state", "action", "word"),
    [
        ("stopped", {"reboot": {"type": "SOFT"}}, "reboot"),
        ("error", {"reboot": {"type": "SOFT"}}, "reboot"),
        ("active", {"os-start": None}, "start"),
        ("stopped", {"os-stop": None}, "stop"),
        ("error", {"os-start": None}, "start"),
    ],
)
def test_an_action_in_the_wrong_state_is_409(
    world: Stage, state: str, action: dict[str, Any], word: str
) -> None:
    server_id = world.settled()
    world.cloud.foreign("compute", "set", server_id, vm_state=state)
    refused = world.act(server_id, action, 409)
    assert message(refused) == f"Cannot '{word}' instance {server_id} while it is in vm_state {state}"


def test_power_actions_end_where_they_should(world: Stage) -> None:
    server_id = world.settled()
    for action, during, after in (
        ({"os-stop": None}, ("ACTIVE", "powering-off"), ("SHUTOFF", None)),
        ({"os-start": None}, ("SHUTOFF", "powering-on"), ("ACTIVE", None)),
        ({"reboot": {"type": "SOFT"}}, ("REBOOT", "rebooting"), ("ACTIVE", None)),
        ({"reboot": {"type": "HARD"}}, ("HARD_REBOOT", "rebooting_hard"), ("ACTIVE", None)),
    ):
        world.act(server_id, action)
        assert world.state(server_id) == during
        world.cloud.rest()
        assert world.state(server_id) == after


def test_a_hard_reboot_heals_an_errored_server(world: Stage) -> None:
    server_id = world.settled()
    world.cloud.foreign("compute", "error", server_id)
    world.principal.call(
        "compute", "POST", f"/v2.1/servers/{server_id}/metadata", {"metadata": {"a": "b"}}, want=409
    )
    world.act(server_id, {"reboot": {"type": "HARD"}})
    assert world.state(server_id) == ("ERROR", "rebooting_hard")
    world.cloud.rest()
    assert world.state(server_id) == ("ACTIVE", None)
    assert "fault" not in world.server(server_id)


def test_a_snapshot_is_queued_at_once_with_its_metadata(world: Stage) -> None:
    server_id = world.settled()
    made = world.act(server_id, {"createImage": {"name": "snap", "metadata": {"who": "me"}}})
    assert list(made) == ["image_id"]
    image = world.principal.call("image", "GET", f"/v2/images/{made['image_id']}")
    seen = (
        image["status"],
        image["who"],
        image["instance_uuid"],
        image["min_disk"],
        image["unikorn:os:kernel"],
    )
    assert seen == ("queued", "me", server_id, 20, "linux")
    world.cloud.rest()
    assert world.principal.call("image", "GET", f"/v2/images/{made['image_id']}")["status"] == "active"
    assert world.state(server_id) == ("ACTIVE", None)


def test_consoles(world: Stage) -> None:
    server_id = world.settled()
    output = world.act(server_id, {"os-getConsoleOutput": {"length": 5}}, 200)["output"]
    assert len(output.splitlines()) == 5
    path = f"/v2.1/servers/{server_id}/remote-consoles"
    body = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    assert world.principal.call("compute", "POST", path, body)["remote_console"]["url"].startswith("http")
    world.cloud.settings.console_types = ()
    refused = world.principal.call("compute", "POST", path, body, want=400)
    assert message(refused) == "Unavailable console type novnc."


def test_actions_are_remembered(world: Stage) -> None:
    server_id = world.settled()
    world.act(server_id, {"os-stop": None})
    world.cloud.rest()
    rows = world.principal.call("compute", "GET", f"/v2.1/servers/{server_id}/os-instance-actions")[
        "instanceActions"
    ]
    assert [row["action"] for row in rows] == ["stop", "create"]
    one = world.principal.call(
        "compute", "GET", f"/v2.1/servers/{server_id}/os-instance-actions/{rows[0]['request_id']}"
    )
    assert one["instanceAction"]["events"][0]["result"] == "Success"


def test_key_pairs_belong_to_the_user_across_projects(world: Stage) -> None:
    data = base64.b64encode(b"\0\0\0\x0bssh-ed25519" + b"k" * 32).decode()
    body = {"keypair": {"name": "key", "type": "ssh", "public_key": f"ssh-ed25519 {data} me"}}
    world.privileged.call("compute", "POST", "/v2.1/os-keypairs", body, want=201)
    world.principal.call("compute", "GET", "/v2.1/os-keypairs/key", want=404)
    assert world.region.call("compute", "GET", "/v2.1/os-keypairs/key")["keypair"]["name"] == "key"
    refused = world.region.call("compute", "POST", "/v2.1/os-keypairs", body, want=409)
    assert message(refused) == "Key pair 'key' already exists."
    world.principal.call("compute", "POST", "/v2.1/os-keypairs", body, want=201)
    create(world, 202, key_name="key")
    bare = {"keypair": {"name": "k", "type": "ssh"}}
    world.principal.call("compute", "POST", "/v2.1/os-keypairs", bare, want=400, version="2.92")
    world.principal.call("compute", "DELETE", "/v2.1/os-keypairs/key", want=204)
    world.principal.call("compute", "DELETE", "/v2.1/os-keypairs/key", want=404)


def test_server_groups_may_share_a_name_and_know_their_members(world: Stage) -> None:
    body = {"server_group": {"name": "g", "policy": "soft-anti-affinity"}}
    path = "/v2.1/os-server-groups"
    first = world.principal.call("compute", "POST", path, body, want=200)["server_group"]["id"]
    second = world.principal.call("compute", "POST", path, body, want=200)["server_group"]["id"]
    assert first != second
    whole = {
        "server": {
            "name": "in", "imageRef": world.image_ids()[0], "flavorRef": world.flavor_id(), "networks": "none",
        },
        "os:scheduler_hints": {"group": first},
    }  # fmt: skip
    server_id = world.principal.call("compute", "POST", "/v2.1/servers", whole)["server"]["id"]
    assert world.principal.call("compute", "GET", f"{path}/{first}")["server_group"]["members"] == [server_id]
    assert world.server(server_id)["server_groups"] == [first]
    world.principal.call("compute", "DELETE", f"{path}/{second}", want=204)
    world.principal.call("compute", "DELETE", f"{path}/{second}", want=404)


def test_a_lost_answer_of_a_create_leaves_the_server(world: Stage) -> None:
    world.cloud.faults.add(Fault("no_answer_after", service="compute", method="POST", path="/servers$"))
    body = {
        "name": "lost",
        "imageRef": world.image_ids()[0],
        "flavorRef": world.flavor_id(),
        "networks": "none",
    }
    assert world.principal.send("compute", "POST", "/v2.1/servers", {"server": body}).no_answer
    assert names(world, "name=lost") == ["lost"]

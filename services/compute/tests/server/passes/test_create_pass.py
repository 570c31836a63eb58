"""The create path against the simulated cloud: what is asked, as whom, how often, and what a fault leaves behind."""

import base64
import json
from typing import Any

import pytest

from roadstead.reconcile.decision import Code, Done, Park, Retry, Yield
from roadstead.testing.passbench import view

TAGS = [
    {"name": "kubernetes.example.com/cluster-name", "value": "blue"},
    {"name": "Upper.example.com/x", "value": "dropped"},
    {"name": "bare", "value": "dropped"},
    {"name": "region.example.com/server-id", "value": "forged"},
]


async def test_inv_007_two_quiet_passes_read_five_lists_and_write_nothing(scene: Any) -> None:
    scene.bench.edit(publicIPAllocation={"enabled": True})
    await scene.settled()
    before = json.dumps(scene.bench.status, sort_keys=True)
    for _ in range(2):
        scene.forget()
        assert (await scene.run()).outcome == Done()
        assert len(scene.reads()) == 5
        assert scene.writes() == []
    assert json.dumps(scene.bench.status, sort_keys=True) == before


async def test_inv_002_inv_031_inv_033_every_call_is_the_principals_in_its_project(scene: Any) -> None:
    await scene.run()
    asked = [c for c in scene.cloud.log if c.service != "identity"]
    assert {(c.scope, c.project_id, c.user_name) for c in asked} == {
        ("project", scene.project_id, "identity")
    }


async def test_6_1_one_pass_makes_port_address_and_server_in_this_order(scene: Any) -> None:
    scene.bench.edit(publicIPAllocation={"enabled": True})
    ending = await scene.run()
    assert ending.outcome == Done()
    assert [c.path.rsplit("/", 1)[1] for c in scene.writes()] == ["ports", "floatingips", "servers"]
    assert scene.bench.status["privateIP"].startswith("192.0.2.")
    assert scene.bench.status["publicIP"]
    assert scene.conditions()["Active"] == ("False", "Building")


async def test_inv_133_inv_134_inv_135_inv_136_ref_053_metadata_of_a_server(scene: Any) -> None:
    scene.bench.metadata["tags"] = TAGS
    await scene.settled()
    ident = scene.bench.key.id
    assert scene.server.metadata == {
        "kubernetes:cluster_name": "blue",
        "region:server_id": ident,
        "region:region_id": scene.bench.key.region,
        "identity:organization_id": "org",
        "identity:project_id": "proj",
        "serverID": ident,
        "organizationID": "org",
        "projectID": "proj",
        "regionID": scene.bench.key.region,
    }


@pytest.mark.parametrize(("mode", "key"), [("identityKeypair", "unikorn-openstack-provider"), ("none", None)])
async def test_inv_047_inv_049_key_name_by_mode(scene: Any, mode: str, key: str | None) -> None:
    scene.bench.edit(sshInjection=mode)
    await scene.run()
    body = scene.creates()[0].body["server"]
    assert body.get("key_name") == key
    assert ("key_name" in body) is (key is not None)
    assert "os:scheduler_hints" not in body


async def test_inv_054_inv_055_user_data_acts_only_when_the_server_is_made_anew(scene: Any) -> None:
    first, second = (base64.b64encode(f"#!/bin/sh\n# {n}\n".encode()).decode() for n in (1, 2))
    scene.bench.edit(userData=first)
    await scene.settled()
    assert scene.server.user_data == first
    scene.bench.edit(userData=second)
    await scene.settled()
    assert scene.writes() == []
    scene.cloud.foreign("compute", "delete", scene.server.id)
    scene.clock.advance(5)
    await scene.settled()
    assert scene.server.user_data == second


@pytest.mark.parametrize("status", [500, 503, 403])
async def test_ref_048_a_failed_list_is_no_absence(scene: Any, status: int) -> None:
    scene.fault("status", service="compute", path="/servers/detail", status=status, times=None)
    ending = await scene.run()
    assert isinstance(ending.outcome, Retry)
    assert scene.writes() == []


@pytest.mark.parametrize("name", ["node-4", "a.b", "[x]", "a+b(c)"])
@pytest.mark.parametrize("filters", ["real", "fuzzy"])
async def test_inv_256_names_that_only_look_alike_are_left_alone(scene: Any, name: str, filters: str) -> None:
    from roadstead_compute.server.model import server_id

    scene.cloud.settings.name_filter = filters
    for other in ("node-45", "xnode-4", "Node-4", "axb", "x", "aabc"):
        await stranger(scene, other)
    scene.bench.metadata["name"] = name
    scene.bench.key = type(scene.bench.key)(
        scene.bench.key.region, "proj", "server", server_id(scene.bench.spec["networks"][0]["id"], name)
    )
    before = {s.id: (s.name, s.vm_state) for s in scene.servers()}
    await scene.settled()
    await scene.settled()
    mine = [s for s in scene.servers() if s.id not in before]
    assert [s.name for s in mine] == [name]
    assert {s.id: (s.name, s.vm_state) for s in scene.servers() if s.id in before} == before


async def stranger(scene: Any, name: str, **metadata: str) -> str:
    body = {
        "name": name,
        "imageRef": scene.images["debian-12"],
        "flavorRef": scene.flavors["small"],
        "networks": "none",
        "metadata": metadata,
    }
    made = await scene.call(scene.principal, "compute", "server.create", json={"server": body})
    scene.clock.advance(10)
    scene.forget()
    return str(made["id"])


async def test_a_server_of_the_same_name_without_our_key_is_never_touched(scene: Any) -> None:
    foreign = await stranger(scene, "web-1", serverID="somebody-else")
    await scene.settled()
    assert len(scene.servers()) == 2
    scene.bench.deleting = True
    await scene.bench.until_settled()
    assert [s.id for s in scene.servers()] == [foreign]


async def test_two_servers_with_our_key_stop_the_pass(scene: Any) -> None:
    for _ in range(2):
        await stranger(scene, "web-1", serverID=scene.bench.key.id)
    ending = await scene.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.CONSISTENCY
    assert scene.writes() == []


async def test_a_server_that_was_renamed_in_the_cloud_is_still_ours(scene: Any) -> None:
    await scene.settled()
    scene.cloud.foreign("compute", "set", scene.server.id, name="another")
    ending = await scene.run()
    assert ending.outcome == Done()
    assert scene.writes() == []
    scene.bench.deleting = True
    await scene.bench.until_settled()
    assert scene.servers() == []


async def test_a_port_that_a_stranger_uses_stops_the_pass(scene: Any) -> None:
    await scene.settled()
    scene.cloud.foreign("compute", "set", scene.server.id, metadata={})
    ending = await scene.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.CONSISTENCY
    assert scene.writes() == []


# ---------------------------------------------------------------- lost answers


@pytest.mark.parametrize("path", [r"/ports$", r"/floatingips$", r"/servers$"])
@pytest.mark.parametrize("fault", [{"kind": "no_answer_after"}, {"kind": "status_after", "status": 503}])
async def test_oc_21_an_answer_that_got_lost_makes_one_object(
    scene: Any, path: str, fault: dict[str, Any]
) -> None:
    scene.bench.edit(publicIPAllocation={"enabled": True})
    scene.fault(method="POST", path=path, **fault)
    first = await scene.run()
    assert isinstance(first.outcome, Retry)
    for _ in range(12):
        scene.clock.advance(10)
        await scene.run()
    assert (await scene.run()).outcome == Done()
    assert (len(scene.servers()), scene.count("ports"), scene.count("floating_ips")) == (
        1,
        scene.count("ports"),
        1,
    )
    assert len(scene.creates()) == 1
    ports = [c for c in scene.writes("network") if c.path.endswith("/ports")]
    assert len(ports) == 1


@pytest.mark.parametrize("path", [r"/ports$", r"/servers$"])
async def test_oc_21_nothing_is_asked_again_while_its_fate_is_open(scene: Any, path: str) -> None:
    scene.fault("no_answer_before", method="POST", path=path)
    await scene.run()
    for _ in range(5):
        scene.clock.advance(10)
        ending = await scene.run()
        assert isinstance(ending.outcome, Yield)
        assert ending.outcome.code is Code.SETTLING
    scene.clock.advance(20)
    await scene.settled()
    assert len(scene.servers()) == 1


async def test_oc_21_a_lease_that_was_lost_sends_nothing(scene: Any) -> None:
    scene.bench.book.holds = False
    ending = await scene.run()
    assert ending.lost
    assert scene.writes() == []


@pytest.mark.parametrize(
    ("status", "text", "code"),
    [
        (
            403,
            "Quota exceeded for instances: Requested 1, but already used 8 of 8 instances",
            Code.QUOTA_EXCEEDED,
        ),
        (400, "Can not find requested image", Code.REFUSED),
        (400, "Flavor x could not be found.", Code.REFUSED),
        (400, "Invalid key_name provided.", Code.REFUSED),
        (409, "Port x is still in use.", Code.CONFLICT),
    ],
)
async def test_oc_25_a_refused_create_is_tried_again_and_leaks_no_port(
    scene: Any, status: int, text: str, code: Code
) -> None:
    answer = {"badRequest": {"code": status, "message": text}}
    scene.fault(
        "status", service="compute", method="POST", path=r"/servers$", status=status, answer=answer, times=10
    )
    for _ in range(10):
        ending = await scene.run()
        assert isinstance(ending.outcome, Retry), "errors.md section 3: never a park"
        assert ending.outcome.code is code
        assert text not in ending.outcome.message
        assert scene.bench.status["privateIP"]
        scene.clock.advance(10)
    mine = [c for c in scene.writes("network") if c.path.endswith("/ports")]
    assert len(mine) == 1
    assert (await scene.run()).outcome == Done()


# ---------------------------------------------------------------- before the create


async def test_a_region_whose_inventory_is_not_loaded_yet_is_waited_for(scene: Any) -> None:
    scene.inventory.ready = False
    ending = await scene.run()
    assert isinstance(ending.outcome, Yield)
    assert scene.writes() == []


async def test_ref_041_a_spec_that_is_not_offered_parks_without_a_write(scene: Any) -> None:
    scene.inventory.images[scene.bench.spec["image"]["id"]] = None
    ending = await scene.run()
    assert isinstance(ending.outcome, Park)
    assert scene.writes() == []


async def test_a_network_or_group_that_is_not_there_yet_yields(scene: Any) -> None:
    scene.bench.edit(securityGroups=[{"id": "77777777-7777-4777-8777-777777777777"}])
    ending = await scene.run()
    assert isinstance(ending.outcome, Yield)
    assert scene.writes() == []


async def test_all_groups_are_found_with_one_list(scene: Any) -> None:
    more = [f"{n}7777777-7777-4777-8777-777777777777" for n in range(1, 5)]
    wanted = {await scene.group(i) for i in more}
    scene.forget()
    scene.bench.edit(securityGroups=[{"id": i} for i in more])
    await scene.run()
    lists = scene.cloud.log.calls(service="network", method="GET", path="/security-groups$")
    assert len(lists) == 1
    port = next(c for c in scene.writes("network") if c.path.endswith("/ports")).body["port"]
    assert set(port["security_groups"]) == wanted


# ---------------------------------------------------------------- edits of port and address


async def test_ref_049_groups_and_pairs_are_updated_once(scene: Any) -> None:
    await scene.settled()
    pair = {"cidr": "192.0.2.128/28"}
    scene.bench.edit(
        securityGroups=[], networks=[{**scene.bench.spec["networks"][0], "allowedAddressPairs": [pair]}]
    )
    for _ in range(10):
        assert (await scene.run()).outcome == Done()
    (write,) = scene.writes()
    assert write.method == "PUT"
    assert write.body == {
        "port": {"security_groups": [], "allowed_address_pairs": [{"ip_address": "192.0.2.128/28"}]}
    }


async def test_ref_050_public_address_off_again(scene: Any) -> None:
    scene.bench.edit(publicIPAllocation={"enabled": True})
    await scene.settled()
    assert scene.count("floating_ips") == 1
    scene.bench.edit(publicIPAllocation={"enabled": False})
    await scene.settled()
    assert scene.count("floating_ips") == 0
    assert "publicIP" not in scene.bench.status


async def test_an_address_that_lost_its_port_is_put_back_not_doubled(scene: Any) -> None:
    scene.bench.edit(publicIPAllocation={"enabled": True})
    await scene.settled()
    address = scene.bench.status["publicIP"]
    fip = await scene.call(scene.principal, "network", "floatingip.list")
    scene.cloud.foreign("network", "disassociate", fip[0]["id"])
    await scene.settled()
    assert scene.count("floating_ips") == 1
    assert scene.bench.status["publicIP"] == address


async def test_oc_22_an_address_that_cannot_be_joined_is_not_collected(scene: Any) -> None:
    scene.bench.edit(publicIPAllocation={"enabled": True})
    scene.fault(
        "status",
        service="network",
        method="POST",
        path="/floatingips",
        status=404,
        answer={
            "NeutronError": {"type": "ExternalGatewayForFloatingIPNotFound", "message": "x", "detail": ""}
        },
        times=None,
    )
    for _ in range(30):
        assert isinstance((await scene.run()).outcome, Retry)
        scene.clock.advance(10)
    assert scene.count("floating_ips") == 0
    assert len([c for c in scene.writes("network") if c.path.endswith("/ports")]) == 1


async def test_no_external_network_is_a_clear_error(scene: Any) -> None:
    from roadstead.region import RegionSpec

    openstack = scene.bench.region.model_dump()["openstack"]
    openstack["network"]["externalNetworks"] = {"selector": {"tags": ["gold"]}}
    scene.bench.region = RegionSpec.model_validate({"provider": "openstack", "openstack": openstack})
    scene.bench.edit(publicIPAllocation={"enabled": True})
    ending = await scene.run()
    assert isinstance(ending.outcome, Retry)
    assert "external network" in ending.outcome.message


async def test_a_vanished_server_is_made_again_on_its_old_port(scene: Any) -> None:
    await scene.settled()
    address = scene.bench.status["privateIP"]
    scene.cloud.foreign("compute", "delete", scene.server.id)
    scene.inventory.ready = False
    await scene.settled()
    assert scene.bench.status["privateIP"] == address
    assert len(scene.servers()) == 1


@pytest.mark.parametrize("kind", ["identity", "network"])
async def test_inv_003_another_tenants_identity_or_network_is_never_acted_in(scene: Any, kind: str) -> None:
    ident = scene.bench.identity if kind == "identity" else scene.bench.spec["networks"][0]["id"]
    scene.bench.directory.put(view(kind, ident, scene.bench.key.region, "another-project"))
    ending = await scene.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.CONSISTENCY
    scene.bench.deleting = True
    assert (await scene.run()).outcome == Done()
    assert list(scene.cloud.log) == []

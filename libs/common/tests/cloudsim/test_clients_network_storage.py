"""The unmodified clients against the HTTP front: openstacksdk and the `openstack` command."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openstack
import pytest
from openstackclient import shell

from roadstead.testing.cloudsim import Cloud
from roadstead.testing.cloudsim.http import Front

pytestmark = pytest.mark.integration
Command = Callable[..., Any]


@pytest.fixture(scope="module")
def front() -> Iterator[Front]:
    cloud = Cloud()
    cloud.settings.durations.scale(0)
    with Front(cloud) as served:
        yield served


@pytest.fixture
def sdk(front: Front) -> Iterator[Any]:
    connection = openstack.connect(
        auth_url=front.auth_url, username="admin", password="admin", project_name="admin",
        user_domain_name="Default", project_domain_name="Default", region_name="RegionOne",
        identity_api_version="3", load_yaml_config=False, load_envvars=False,
    )  # fmt: skip
    yield connection
    connection.close()


@pytest.fixture
def command(
    front: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The command's own main function; returns what `-f json` printed, or the text of other commands."""
    clouds = tmp_path / "clouds.yaml"
    clouds.write_text(front.clouds_yaml("sim"))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds))

    def run(line: str, *, as_json: bool = True) -> Any:
        capsys.readouterr()
        words = ["--os-cloud", "sim", *line.split(), *(["-f", "json"] if as_json else [])]
        status = shell.main(words)
        printed = capsys.readouterr()
        assert status == 0, f"openstack {line}: {printed.err}"
        return json.loads(printed.out) if as_json else printed.out

    return run


def test_the_sdk_builds_and_removes_a_routed_network(sdk: Any) -> None:
    net_api = sdk.network
    external = net_api.find_network("external")
    network = net_api.create_network(name="sdk-net")
    subnet = net_api.create_subnet(
        name="sdk-sub",
        network_id=network.id,
        ip_version=4,
        cidr="10.20.0.0/24",
        dns_nameservers=["192.0.2.53"],
    )
    router = net_api.create_router(name="sdk-rtr", external_gateway_info={"network_id": external.id})
    net_api.add_interface_to_router(router, subnet_id=subnet.id)
    group = net_api.create_security_group(name="sdk-sg")
    net_api.create_security_group_rule(
        security_group_id=group.id, direction="ingress", protocol="tcp", port_range_min=22, port_range_max=22
    )
    port = net_api.create_port(name="sdk-port", network_id=network.id, security_groups=[group.id])
    floating = net_api.create_ip(floating_network_id=external.id, port_id=port.id)
    assert net_api.get_ip(floating.id).status == "ACTIVE"
    vlan = net_api.create_network(
        name="sdk-vlan", provider_network_type="vlan", provider_physical_network="physnet1"
    )
    assert vlan.provider_segmentation_id == 1
    assert [p.id for p in net_api.ports(device_id=router.id, device_owner="network:router_interface")]
    assert net_api.update_quota(sdk.current_project_id, networks=77).networks == 77
    with pytest.raises(openstack.exceptions.ConflictException, match="required by one or more floating IPs"):
        net_api.remove_interface_from_router(router, subnet_id=subnet.id)
    net_api.delete_ip(floating)
    net_api.delete_port(port)
    net_api.delete_security_group(group)
    net_api.remove_interface_from_router(router, subnet_id=subnet.id)
    for delete, row in (
        (net_api.delete_router, router), (net_api.delete_subnet, subnet), (net_api.delete_network, network),
        (net_api.delete_network, vlan),
    ):  # fmt: skip
        delete(row, ignore_missing=False)
    assert net_api.find_network("sdk-net") is None


def test_the_sdk_uploads_changes_and_removes_an_image(sdk: Any) -> None:
    image = sdk.image.create_image(
        name="sdk-image", data=b"x" * 2048, disk_format="raw", container_format="bare", os_distro="ubuntu"
    )
    image = sdk.image.get_image(image.id)
    assert (image.status, image.size, image.os_distro) == ("active", 2048, "ubuntu")
    sdk.image.update_image(image.id, visibility="public", flavour="x")
    found = sdk.image.find_image("sdk-image")
    assert (found.visibility, found.properties["flavour"]) == ("public", "x")
    sdk.image.deactivate_image(image)
    assert sdk.image.get_image(image.id).status == "deactivated"
    sdk.image.delete_image(image, ignore_missing=False)
    assert sdk.image.find_image("sdk-image") is None


def test_the_sdk_pages_through_images(front: Front, sdk: Any) -> None:
    front.cloud.settings.pages.image = 1
    try:
        names = {image.name for image in sdk.image.images()}
    finally:
        front.cloud.settings.pages.image = 25
    assert {"ubuntu-24.04", "debian-12", "unlabelled"} <= names


def test_the_sdk_makes_extends_and_removes_a_volume(sdk: Any) -> None:
    api = sdk.block_storage
    volume = api.create_volume(name="sdk-vol", size=1, volume_type="fast")
    assert api.get_volume(volume.id).status == "available"
    api.extend_volume(volume, 2)
    assert api.get_volume(volume.id).size == 2
    assert api.find_volume("sdk-vol").id == volume.id
    assert api.update_quota_set(sdk.current_project_id, volumes=9).volumes == 9
    api.delete_volume(volume, ignore_missing=False)
    assert api.find_volume("sdk-vol") is None


def test_the_sdk_builds_and_removes_a_load_balancer(sdk: Any) -> None:
    network = sdk.network.create_network(name="lb-net")
    subnet = sdk.network.create_subnet(
        name="lb-sub", network_id=network.id, ip_version=4, cidr="10.30.0.0/24"
    )
    api = sdk.load_balancer
    lb = api.create_load_balancer(name="sdk-lb", vip_subnet_id=subnet.id, provider="ovn")
    assert api.get_load_balancer(lb.id).provisioning_status == "ACTIVE"
    listener = api.create_listener(name="l", load_balancer_id=lb.id, protocol="TCP", protocol_port=80)
    pool = api.create_pool(name="p", listener_id=listener.id, protocol="TCP", lb_algorithm="SOURCE_IP_PORT")
    member = api.create_member(
        pool=pool.id, name="m", address="10.30.0.9", protocol_port=8080, subnet_id=subnet.id
    )
    monitor = api.create_health_monitor(
        name="h", pool_id=pool.id, type="TCP", delay=5, timeout=3, max_retries=2
    )
    assert api.get_member(member.id, pool.id).operating_status == "ONLINE"
    assert api.find_pool("p").health_monitor_id == monitor.id
    api.delete_load_balancer(lb, cascade=True)
    assert api.find_load_balancer("sdk-lb") is None
    sdk.network.delete_network(network, ignore_missing=False)


def test_the_command_creates_lists_shows_and_deletes_networks(command: Command) -> None:
    command("network create cli-net")
    made = command("subnet create cli-sub --network cli-net --subnet-range 10.40.0.0/24")
    assert made["gateway_ip"] == "10.40.0.1"
    command("router create cli-rtr")
    command("router set cli-rtr --external-gateway external", as_json=False)
    command("router add subnet cli-rtr cli-sub", as_json=False)
    assert command("router show cli-rtr")["external_gateway_info"]["enable_snat"] is True
    port = command("port create cli-port --network cli-net")
    floating = command(f"floating ip create external --port {port['id']}")
    assert floating["fixed_ip_address"] == port["fixed_ips"][0]["ip_address"]
    command("security group create cli-sg")
    command("security group rule create cli-sg --protocol tcp --dst-port 22:22 --remote-ip 0.0.0.0/0")
    assert "cli-net" in [row["Name"] for row in command("network list")]
    assert command("network show cli-net")["provider:network_type"] == "geneve"
    for line in (
        f"floating ip delete {floating['id']}", "port delete cli-port", "router remove subnet cli-rtr cli-sub",
        "router delete cli-rtr", "security group delete cli-sg", "subnet delete cli-sub", "network delete cli-net",
    ):  # fmt: skip
        command(line, as_json=False)
    assert "cli-net" not in [row["Name"] for row in command("network list")]


def test_the_command_creates_lists_shows_and_deletes_images_and_volumes(
    command: Command, tmp_path: Path
) -> None:
    data = tmp_path / "disk.raw"
    data.write_bytes(b"y" * 4096)
    command(f"image create cli-image --file {data} --disk-format raw --container-format bare --property a=b")
    shown = command("image show cli-image")
    assert (shown["status"], shown["size"], shown["properties"]["a"]) == ("active", 4096, "b")
    command("image set cli-image --property c=d", as_json=False)
    assert command("image show cli-image")["properties"]["c"] == "d"
    assert "cli-image" in [row["Name"] for row in command("image list")]
    command("image delete cli-image", as_json=False)
    assert "cli-image" not in [row["Name"] for row in command("image list")]
    command("volume create cli-vol --size 1 --type fast")
    assert command("volume show cli-vol")["status"] == "available"
    assert [row["Name"] for row in command("volume list")] == ["cli-vol"]
    assert {row["Name"] for row in command("volume type list")} == {"standard", "fast"}
    command("volume delete cli-vol", as_json=False)
    assert command("volume list") == []


def test_the_command_creates_lists_shows_and_deletes_load_balancers(command: Command) -> None:
    command("network create cli-lb-net")
    command("subnet create cli-lb-sub --network cli-lb-net --subnet-range 10.50.0.0/24")
    made = command("loadbalancer create --name cli-lb --vip-subnet-id cli-lb-sub --provider ovn")
    assert made["vip_address"].startswith("10.50.0.")
    command("loadbalancer listener create cli-lb --name cli-l --protocol TCP --protocol-port 80")
    command(
        "loadbalancer pool create --name cli-p --listener cli-l --protocol TCP --lb-algorithm SOURCE_IP_PORT"
    )
    command("loadbalancer member create cli-p --address 10.50.0.9 --protocol-port 80")
    assert command("loadbalancer show cli-lb")["provisioning_status"] == "ACTIVE"
    assert [row["name"] for row in command("loadbalancer list")] == ["cli-lb"]
    tree = json.loads(command("loadbalancer status show cli-lb", as_json=False))
    assert tree["loadbalancer"]["listeners"][0]["pools"][0]["members"][0]["address"] == "10.50.0.9"
    assert {row["name"] for row in command("loadbalancer provider list")} == {"ovn", "amphora"}
    command("loadbalancer delete cli-lb --cascade", as_json=False)
    assert command("loadbalancer list") == []
    command("network delete cli-lb-net", as_json=False)

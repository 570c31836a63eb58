"""The unmodified `openstack` command and openstacksdk work against the HTTP front."""

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack
import openstack.exceptions
import pytest

from roadstead.testing.cloudsim import Cloud, SimSettings
from roadstead.testing.cloudsim.http import Front

# The clients' own deprecations are theirs to mend.
pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")]

OPENSTACK = Path(sys.executable).parent / "openstack"
PUBLIC_KEY = f"ssh-ed25519 {base64.b64encode(b'0' * 51).decode()} me\n"

# One line a command; the same process of the command runs them all, as a person at its prompt would.
MAKE = """
project create --domain default alpha
user create --domain default --password pw bob
role create painter
role add --project alpha --user bob member
network create blue
subnet create --network blue --subnet-range 10.1.0.0/24 blue-sub
router create r1
router set --external-gateway external r1
router add subnet r1 blue-sub
security group create sg
security group rule create --protocol tcp --dst-port 22 sg
keypair create --public-key {key} k1
server group create --policy soft-anti-affinity grp
server create --flavor small --image ubuntu-24.04 --network blue --key-name k1 --wait s1
volume create --size 1 vol1
server add volume s1 vol1
server remove volume s1 vol1
server rebuild --image debian-12 --wait s1
server stop s1
server start s1
server image create --name snap --wait s1
floating ip create external
loadbalancer create --name lb1 --vip-subnet-id blue-sub --provider ovn
loadbalancer listener create --name l1 --protocol TCP --protocol-port 80 lb1
loadbalancer pool create --name p1 --listener l1 --protocol TCP --lb-algorithm SOURCE_IP_PORT
loadbalancer member create --address 10.1.0.5 --protocol-port 80 --subnet-id blue-sub p1
loadbalancer healthmonitor create --name h1 --type TCP --delay 5 --timeout 3 --max-retries 2 p1
"""
SHOW = {
    "project": "alpha", "user": "bob", "role": "painter", "network": "blue", "subnet": "blue-sub", "router": "r1",
    "security group": "sg", "server": "s1", "volume": "vol1", "image": "snap", "loadbalancer": "lb1",
}  # fmt: skip
DELETE = """
loadbalancer delete --cascade lb1
image delete snap
volume delete vol1
server delete --wait s1
router remove subnet r1 blue-sub
router delete r1
subnet delete blue-sub
network delete blue
security group delete sg
keypair delete k1
server group delete grp
user delete bob
role delete painter
project delete alpha
"""


@pytest.fixture
def front() -> Iterator[Front]:
    settings = SimSettings()
    # Every change has taken effect at the next call: the clients poll with whole seconds.
    settings.durations.scale(0)
    with Front(Cloud(settings=settings)) as running:
        yield running


def run(front: Front, folder: Path, commands: str) -> str:
    (folder / "clouds.yaml").write_text(front.clouds_yaml())
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "OS_CLOUD": "sim", "COLUMNS": "200",
        "OS_CLIENT_CONFIG_FILE": str(folder / "clouds.yaml"),
    }  # fmt: skip
    done = subprocess.run(
        [str(OPENSTACK)],
        input=commands,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.stderr.strip() == ""
    return done.stdout


@pytest.mark.skipif(not OPENSTACK.exists(), reason="the openstack command is not in this environment")
@pytest.mark.timeout(240)
def test_the_openstack_command_makes_shows_lists_and_deletes(front: Front, tmp_path: Path) -> None:
    key = tmp_path / "key.pub"
    key.write_text(PUBLIC_KEY)
    before = front.cloud.dump()
    run(front, tmp_path, MAKE.format(key=key))
    shown = run(front, tmp_path, "".join(f"{kind} show {name}\n{kind} list\n" for kind, name in SHOW.items()))
    for name in SHOW.values():
        # Once in the object's own table, once in the list.
        assert shown.count(f" {name} ") >= 2, name
    run(front, tmp_path, DELETE)
    refused = [c for c in front.cloud.log if c.status >= 400 and not (c.method == "GET" and c.status == 404)]
    assert refused == []
    after = front.cloud.dump()
    left = {
        (service, kind): now["count"] - before[service][kind]["count"]
        for service, kinds in after.items()
        for kind, now in kinds.items()
        if now["count"] != before[service][kind]["count"]
    }
    # The project's default security group stays, as it does in Neutron; the floating IP, which
    # has a port of its own, was not deleted.
    assert left == {
        ("network", "security_groups"): 1,
        ("network", "floating_ips"): 1,
        ("network", "ports"): 1,
    }


def connect(front: Front, **auth: Any) -> Any:
    return openstack.connect(
        auth_url=front.auth_url, username="admin", password="admin", user_domain_name="Default",
        region_name="RegionOne", identity_api_version="3", load_yaml_config=False, load_envvars=False,
        **(auth or {"project_name": "admin", "project_domain_name": "Default"}),
    )  # fmt: skip


def test_openstacksdk_drives_a_server_and_its_surroundings(front: Front) -> None:
    cloud = connect(front)
    network = cloud.network.create_network(name="net")
    subnet = cloud.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.2.0.0/24", name="sub")
    port = cloud.network.create_port(network_id=network.id, name="p")
    image = next(i for i in cloud.image.images() if i.name == "ubuntu-24.04")
    other = cloud.image.find_image("debian-12")
    flavor = cloud.compute.find_flavor("small")
    made = cloud.compute.create_server(
        name="s", flavor_id=flavor.id, image_id=image.id, networks=[{"port": port.id}], metadata={"a": "b"}
    )
    server = cloud.compute.wait_for_server(made, interval=0.1, wait=10)
    assert (server.status, server.metadata, server.addresses["net"][0]["addr"]) == (
        "ACTIVE", {"a": "b"}, port.fixed_ips[0]["ip_address"],
    )  # fmt: skip
    cloud.compute.rebuild_server(server, image=other.id)
    rebuilt = cloud.compute.get_server(server.id)
    assert (rebuilt.status, rebuilt.image.id) == ("ACTIVE", other.id)
    volume = cloud.block_storage.create_volume(name="v", size=1)
    cloud.compute.create_volume_attachment(server, volume_id=volume.id)
    assert cloud.block_storage.get_volume(volume.id).status == "in-use"
    cloud.compute.delete_volume_attachment(server, volume.id)
    balancer = cloud.load_balancer.create_load_balancer(name="lb", vip_subnet_id=subnet.id, provider="ovn")
    assert cloud.load_balancer.get_load_balancer(balancer.id).provisioning_status == "ACTIVE"
    cloud.load_balancer.delete_load_balancer(balancer.id, cascade=True)
    cloud.compute.delete_server(server.id)
    with pytest.raises(openstack.exceptions.NotFoundException):
        cloud.compute.get_server(server.id)
    assert cloud.network.get_port(port.id).status == "DOWN"


def test_openstacksdk_follows_pages_in_each_style(front: Front) -> None:
    pages = front.cloud.settings.pages
    pages.compute = pages.volume = pages.image = 2
    cloud = connect(front)
    for number in range(5):
        cloud.block_storage.create_volume(name=f"v{number}", size=1)
        cloud.network.create_network(name=f"n{number}")
        cloud.image.create_image(name=f"i{number}", disk_format="raw", container_format="bare")
    assert len(list(cloud.block_storage.volumes())) == 5
    assert len([n for n in cloud.network.networks(limit=2) if n.name.startswith("n")]) == 5
    assert len([i for i in cloud.image.images() if i.name.startswith("i")]) == 5
    assert len(list(cloud.compute.flavors())) == 3


def test_openstacksdk_sees_refusals_as_its_own_exceptions(front: Front) -> None:
    cloud = connect(front)
    with pytest.raises(openstack.exceptions.BadRequestException, match="Can not find requested image"):
        cloud.compute.create_server(
            name="x", flavor_id=cloud.compute.find_flavor("small").id, networks="none",
            image_id="11111111-1111-4111-8111-111111111111",
        )  # fmt: skip
    cloud.identity.create_project(name="twice")
    with pytest.raises(
        openstack.exceptions.ConflictException, match="Conflict occurred attempting to store project"
    ):
        cloud.identity.create_project(name="twice")
    assert cloud.identity.find_project("absent") is None


def test_an_application_credential_logs_in(front: Front) -> None:
    cloud = connect(front)
    made = cloud.identity.create_application_credential(
        cloud.session.get_user_id(), "cred", roles=[{"name": "member"}]
    )
    confined: Any = openstack.connect(
        auth_type="v3applicationcredential", auth_url=front.auth_url, application_credential_id=made.id,
        application_credential_secret=made.secret, region_name="RegionOne", identity_api_version="3",
        load_yaml_config=False, load_envvars=False,
    )  # fmt: skip
    assert list(confined.compute.servers()) == []
    with pytest.raises(openstack.exceptions.ForbiddenException):
        list(confined.identity.projects())

"""Neutron asked over HTTP: whose eyes look-ups use, and what becomes of VIP ports."""

import asyncio
import contextlib
import socket
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from roadstead.testing.cloudsim import Cloud, SimSettings, Stage, stage
from roadstead.testing.cloudsim.http import Front
from roadstead_octavia.outside.network import NetworkRefused
from roadstead_octavia.outside.neutron import Neutron, wanted_port
from roadstead_octavia.outside.service import ServiceUser


@pytest.fixture
def front() -> Iterator[Front]:
    with Front(Cloud()) as started:
        yield started


def a_user(front: Front, **more: Any) -> ServiceUser:
    password = front.cloud.settings.admin_password
    return ServiceUser(
        front.auth_url, "admin", password, "admin", interface="public", **{"timeout": 5.0, **more}
    )


@contextlib.contextmanager
def asking(front: Front, **more: Any) -> Iterator[Neutron]:
    made = Neutron(a_user(front), **more)
    try:
        yield made
    finally:
        made.close()


class Place:
    """A project's network with one subnet."""

    def __init__(self, tenant: Stage, cidr: str = "192.0.2.0/24") -> None:
        self.tenant = tenant
        self.network, self.subnet = tenant.network(cidr=cidr)

    def row(self, **given: Any) -> dict[str, Any]:
        blank = {"ip_address": None, "port_id": None, "subnet_id": self.subnet, "network_id": self.network}
        return {**blank, **given}


async def make(neutron: Neutron, place: Place, row: dict[str, Any], name: str | None = None) -> Any:
    project = place.tenant.project_id
    return await neutron.make_vip_port(name or str(uuid.uuid4()), project, row, [], [])


async def test_oc_07_what_another_project_owns_is_not_there_for_the_caller(front: Front) -> None:
    one, two = stage(front.cloud, "one"), stage(front.cloud, "two")
    place = Place(one)
    with asking(front) as neutron:
        for kind, identifier in (("subnets", place.subnet), ("networks", place.network)):
            own = await neutron.find(kind, identifier, token=one.principal.token)
            assert own is not None
            assert own["id"] == identifier
            assert await neutron.find(kind, identifier, token=two.principal.token) is None
            assert await neutron.find(kind, identifier, as_service=True) is not None
        assert await neutron.find("subnets", str(uuid.uuid4()), token=one.principal.token) is None
    with asking(front, invisible=True) as neutron:
        assert await neutron.find("subnets", place.subnet, token=two.principal.token) is not None


async def test_a_port_is_made_with_the_load_balancers_mark_and_found_by_it(front: Front) -> None:
    place, name = Place(stage(front.cloud)), str(uuid.uuid4())
    with asking(front) as neutron:
        vip, more = await make(neutron, place, place.row(), name)
        assert (vip["network_id"], vip["subnet_id"], more) == (place.network, place.subnet, [])
        assert vip["ip_address"].startswith("192.0.2.")
        port = await neutron.find("ports", vip["port_id"], as_service=True)
        assert port is not None
        assert (port["device_id"], port["device_owner"]) == (f"lb-{name}", "Octavia")
        await neutron.remove_vip_port(str(uuid.uuid4()), None)
        assert await neutron.find("ports", vip["port_id"], as_service=True) is not None
        await neutron.remove_vip_port(name, None)
        assert await neutron.find("ports", vip["port_id"], as_service=True) is None
        await neutron.remove_vip_port(name, vip["port_id"])  # gone already is fine


async def test_a_users_port_that_bears_the_mark_is_never_removed(front: Front) -> None:
    place, name = Place(stage(front.cloud)), str(uuid.uuid4())
    port = place.tenant.port(place.network, device_id=f"lb-{name}")["id"]
    with asking(front) as neutron:
        await neutron.remove_vip_port(name, None)
        assert await neutron.find("ports", port, as_service=True) is not None


async def test_an_address_in_use_is_refused_with_409_and_neutrons_words(front: Front) -> None:
    place = Place(stage(front.cloud))
    with asking(front) as neutron:
        await make(neutron, place, place.row(ip_address="192.0.2.77"))
        with pytest.raises(NetworkRefused) as refused:
            await make(neutron, place, place.row(ip_address="192.0.2.77"))
    assert refused.value.status == 409
    assert "192.0.2.77" in refused.value.text


async def test_a_port_that_the_user_brought_is_read_and_must_have_the_address(front: Front) -> None:
    place = Place(stage(front.cloud))
    port = place.tenant.port(place.network, fixed_ips=[{"ip_address": "192.0.2.9"}])["id"]
    with asking(front) as neutron:
        vip, _ = await make(neutron, place, place.row(port_id=port))
        assert (vip["ip_address"], vip["port_id"]) == ("192.0.2.9", port)
        with pytest.raises(NetworkRefused, match="does not have the address"):
            await make(neutron, place, place.row(port_id=port, ip_address="192.0.2.10"))


async def test_free_addresses_are_told_by_subnet(front: Front) -> None:
    place = Place(stage(front.cloud), cidr="192.0.2.0/29")
    with asking(front) as neutron:
        before = (await neutron.availability(place.network))[place.subnet]
        await make(neutron, place, place.row())
        assert (await neutron.availability(place.network))[place.subnet] == before - 1
        assert await neutron.availability(str(uuid.uuid4())) == {}


@pytest.mark.parametrize("there", [True, False])
async def test_qos_is_there_where_the_extension_is(there: bool) -> None:
    with Front(Cloud(settings=SimSettings(qos_policies=there))) as front, asking(front) as neutron:
        assert await neutron.has_qos() is there


async def test_oc_09_no_answer_is_no_refusal_and_no_object() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v3"
        neutron = Neutron(ServiceUser(url, "u", "p", "p", timeout=0.3))
        try:
            started = asyncio.get_running_loop().time()
            assert await neutron.find("subnets", str(uuid.uuid4()), as_service=True) is None
            with pytest.raises(NetworkRefused) as refused:
                await neutron.remove_vip_port(str(uuid.uuid4()), None)
            assert refused.value.status is None
            assert asyncio.get_running_loop().time() - started < 3
        finally:
            neutron.close()


def test_all_addresses_of_a_load_balancer_are_on_one_port() -> None:
    first = {"network_id": "n", "subnet_id": "s1", "ip_address": None}
    second = {"network_id": "n", "subnet_id": "s2", "ip_address": "2001:db8::5"}
    port = wanted_port("x", "p", first, [second], ["g"])["port"]
    assert port["fixed_ips"] == [{"subnet_id": "s1"}, {"subnet_id": "s2", "ip_address": "2001:db8::5"}]
    assert (port["security_groups"], port["project_id"], port["admin_state_up"]) == (["g"], "p", False)
    assert "security_groups" not in wanted_port("x", "p", first, [], [])["port"]

"""openstacksdk's load balancer proxy, unmodified, against the running service."""

import time
from collections.abc import Iterator
from typing import Any

import openstack
import pytest
from openstack import exceptions
from openstack.connection import Connection

from .ground import Service
from .people import PASSWORD, Home

pytestmark = pytest.mark.timeout(300)
WAIT = 30


def connected(ground: Service, user: str, password: str) -> Connection:
    return openstack.connect(
        auth_url=ground.auth_url,
        username=user,
        password=password,
        project_name=user,
        user_domain_name="Default",
        project_domain_name="Default",
        region_name=ground.region,
        load_yaml_config=False,
        load_envvars=False,
    )


@pytest.fixture(scope="module")
def mine(ground: Service) -> Iterator[Any]:
    connection = connected(ground, "red", PASSWORD)
    yield connection.load_balancer
    connection.close()


@pytest.fixture(scope="module")
def operator(ground: Service) -> Iterator[Any]:
    connection = connected(ground, "admin", ground.admin_password)
    yield connection.load_balancer
    connection.close()


def settle(proxy: Any, lb: str) -> Any:
    return proxy.wait_for_load_balancer(lb, wait=WAIT, interval=0.1)


def gone(proxy: Any, name: str) -> None:
    ends = time.monotonic() + WAIT
    while proxy.find_load_balancer(name) is not None:
        assert time.monotonic() < ends, f"{name} is still there"
        time.sleep(0.1)


def test_objects_are_made_found_changed_and_deleted(mine: Any, red: Home) -> None:
    lb = mine.create_load_balancer(name="sdk", vip_subnet_id=red.subnet, tags=["one"])
    lb = settle(mine, lb.id)
    assert (lb.provisioning_status, lb.is_admin_state_up, lb.tags) == ("ACTIVE", True, ["one"])
    assert mine.find_load_balancer("sdk").id == lb.id
    assert [x.id for x in mine.load_balancers(name="sdk", tags="one")] == [lb.id]
    assert list(mine.load_balancers(name="sdk", is_admin_state_up=False)) == []
    assert mine.update_load_balancer(lb, description="text").description == "text"
    settle(mine, lb.id)

    listener = mine.create_listener(
        load_balancer_id=lb.id,
        name="l",
        protocol="HTTP",
        protocol_port=80,
        insert_headers={"X-Forwarded-For": "true"},
    )
    settle(mine, lb.id)
    pool = mine.create_pool(listener_id=listener.id, name="p", protocol="HTTP", lb_algorithm="ROUND_ROBIN")
    settle(mine, lb.id)
    member = mine.create_member(pool, name="m", address="192.0.2.10", protocol_port=80, weight=2)
    settle(mine, lb.id)
    monitor = mine.create_health_monitor(
        pool_id=pool.id, name="h", type="HTTP", delay=5, timeout=3, max_retries=2, url_path="/up"
    )
    settle(mine, lb.id)
    policy = mine.create_l7_policy(listener_id=listener.id, name="y", action="REJECT")
    settle(mine, lb.id)
    rule = mine.create_l7_rule(policy, type="PATH", compare_type="EQUAL_TO", value="/x")
    settle(mine, lb.id)

    assert mine.find_listener("l").insert_headers == {"X-Forwarded-For": "true"}
    assert mine.find_pool("p").health_monitor_id == monitor.id
    assert mine.find_member("m", pool).id == member.id
    assert mine.find_health_monitor("h").url_path == "/up"
    assert mine.find_l7_policy("y").rules == [{"id": rule.id}]
    assert [x.id for x in mine.listeners(load_balancer_id=lb.id)] == [listener.id]
    assert [x.id for x in mine.pools(loadbalancer_id=lb.id)] == [pool.id]
    assert [x.id for x in mine.members(pool, address="192.0.2.10")] == [member.id]
    assert [x.id for x in mine.health_monitors(pool_id=pool.id)] == [monitor.id]
    assert [x.id for x in mine.l7_policies(listener_id=listener.id)] == [policy.id]
    assert [x.id for x in mine.l7_rules(policy)] == [rule.id]

    assert mine.update_listener(listener, connection_limit=5).connection_limit == 5
    settle(mine, lb.id)
    assert (
        mine.update_pool(pool, session_persistence={"type": "SOURCE_IP"}).session_persistence["type"]
        == "SOURCE_IP"
    )
    settle(mine, lb.id)
    assert mine.update_member(member, pool, weight=8).weight == 8
    settle(mine, lb.id)
    assert mine.update_health_monitor(monitor, delay=8).delay == 8
    settle(mine, lb.id)
    assert mine.update_l7_policy(policy, description="d").description == "d"
    settle(mine, lb.id)
    assert mine.update_l7_rule(rule, policy, rule_value="/y").rule_value == "/y"
    settle(mine, lb.id)

    tree = mine.get(f"/lbaas/loadbalancers/{lb.id}/status").json()["statuses"]["loadbalancer"]
    assert tree["listeners"][0]["pools"][0]["members"][0]["id"] == member.id
    assert mine.get_load_balancer_statistics(lb.id).total_connections == 0
    assert mine.get_listener_statistics(listener.id).bytes_in == 0

    mine.delete_l7_rule(rule, policy)
    settle(mine, lb.id)
    mine.delete_l7_policy(policy)
    settle(mine, lb.id)
    mine.delete_health_monitor(monitor)
    settle(mine, lb.id)
    mine.delete_member(member, pool)
    settle(mine, lb.id)
    with pytest.raises(exceptions.ForbiddenException):
        mine.failover_load_balancer(lb.id)
    with pytest.raises(exceptions.BadRequestException):
        mine.delete_load_balancer(lb.id)
    mine.delete_load_balancer(lb.id, cascade=True)
    gone(mine, "sdk")
    assert mine.find_load_balancer("sdk") is None
    assert mine.find_listener("l") is None


def test_a_second_page_is_fetched(mine: Any, red: Home) -> None:
    made = [mine.create_load_balancer(name=f"page-{n}", vip_subnet_id=red.subnet).id for n in range(5)]
    for lb in made:
        settle(mine, lb)
    assert sorted(x.id for x in mine.load_balancers(limit=2) if x.name.startswith("page-")) == sorted(made)
    for lb in made:
        mine.delete_load_balancer(lb)


def test_what_operators_keep(operator: Any, mine: Any, red: Home) -> None:
    assert {"noop", "plain"} <= {p.name for p in operator.providers()}
    assert [c.name for c in operator.provider_flavor_capabilities("noop")] == ["amp_image_tag"]
    profile = operator.create_flavor_profile(name="sdk-fp", provider_name="noop", flavor_data="{}")
    flavor = operator.create_flavor(name="sdk-f", flavor_profile_id=profile.id, is_enabled=True)
    assert operator.find_flavor("sdk-f").id == flavor.id
    assert operator.update_flavor(flavor, description="d").description == "d"
    assert operator.update_flavor_profile(profile, name="sdk-fp2").name == "sdk-fp2"
    zones = operator.create_availability_zone_profile(
        name="sdk-zp", provider_name="noop", availability_zone_data='{"compute_zone": "x"}'
    )
    operator.create_availability_zone(name="sdk-z", availability_zone_profile_id=zones.id)
    assert operator.get_availability_zone("sdk-z").is_enabled is True
    assert operator.update_availability_zone("sdk-z", description="d").description == "d"
    lb = mine.create_load_balancer(
        vip_subnet_id=red.subnet, flavor_id=flavor.id, availability_zone="sdk-z", name="sdk-fancy"
    )
    settle(mine, lb.id)
    operator.failover_load_balancer(lb.id)
    settle(operator, lb.id)
    with pytest.raises(exceptions.ConflictException):
        operator.delete_flavor(flavor)
    mine.delete_load_balancer(lb.id)
    gone(mine, "sdk-fancy")
    operator.delete_flavor(flavor)
    operator.delete_flavor_profile(profile)
    operator.delete_availability_zone("sdk-z")
    operator.delete_availability_zone_profile(zones)
    assert operator.find_flavor("sdk-f") is None

    assert operator.get_quota_default().load_balancers == -1
    assert operator.update_quota(red.project, pools=4).pools == 4
    assert mine.get_quota(red.project).pools == 4
    assert red.project in [q.project_id for q in operator.quotas()]
    operator.delete_quota(red.project)
    assert operator.get_quota(red.project).pools == -1
    assert list(operator.amphorae()) == []

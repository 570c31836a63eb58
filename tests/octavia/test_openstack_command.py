"""Every `openstack loadbalancer ...` command, unmodified, against the running service, waiting where it can."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from .ground import Service
from .osc import Osc
from .people import PASSWORD, Home

pytestmark = pytest.mark.timeout(400)


def environment(ground: Service, user: str, password: str) -> dict[str, str]:
    return {
        "OS_AUTH_URL": ground.auth_url,
        "OS_USERNAME": user,
        "OS_PASSWORD": password,
        "OS_PROJECT_NAME": user,
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": ground.region,
        "OS_IDENTITY_API_VERSION": "3",
    }


@pytest.fixture(scope="module")
def mine(ground: Service) -> Iterator[Osc]:
    """The command line of the user of the project red."""
    osc = Osc(**environment(ground, "red", PASSWORD))
    yield osc
    osc.close()


@pytest.fixture(scope="module")
def operator(ground: Service) -> Iterator[Osc]:
    osc = Osc(**environment(ground, "admin", ground.admin_password))
    yield osc
    osc.close()


def named(rows: Any) -> list[str]:
    return sorted(str(row["name"]) for row in rows)


def test_load_balancers_and_what_stands_below(mine: Osc, red: Home) -> None:
    do, see = mine.do, mine.see
    made = see("create --name lb1 --description first --vip-subnet-id red-4 --tag a --tag b --wait")
    assert made["provisioning_status"] == "ACTIVE"
    assert made["vip_subnet_id"] == red.subnet
    assert made["tags"] in ("a\nb", ["a", "b"])
    do(
        "create --name lb2 --vip-network-id red --additional-vip subnet-id={six} --disable --wait",
        six="red-6",
    )
    assert named(see("list")) == ["lb1", "lb2"]
    assert named(see("list --disable")) == ["lb2"]
    assert named(see("list --name lb1 --tags a,b --provider noop --vip-subnet-id red-4")) == ["lb1"]
    assert named(see("list --not-tags a")) == ["lb2"]
    assert named(see("list --any-tags b,c --provisioning-status ACTIVE")) == ["lb1"]
    do("set lb1 --name lb1b --description changed --tag c --disable --wait")
    shown = see("show lb1b")
    assert (shown["admin_state_up"], shown["description"]) == (False, "changed")
    do("unset lb1b --description --all-tag --wait")
    assert see("show lb1b")["description"] == ""
    do("set lb1b --name lb1 --enable --wait")

    listener = see(
        "listener create lb1 --name l1 --protocol HTTP --protocol-port 80 --connection-limit 100"
        " --insert-headers X-Forwarded-For=true --timeout-client-data 1000 --allowed-cidr 10.0.0.0/8"
        " --tag x --wait"
    )
    assert (listener["protocol_port"], listener["connection_limit"]) == (80, 100)
    do("listener create lb1 --name l2 --protocol TCP --protocol-port 81 --disable --wait")
    assert named(see("listener list --loadbalancer lb1")) == ["l1", "l2"]
    do("listener set l1 --name l1b --connection-limit 7 --allowed-cidr 192.0.2.0/24 --wait")
    assert see("listener show l1b")["connection_limit"] == 7
    do(
        "listener unset l1b --connection-limit --insert-headers --timeout-client-data --allowed-cidrs --all-tag"
        " --description --wait"
    )
    assert see("listener show l1b")["connection_limit"] == -1
    do("listener set l1b --name l1 --wait")
    assert see("listener stats show l1")["total_connections"] == 0

    pool = see(
        "pool create --listener l1 --name p1 --protocol HTTP --lb-algorithm ROUND_ROBIN"
        " --session-persistence type=APP_COOKIE,cookie_name=mine --wait"
    )
    assert "APP_COOKIE" in str(pool["session_persistence"])
    do("pool create --loadbalancer lb1 --name p2 --protocol TCP --lb-algorithm SOURCE_IP_PORT --wait")
    assert named(see("pool list --loadbalancer lb1")) == ["p1", "p2"]
    do("pool set p1 --name p1b --lb-algorithm LEAST_CONNECTIONS --disable --wait")
    assert see("pool show p1b")["lb_algorithm"] == "LEAST_CONNECTIONS"
    do("pool unset p1b --session-persistence --description --wait")
    assert see("pool show p1b")["session_persistence"] in (None, "", {})
    do("pool set p1b --name p1 --enable --wait")

    member = see(
        "member create p1 --name m1 --address 192.0.2.10 --protocol-port 80 --weight 3 --subnet-id red-4"
        " --monitor-port 8080 --monitor-address 192.0.2.11 --enable-backup --wait"
    )
    assert (member["weight"], member["backup"], member["subnet_id"]) == (3, True, red.subnet)
    do("member create p1 --name m2 --address 2001:db8::7 --protocol-port 80 --wait")
    assert named(see("member list p1")) == ["m1", "m2"]
    do("member set p1 m1 --name m1b --weight 9 --disable --wait")
    assert see("member show p1 m1b")["weight"] == 9
    do("member unset p1 m1b --backup --monitor-address --monitor-port --weight --wait")
    assert see("member show p1 m1b")["weight"] == 1

    monitor = see(
        "healthmonitor create p1 --name h1 --type HTTP --delay 5 --timeout 3 --max-retries 2"
        " --http-method HEAD --url-path /up --expected-codes 200-202 --http-version 1.1 --domain-name a.example"
        " --max-retries-down 4 --wait"
    )
    assert monitor["url_path"] == "/up"
    assert named(see("healthmonitor list")) == ["h1"]
    do("healthmonitor set h1 --name h1b --delay 9 --expected-codes 204 --wait")
    assert see("healthmonitor show h1b")["delay"] == 9
    do(
        "healthmonitor unset h1b --domain-name --expected-codes --http-method --http-version --max-retries-down"
        " --url-path --wait"
    )
    shown = see("healthmonitor show h1b")
    assert (shown["url_path"], shown["expected_codes"], shown["max_retries_down"]) == ("/", "200", 3)

    policy = see(
        "l7policy create l1 --name y1 --action REDIRECT_TO_URL --redirect-url http://a.example --wait"
    )
    assert policy["redirect_url"] == "http://a.example"
    do(
        "l7policy create l1 --name y2 --action REDIRECT_PREFIX --redirect-prefix https://b.example"
        " --redirect-http-code 301 --position 1 --wait"
    )
    assert named(see("l7policy list --listener l1")) == ["y1", "y2"]
    assert see("l7policy show y1")["position"] == 2
    do("l7policy set y1 --name y1b --action REJECT --position 1 --wait")
    assert see("l7policy show y1b")["position"] == 1
    do("l7policy unset y2 --redirect-http-code --wait")
    do("l7policy unset y1b --description --wait")
    rule = see("l7rule create y1b --type HEADER --key k --compare-type EQUAL_TO --value v --invert --wait")
    assert (rule["key"], rule["invert"]) == ("k", True)
    assert len(see("l7rule list y1b")) == 1
    do("l7rule set y1b {rule} --value other --tag t --wait", rule=rule["id"])
    assert see("l7rule show y1b {rule}", rule=rule["id"])["value"] == "other"
    do("l7rule unset y1b {rule} --invert --all-tag --wait", rule=rule["id"])
    assert see("l7rule show y1b {rule}", rule=rule["id"])["invert"] is False

    status, tree, _ = mine.run("loadbalancer", "status", "show", "lb1")
    assert status == 0
    assert json.loads(tree)["loadbalancer"]["listeners"][0]["name"] == "l1"
    assert see("stats show lb1")["bytes_in"] == 0

    do("l7rule delete y1b {rule} --wait", rule=rule["id"])
    do("l7policy delete y1b --wait")
    do("healthmonitor delete h1b --wait")
    do("member delete p1 m1b --wait")
    do("pool delete p1 --wait")
    do("listener delete l2 --wait")
    refused = mine.run("loadbalancer", "delete", "lb1")
    assert refused[0] != 0
    do("delete lb1 --cascade --wait")
    do("delete lb2 --wait")
    assert see("list") == []
    assert see("listener list") == see("pool list") == see("healthmonitor list") == see("l7policy list") == []


def test_flavors_zones_quotas_providers_and_amphorae(operator: Osc, mine: Osc, red: Home) -> None:
    do, see = operator.do, operator.see
    assert {"noop", "plain"} <= set(named(see("provider list")))
    assert see("provider capability list noop")
    assert see("provider capability list noop --flavor")
    assert see("provider capability list noop --availability-zone")

    see("flavorprofile create --name fp --provider noop --flavor-data {data}", data='{"amp_image_tag":"x"}')
    assert named(see("flavorprofile list")) == ["fp"]
    do("flavorprofile set fp --name fp2")
    assert see("flavorprofile show fp2")["provider_name"] == "noop"
    see("flavor create --name f --flavorprofile fp2 --description d --enable")
    do("flavor set f --name f2 --description e")
    do("flavor unset f2 --description")
    assert see("flavor show f2")["description"] == ""
    assert named(mine.see("flavor list")) == ["f2"]

    see(
        "availabilityzoneprofile create --name zp --provider noop --availability-zone-data {data}",
        data='{"compute_zone":"x"}',
    )
    assert named(see("availabilityzoneprofile list")) == ["zp"]
    do("availabilityzoneprofile set zp --name zp2")
    assert see("availabilityzoneprofile show zp2")["provider_name"] == "noop"
    see("availabilityzone create --name z --availabilityzoneprofile zp2 --description d")
    do("availabilityzone set z --description e --enable")
    do("availabilityzone unset z --description")
    assert see("availabilityzone show z")["description"] == ""
    assert named(see("availabilityzone list")) == ["z"]

    made = mine.see("create --name fancy --vip-subnet-id red-4 --flavor f2 --availability-zone z --wait")
    assert (made["flavor_id"] is not None, made["availability_zone"]) == (True, "z")
    assert operator.run("loadbalancer", "flavor", "delete", "f2")[0] != 0  # in use
    do("failover fancy --wait")
    assert mine.run("loadbalancer", "failover", "fancy")[0] != 0  # not theirs to do
    assert see("amphora list") == []
    assert see("amphora list --loadbalancer fancy --role MASTER --status ALLOCATED") == []
    nobody = "11111111-2222-4333-8444-555555555555"
    for command in ("show", "stats show", "failover", "configure", "delete"):
        status, _, complaint = operator.run("loadbalancer", "amphora", *command.split(), nobody)
        assert status != 0
        # Some look for an amphora of that name before they give up, which is no filter of amphorae.
        assert nobody in complaint or "invalid (HTTP 400)" in complaint, complaint
    mine.do("delete fancy --wait")
    for line in (
        "flavor delete f2",
        "flavorprofile delete fp2",
        "availabilityzone delete z",
        "availabilityzoneprofile delete zp2",
    ):
        do(line)

    assert see("quota defaults show")["load_balancer"] == -1
    changed = see(
        "quota set red --loadbalancer 9 --listener 8 --pool 7 --member 6 --healthmonitor 5 --l7policy 4 --l7rule 3"
    )
    assert changed["load_balancer"] == 9
    assert mine.see("quota show {project}", project=red.project)["l7rule"] == 3
    assert [row["project_id"] for row in see("quota list") if row["load_balancer"] == 9] == [red.project]
    do("quota unset red --loadbalancer --listener")
    assert see("quota show red")["load_balancer"] == -1
    do("quota reset red")
    assert see("quota show red")["pool"] == -1

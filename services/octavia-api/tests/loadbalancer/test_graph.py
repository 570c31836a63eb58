"""A whole tree in one request: everything is checked as in single creations, and nothing is made when anything is refused.

`a_10`, `c_06` and `c_07` are lines of the faults that are mended on purpose, `oc_08` a case.
"""

from dataclasses import replace
from typing import Any

import pytest

from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.errors import ApiError
from roadstead_octavia.resources.loadbalancer.definitions import sorted_out

from .world import OPTIONS, PROJECT, SUBNET, World, an_id

MONITOR = {"type": "TCP", "delay": 5, "timeout": 3, "max_retries": 2}
MEMBER = {"address": "192.0.2.10", "protocol_port": 80}
REJECT = {"action": "REJECT"}
RULE = {"type": "PATH", "compare_type": "STARTS_WITH", "value": "/x"}


def pool(name: str | None = "p", **more: Any) -> dict[str, Any]:
    named = {} if name is None else {"name": name}
    return {**named, "protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", **more}


def listener(port: int = 80, **more: Any) -> dict[str, Any]:
    return {"protocol": "HTTP", "protocol_port": port, **more}


def read(**body: Any) -> Any:
    return World(None).read("POST", {"vip_subnet_id": SUBNET, **body})


class TestDefinitions:
    def test_pools_in_place_come_behind_the_others_and_are_known_by_name(self) -> None:
        body = read(
            pools=[pool("a")],
            listeners=[
                listener(
                    default_pool=pool("b"),
                    l7policies=[
                        {"action": "REDIRECT_TO_POOL", "redirect_pool": pool("c")},
                        {"action": "REDIRECT_TO_POOL", "redirect_pool": {"name": "a"}},
                    ],
                )
            ],
        )
        found = sorted_out(body)
        assert [one["name"] for one in found.pools] == ["a", "b", "c"]
        assert found.counts() == {"pool": 3, "listener": 1, "l7policy": 2}

    def test_a_name_with_a_state_alone_is_a_reference(self) -> None:
        body = read(
            pools=[pool("a")], listeners=[listener(default_pool={"name": "a", "admin_state_up": False})]
        )
        assert len(sorted_out(body).pools) == 1

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ({"listeners": [listener(default_pool={})]}, "Pools must be named"),
            ({"listeners": [listener(default_pool=pool(None))]}, "Pools must be named"),
            ({"pools": [pool("a"), pool("a")]}, "Pool names must be unique"),
            ({"pools": [pool("a")], "listeners": [listener(default_pool=pool("a"))]}, "must be unique"),
            ({"listeners": [listener(default_pool={"name": "z"})]}, "Pool 'z' was referenced but no full"),
        ],
    )
    def test_a_10_names_that_say_nothing_are_refused(self, body: dict[str, Any], words: str) -> None:
        with pytest.raises(ApiError, match=words) as refused:
            sorted_out(read(**body))
        assert refused.value.status == 400


pytestmark = pytest.mark.integration


@pytest.fixture
def world(database: PostgresDatabase) -> World:
    return World(database)


async def refused(world: World, **body: Any) -> ApiError:
    """The refusal, after which there is nothing: no row, no port, and no provider was asked."""
    error = await world.refused(**body)
    assert (await world.balancers(), world.net.ports, await world.claims()) == ([], {}, [])
    assert (world.driver.asked, world.driver.checked) == ([], [])
    return error


async def test_oc_08_a_whole_tree_is_shown_written_and_told_to_the_provider(world: World) -> None:
    made = await world.create(
        listeners=[
            listener(
                8080,
                protocol="TCP",
                name="web",
                default_pool=pool(
                    "a",
                    protocol="TCP",
                    members=[MEMBER, {**MEMBER, "protocol_port": 81}],
                    healthmonitor=MONITOR,
                ),
            )
        ],
        pools=[pool("unattached", protocol="TCP")],
    )
    (web,), (loose, used) = made["listeners"], made["pools"]
    assert (web["default_pool_id"], loose["name"], used["healthmonitor"]["type"]) == (
        used["id"],
        "unattached",
        "TCP",
    )
    assert len(used["members"]) == 2
    (operation,) = world.sent
    tree = await world.database.tree(made["id"])
    assert tree is not None
    tables = ("load_balancer", "listener", "pool", "member", "health_monitor")
    rows = {(table, row["id"]) for table in tables for row in tree.of(table)}
    assert {(touched.table, touched.id) for touched in operation.touched} == rows
    assert {row["provisioning_status"] for table in tables for row in tree.of(table)} == {"PENDING_CREATE"}
    (model,) = operation.arguments
    assert model["listeners"][0]["default_pool"]["pool_id"] == used["id"]
    assert len(model["pools"]) == 2
    assert (await world.database.tree(made["id"])).revision == 1


async def test_policies_keep_their_order_and_rules_their_policies(world: World) -> None:
    policies = [{**REJECT, "name": n, "position": p} for n, p in (("b", 5), ("a", 1), ("c", 9))]
    policies[1]["rules"] = [RULE]
    made = await world.create(listeners=[listener(l7policies=policies)])
    shown = made["listeners"][0]["l7policies"]
    assert [(one["name"], one["position"], len(one["rules"])) for one in shown] == [
        ("a", 1, 1),
        ("b", 2, 0),
        ("c", 3, 0),
    ]


ABSENT = an_id()


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"pools": [pool(members=[{**MEMBER, "subnet_id": ABSENT}])]}, 400, f"Subnet {ABSENT} not found."),
        (
            {"pools": [pool(protocol="UDP", session_persistence={"type": "HTTP_COOKIE"})]},
            400,
            "not supported for UDP/SCTP protocol pools",
        ),
        ({"pools": [pool(session_persistence={"type": "APP_COOKIE"})]}, 400, 'Field "cookie_name" must be'),
        (
            {
                "listeners": [
                    listener(
                        l7policies=[
                            {"action": "REDIRECT_TO_POOL", "redirect_pool": pool("u", protocol="TCP")}
                        ]
                    )
                ]
            },
            400,
            "The pool protocol 'TCP' is invalid while the listener protocol is 'HTTP'.",
        ),
        (
            {
                "listeners": [
                    listener(
                        l7policies=[
                            {
                                **REJECT,
                                "rules": [{**RULE, "compare_type": "REGEX", "value": "a\nhttp-request x"}],
                            }
                        ]
                    )
                ]
            },
            400,
            "Value should match the pattern",
        ),
        ({"pools": [pool(members=[MEMBER, dict(MEMBER)])]}, 409, "Another member on this pool"),
        ({"listeners": [listener(80), listener(80, protocol="TCP")]}, 409, "already using protocol"),
        ({"listeners": [listener(default_pool_id=ABSENT)]}, 404, f"Pool {ABSENT} not found."),
        (
            {"pools": [{"name": "p", "protocol": "HTTP", "tags": ["x"]}]},
            400,
            "missing required attribute: lb_algorithm",
        ),
        (
            {"listeners": [listener(l7policies=[{**REJECT, "rules": [RULE] * 51}])]},
            409,
            "Too many rules on L7 policy",
        ),
        (
            {"listeners": [listener(protocol="PROMETHEUS", l7policies=[REJECT])]},
            400,
            "PROMETHEUS listeners cannot have child objects.",
        ),
    ],
)
async def test_c_06_a_tree_is_checked_as_single_creations_are(
    world: World, body: dict[str, Any], status: int, words: str
) -> None:
    error = await refused(world, **body)
    assert (error.status, words in error.text) == (status, True), error.text


async def test_a_10_an_empty_pool_is_one_without_a_name(world: World) -> None:
    assert "Pools must be named" in (await refused(world, pools=[{}])).text


async def test_c_06_the_switch_for_pings_counts_in_a_tree(world: World) -> None:
    world.options = replace(OPTIONS, allow_ping_health_monitors=False)
    error = await refused(world, pools=[pool(healthmonitor={**MONITOR, "type": "PING"})])
    assert error.text == "The selected type is not allowed in this deployment: PING"


@pytest.mark.parametrize(
    ("column", "noun"),
    [
        ("load_balancer", "Load Balancer"),
        ("pool", "Pool"),
        ("health_monitor", "Health Monitor"),
        ("member", "Member"),
        ("listener", "Listener"),
        ("l7policy", "L7 Policy"),
        ("l7rule", "L7 Rule"),
    ],
)
async def test_c_07_every_kind_in_a_tree_counts_for_its_quota(world: World, column: str, noun: str) -> None:
    tree = {
        "listeners": [listener(default_pool={"name": "p"}, l7policies=[{**REJECT, "rules": [RULE]}])],
        "pools": [pool(members=[MEMBER], healthmonitor=MONITOR)],
    }
    world.options = replace(OPTIONS, default_quotas={**OPTIONS.default_quotas, column: 0})
    error = await refused(world, **tree)
    assert (error.status, error.text) == (403, f"Quota has been met for resources: {noun}")
    world.options = replace(OPTIONS, default_quotas={**OPTIONS.default_quotas, column: 1})
    await world.create(**tree)
    assert (await world.database.usage(PROJECT))[column] == 1
    assert (await world.refused(**tree)).status == 403


async def test_networks_are_held_against_an_address_that_the_port_gave(world: World) -> None:
    allowed = [listener(allowed_cidrs=["2001:db8::/32"])]
    error = await world.refused(listeners=allowed)
    assert "IP version incompatible" in error.text
    assert (await world.balancers(), world.net.ports, await world.claims()) == ([], {}, [])
    await refused_before_the_port(world, allowed)
    await world.create(listeners=[listener(allowed_cidrs=["192.0.2.0/24"])])


async def refused_before_the_port(world: World, listeners: list[dict[str, Any]]) -> None:
    """An address that is known from the start is enough to refuse without a port."""
    world.driver.asked.clear()
    assert (
        "IP version incompatible" in (await refused(world, vip_address="192.0.0.9", listeners=listeners)).text
    )


async def test_members_are_offline_with_a_monitor_and_unmonitored_without(world: World) -> None:
    made = await world.create(
        pools=[pool("a", members=[MEMBER], healthmonitor=MONITOR), pool("b", members=[MEMBER])]
    )
    assert [one["members"][0]["operating_status"] for one in made["pools"]] == ["OFFLINE", "NO_MONITOR"]


async def test_listeners_of_a_tree_have_peer_ports_of_their_own(world: World) -> None:
    made = await world.create(listeners=[listener(80), listener(81), listener(82)])
    tree = await world.database.tree(made["id"])
    assert tree is not None
    assert [row["peer_port"] for row in tree.of("listener")] == [1025, 1026, 1027]

"""Everything below a load balancer that is made with it in one request: checked object by object as single creations are, then written
with it.

Pools come first, each with its monitor and its members, then listeners, each with its policies and their rules.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roadstead_octavia.call import Call
from roadstead_octavia.db.port import Insert, Row, Touched, Tree, Write
from roadstead_octavia.errors import not_found, refuse
from roadstead_octavia.provider.models import Secrets
from roadstead_octavia.resources import certificates
from roadstead_octavia.resources.healthmonitor import rules as monitor_rules
from roadstead_octavia.resources.healthmonitor.doubts import tell
from roadstead_octavia.resources.l7policy import rules as policy_rules
from roadstead_octavia.resources.l7rule import rules as rule_rules
from roadstead_octavia.resources.limits import room
from roadstead_octavia.resources.listener import operations as listener_operations
from roadstead_octavia.resources.listener import rules as listener_rules
from roadstead_octavia.resources.loadbalancer.definitions import (
    Definitions,
    Values,
    check_complete,
    pool_name,
    sorted_out,
)
from roadstead_octavia.resources.member import rules as member_rules
from roadstead_octavia.resources.member.operations import check_subnets
from roadstead_octavia.resources.pool import operations as pool_operations
from roadstead_octavia.resources.pool import rules as pool_rules


@dataclass(frozen=True)
class Root:
    """The load balancer that the tree is made under.

    addresses: of all its VIPs, None while one of them is not known.  groups: whether the user gave it security groups.
    """

    load_balancer_id: str
    project_id: str
    flavor: Mapping[str, Any]
    addresses: Sequence[str] | None
    groups: bool


@dataclass
class Plan:
    """writes: in the order in which the objects are made.  touched: all of them.  quota: of `Change.quota`."""

    writes: list[Write] = field(default_factory=list)
    touched: list[Touched] = field(default_factory=list)
    quota: dict[str, int] = field(default_factory=dict)
    networks: list[Sequence[str]] = field(default_factory=list)  # allowed, still to be held against addresses

    def add(self, table: str, identifier: str, writes: Sequence[Write]) -> None:
        self.writes += writes
        self.touched.append(Touched(table, identifier))

    def check_addresses(self, addresses: Sequence[str]) -> None:
        """What could not be checked before the VIP port gave its addresses; ApiError 400."""
        for networks in self.networks:
            listener_rules.check_networks(networks, addresses, groups=False)


async def planned(call: Call, root: Root) -> Plan:
    """ApiError for the first object that is refused."""
    plan = Plan()
    definitions = sorted_out(call.body)
    counts = definitions.counts()
    if not counts:
        return plan
    plan.quota = dict(await room(call, root.project_id, **counts))
    await _Planner(call, root, plan).all_of(definitions)
    return plan


async def secrets_of(call: Call, tree: Tree) -> Secrets:
    """What listeners and pools refer to."""
    found = [certificates.of_row("pool", row) for row in tree.of("pool")]
    for row in tree.of("listener"):
        found += certificates.of_listener(tree, row["id"])
    return await certificates.secrets_of(call, *dict.fromkeys(one for one in found if one))


class _Planner:
    def __init__(self, call: Call, root: Root, plan: Plan) -> None:
        self._call = call
        self._root = root
        self._plan = plan
        self._pools: dict[str | None, tuple[str, Values]] = {}  # id and values by name
        self._listeners: list[Row] = []
        self._own = {"project_id": root.project_id}

    async def all_of(self, definitions: Definitions) -> None:
        for pool in definitions.pools:
            await self._pool(pool)
        for listener in definitions.listeners:
            await self._listener(listener)

    async def _pool(self, values: Values) -> None:
        call, identifier = self._call, self._call.parts.new_id()
        check_complete(values)
        protocol = values["protocol"]
        pool_rules.check_persistence(protocol, values.get("session_persistence"))
        await pool_operations.check_new(call, values)
        self._pools[pool_name(values)] = (identifier, values)
        rows = pool_rules.rows(
            values,
            identifier=identifier,
            load_balancer_id=self._root.load_balancer_id,
            options=call.options,
            **self._own,
        )
        self._plan.add("pool", identifier, rows)
        monitor = values.get("healthmonitor")
        if monitor:
            self._monitor(monitor, identifier, protocol)
        await self._members(values.get("members") or (), identifier, monitored=bool(monitor))

    def _monitor(self, values: Values, pool_id: str, protocol: str) -> None:
        options, identifier = self._call.options, self._call.parts.new_id()
        monitor_rules.check_type(values.get("type"), options)
        monitor_rules.check_new(values, with_pool=False)
        monitor_rules.check_pool(values["type"], values["delay"], protocol, options)
        rows = monitor_rules.rows(values, identifier=identifier, pool_id=pool_id, **self._own)
        self._plan.add("health_monitor", identifier, rows)
        tell(identifier, values)

    async def _members(self, members: Sequence[Values], pool_id: str, *, monitored: bool) -> None:
        taken: dict[member_rules.Place, Row] = {}
        for values in members:
            member_rules.check_address(values["address"], self._call.options)
            member_rules.check_sriov(values, self._root.flavor)
            member_rules.check_unique(values, taken)
            identifier = self._call.parts.new_id()
            rows = member_rules.rows(
                values, identifier=identifier, pool_id=pool_id, monitored=monitored, **self._own
            )
            taken[member_rules.place_of(values["address"], values["protocol_port"])] = {}
            self._plan.add("member", identifier, rows)
        await check_subnets(self._call, members)

    async def _listener(self, sent: Values) -> None:
        call, identifier = self._call, self._call.parts.new_id()
        listener_rules.check_protocol(sent)
        protocol = sent["protocol"]
        values = {**sent, "default_pool_id": self._default_pool(sent)}
        await listener_operations.check_new(call, values)
        self._check_place(values)
        rows = listener_rules.rows(
            values,
            identifier=identifier,
            load_balancer_id=self._root.load_balancer_id,
            peer=listener_rules.peer_port(self._listeners),
            options=call.options,
            **self._own,
        )
        first = rows[0]
        assert isinstance(first, Insert)
        self._listeners.append(first.row)
        self._plan.add("listener", identifier, rows)
        policies = sent.get("l7policies") or ()
        if policies:
            pool_rules.check_children(protocol)
        self._policies(policies, identifier, protocol)

    def _default_pool(self, sent: Values) -> str | None:
        """The id of the listener's default pool; ApiError 400 for one that does not go with it."""
        if sent.get("default_pool") is None:
            if sent.get("default_pool_id") is not None:
                raise not_found("Pool", sent["default_pool_id"])
            return None
        pool_rules.check_children(sent["protocol"])
        return self._fitting(sent["default_pool"], sent["protocol"])

    def _fitting(self, pool: Values, protocol: str) -> str:
        identifier, values = self._pools[pool_name(pool)]
        pool_rules.check_fit(values["protocol"], protocol)
        return identifier

    def _check_place(self, values: Values) -> None:
        """Against the other listeners, and against the VIPs as far as they are known."""
        root, networks = self._root, values.get("allowed_cidrs")
        checked = values
        if networks and root.addresses is None and not root.groups:
            self._plan.networks.append(networks)
            checked = {**values, "allowed_cidrs": None}
        listener_rules.check_place(
            checked,
            listeners=self._listeners,
            vips=root.addresses or (),
            groups=root.groups,
            options=self._call.options,
        )

    def _policies(self, policies: Sequence[Values], listener_id: str, protocol: str) -> None:
        order: list[str] = []
        made: dict[str, tuple[Values, Sequence[Values]]] = {}
        for sent in policies:
            identifier, pool = self._call.parts.new_id(), sent.get("redirect_pool")
            target = self._fitting(pool, protocol) if pool is not None else None
            values: Values = policy_rules.settled({**sent, "redirect_pool_id": target}, creating=True)
            rules = sent.get("rules") or ()
            if len(rules) > policy_rules.MOST_RULES:
                raise refuse("TooManyL7RulesOnL7Policy", id=identifier)
            for rule in rules:
                rule_rules.check(rule_rules.without_key(rule))
            order = policy_rules.inserted(order, identifier, sent["position"])
            made[identifier] = (values, rules)
        for identifier, (values, rules) in made.items():
            position = order.index(identifier) + 1
            rows = policy_rules.rows(
                values, identifier=identifier, listener_id=listener_id, position=position, **self._own
            )
            self._plan.add("l7policy", identifier, rows)
            for rule in rules:
                rule_id = self._call.parts.new_id()
                written = rule_rules.rows(rule, identifier=rule_id, policy_id=identifier, **self._own)
                self._plan.add("l7rule", rule_id, written)

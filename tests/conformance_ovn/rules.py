"""Where a scenario may end otherwise than the original's: rules over what happened in it, each a line of docs/ovn-departures.md.

A rule names what may differ, and looks whether the scenario holds what the line is about; ids of scenarios mean nothing here, so the same
rules judge scenarios that nobody has seen.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from tests.conformance_ovn.recorded import Json, Moment

ROW_KINDS = frozenset(
    {
        "rows",
        "protocol",
        "vips",
        "external_ids",
        "options",
        "selection_fields",
        "ip_port_mappings",
        "health_check",
        "switches",
        "routers",
    }
)
STATUS_KINDS = frozenset(
    f"status of {kind}" for kind in ("loadbalancers", "listeners", "pools", "members", "healthmonitors")
)
PARTS = STATUS_KINDS - {"status of healthmonitors"}
REFUSAL = "refusal"


@dataclass(frozen=True)
class Story:
    """A scenario as it was replayed."""

    moments: Sequence[Moment]

    def calls(self, *methods: str) -> Iterator[Json]:
        """Steps that were carried out."""
        for moment in self.moments:
            step = moment.step
            if step["do"] == "call" and step["method"] in methods and "error" not in step:
                yield step

    def events(self, what: str) -> Iterator[Json]:
        return (m.step for m in self.moments if m.step["do"] == "event" and m.step["what"] == what)

    @cached_property
    def trees(self) -> list[Json]:
        return [m.tree["loadbalancer"] for m in self.moments if m.tree is not None]

    def pools(self) -> Iterator[tuple[Json, Json]]:
        """Trees and each of their pools."""
        for tree in self.trees:
            for pool in tree["pools"]:
                yield tree, pool

    def repeats(self, method: str, key: str) -> bool:
        ids = [step["args"][0][key] for step in self.calls(method)]
        return len(set(ids)) < len(ids)

    def is_synced(self) -> bool:
        return any(moment.step["do"] == "sync" for moment in self.moments)


def _monitored(tree: Json) -> list[Json]:
    return [member for pool in tree["pools"] if pool.get("healthmonitor") for member in pool["members"]]


def _user_port(story: Story) -> bool:
    own = {s["args"][2].get("vip_port_id") for s in story.calls("create_vip_port")} - {None}
    return any(event["port_id"] in own for event in story.events("floating_ip_associate"))


def _shared_pool(story: Story) -> bool:
    for tree, pool in story.pools():
        users = [x for x in tree["listeners"] if x.get("default_pool_id") == pool["pool_id"]]
        if pool.get("healthmonitor") and len(users) > 1:
            return True
    return False


def _look_alike(story: Story) -> bool:
    for event in story.events("service_monitor"):
        text = f"{event['ip']}:{event['port']}"
        for tree in story.trees:
            for member in _monitored(tree):
                other = f"{member['address']}:{member['protocol_port']}"
                if other != text and text in other:
                    return True
    return False


def _two_watchers(story: Story) -> bool:
    """One machine was watched for two members, and one of the watches ended."""
    ended = any(story.calls("health_monitor_delete", "pool_delete", "member_delete", "member_batch_update"))
    places = [[m["address"] for m in _monitored(tree)] for tree in story.trees]
    return ended and any(len(set(found)) < len(found) for found in places)


def _one_machine(story: Story) -> bool:
    """Two watched members of one address, and one of them was removed."""
    removed = any(story.calls("member_delete", "member_batch_update", "pool_delete"))
    places = [[m["address"] for m in _monitored(tree)] for tree in story.trees]
    return removed and any(len(set(found)) < len(found) for found in places)


def _disabled_listener_deleted(story: Story) -> bool:
    for moment in story.moments:
        step = moment.step
        if step["do"] == "call" and step["method"] == "listener_delete" and moment.before is not None:
            wanted = step["args"][0]["listener_id"]
            for listener in moment.before["loadbalancer"]["listeners"]:
                if listener["listener_id"] == wanted and listener.get("admin_state_up") is False:
                    return True
    return False


def _changed_after_loss(story: Story) -> bool:
    is_lost = False
    for moment in story.moments:
        if moment.step.get("what") == "rows_lost":
            is_lost = True
        elif is_lost and moment.step["do"] == "call":
            return True
    return False


def _repaired_after_loss(story: Story) -> bool:
    return any(story.events("rows_lost")) and story.is_synced() and any(map(_monitored, story.trees))


def _repaired_with_less(story: Story) -> bool:
    for before, after in pairwise(story.moments):
        if after.step["do"] == "sync" and before.tree is not None and after.tree is not None:
            counts = [
                sum(len(p["members"]) for p in m["loadbalancer"]["pools"]) for m in (before.tree, after.tree)
            ]
            if counts[1] < counts[0]:
                return True
    return False


def _internal_error(story: Story) -> bool:
    return any(m.step.get("error", {}).get("class") == "AttributeError" for m in story.moments)


def _pool_updated_with(*keys: str) -> Callable[[Story], bool]:
    def look(story: Story) -> bool:
        return any(key in step["args"][1] for step in story.calls("pool_update") for key in keys)

    return look


def _persistence_alone(story: Story) -> bool:
    news = [step["args"][1] for step in story.calls("pool_update")]
    return any("session_persistence" in new and "admin_state_up" not in new for new in news)


def _created_disabled(story: Story) -> bool:
    pools = [step["args"][0] for step in story.calls("pool_create")]
    return any(p.get("admin_state_up") is False and p.get("listener_id") for p in pools)


def _behind_router(story: Story) -> bool:
    """A member of another subnet than the VIP's went."""
    gone = any(story.calls("member_delete", "member_batch_update", "pool_delete"))
    return gone and any(
        member.get("subnet_id") not in (None, tree.get("vip_subnet_id"))
        for tree, pool in story.pools()
        for member in pool["members"]
    )


def _other_affinity(story: Story) -> bool:
    kept = [tree for tree in story.trees if any(p.get("session_persistence") for p in tree["pools"])]
    return any(story.calls("pool_delete")) and any(len(tree["pools"]) > 1 for tree in kept)


def _several_protocols(story: Story) -> bool:
    return any(
        any(map(_monitored, [tree]))
        and len({x["protocol"] for x in (*tree["pools"], *tree["listeners"])}) > 1
        for tree in story.trees
    )


def _floating_twice(story: Story) -> bool:
    ports = [event["port_id"] for event in story.events("floating_ip_associate")]
    return len(set(ports)) < len(ports)


def _watched_while_off(story: Story) -> bool:
    return any(pool.get("healthmonitor") and pool.get("admin_state_up") is False for _, pool in story.pools())


def _default_pool_taken(story: Story) -> bool:
    news = [step["args"][1] for step in story.calls("listener_update")]
    return any("default_pool_id" in new and new["default_pool_id"] is None for new in news)


@dataclass(frozen=True)
class Rule:
    """name: the line.  kinds: what may differ."""

    name: str
    kinds: frozenset[str]
    applies: Callable[[Story], bool]


def _rule(name: str, applies: Callable[[Story], bool], *kinds: str) -> Rule:
    return Rule(name, frozenset(kinds), applies)


_MEMBERS = "status of members"
RULES: tuple[Rule, ...] = (
    _rule("fip-on-user-port", _user_port, "vips", "external_ids", "health_check"),
    _rule("hm-second-listener-same-pool", _shared_pool, "health_check"),
    _rule("member-substring-event", _look_alike, "external_ids", *PARTS),
    _rule(
        "hm-on-sctp-pool",
        lambda story: any(p["protocol"] == "SCTP" and p.get("healthmonitor") for _, p in story.pools()),
        "external_ids",
        *PARTS,
    ),
    _rule(
        "hm-create-twice", lambda s: s.repeats("health_monitor_create", "healthmonitor_id"), "health_check"
    ),
    _rule(
        "lb-create-second-time",
        lambda s: s.repeats("loadbalancer_create", "loadbalancer_id"),
        "rows",
        "external_ids",
    ),
    _rule("pool-create-disabled-then-enable", _created_disabled, "vips", "external_ids", "health_check"),
    _rule(
        "pool-create-twice", lambda s: s.repeats("pool_create", "pool_id"), "external_ids", "vips", "options"
    ),
    _rule("hm-two-pools-same-member", _two_watchers, "external_ids", *PARTS),
    _rule("mapping-of-one-machine", _one_machine, "ip_port_mappings", "external_ids", *PARTS),
    _rule("listener-delete-disabled", _disabled_listener_deleted, "protocol", "external_ids", "rows"),
    Rule("rows-lost", ROW_KINDS | STATUS_KINDS, _changed_after_loss),
    _rule("sync-leftovers", _repaired_with_less, "external_ids"),
    _rule("sync-statuses", _repaired_after_loss, *PARTS),
    _rule("cookie-persistence", _internal_error, REFUSAL),
    _rule("pool-update-refused", _pool_updated_with("lb_algorithm", "session_persistence"), REFUSAL),
    Rule("pool-update-persistence", STATUS_KINDS, _persistence_alone),
    _rule(
        "probe-error",
        lambda s: any(event["status"] == "error" for event in s.events("service_monitor")),
        "external_ids",
        *PARTS,
    ),
    _rule("affinity-of-others", _other_affinity, "options"),
    _rule("protocols-together", _several_protocols, "status of loadbalancers"),
    _rule("routers-left", _behind_router, "switches", "routers", "external_ids"),
    _rule("fip-changed", _floating_twice, "vips", "external_ids", "health_check"),
    _rule("hm-on-disabled-pool", _watched_while_off, *STATUS_KINDS),
    _rule("listener-without-pool", _default_pool_taken, "external_ids", "vips", *STATUS_KINDS),
)


def explained(story: Story, differences: frozenset[str]) -> tuple[list[str], frozenset[str]]:
    """Names of the rules that were needed, the narrowest first, and what is left that none explains."""
    left, needed = set(differences), []
    for rule in sorted(RULES, key=lambda rule: len(rule.kinds)):
        if left & rule.kinds and rule.applies(story):
            needed.append(rule.name)
            left -= rule.kinds
    return needed, frozenset(left)

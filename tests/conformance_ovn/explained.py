"""Scenarios that end otherwise than the original's on purpose.

Each names its line in docs/ovn-departures.md and what may differ there; anything beyond it is a difference.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Departure:
    """columns: names of row columns that differ, `rows` for rows that are there or not.  statuses: kinds of objects that stand otherwise.
    refusal: the refusal differs."""

    rule: str
    columns: frozenset[str] = frozenset()
    statuses: frozenset[str] = frozenset()
    refusal: bool = False


def _departure(rule: str, *columns: str, statuses: tuple[str, ...] = ()) -> Departure:
    return Departure(rule, frozenset(columns), frozenset(statuses))


DEPARTURES: dict[str, Departure] = {
    # tagged as flaws of the original
    "fip-on-user-port": _departure("fip-on-user-port", "vips", "external_ids"),
    "hm-second-listener-same-pool": _departure("hm-second-listener-same-pool", "health_check"),
    "member-substring-event": _departure("member-substring-event", "external_ids", statuses=("members",)),
    "hm-on-sctp-pool": _departure("hm-on-sctp-pool", "external_ids", statuses=("members",)),
    "hm-create-twice": _departure("hm-create-twice", "health_check"),
    "lb-create-second-time": _departure("lb-create-second-time", "rows", "external_ids"),
    "pool-create-disabled-then-enable": _departure(
        "pool-create-disabled-then-enable", "vips", "external_ids"
    ),
    "pool-create-twice": _departure("pool-create-twice", "external_ids"),
    # not tagged
    "hm-two-pools-same-member": _departure("hm-two-pools-same-member", "external_ids", statuses=("members",)),
    "listener-delete-disabled": _departure("listener-delete-disabled", "protocol", "external_ids"),
    "lb-update-lost": _departure("rows-lost", "rows", statuses=("loadbalancers",)),
    "listener-on-lost-lb": _departure("rows-lost", "rows", statuses=("listeners",)),
    "listener-update-lost": _departure("rows-lost", "rows", statuses=("listeners",)),
    "listener-delete-lost": _departure("rows-lost", "rows"),
    "sync-extra-member": _departure("sync-leftovers", "external_ids"),
    "sync-lost-with-hm": _departure("sync-statuses", statuses=("members",)),
    "pool-bad-persistence-http-cookie": Departure("cookie-persistence", refusal=True),
}

# Calls whose refusal is the network's, and a scenario whose facts cannot be read: they are decided where I/O is done.
BEYOND_RENDERING = {
    "lb-create-network-down": "the network cannot be read, so nothing is rendered",
    "vip-port-conflict": "the network refuses the port",
    "vip-port-additional-fail": "the network refuses the port",
    "vip-port-service-error": "the network refuses the port",
}

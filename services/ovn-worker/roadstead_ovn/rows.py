"""Rows of the Northbound database as this worker wants them, and when two of them say the same.

Texts that hold lists or JSON are compared by what they say: the order of servers, routers and members is no difference, and a row that
another writer laid out otherwise is left as it is.  Keys that begin with `roadstead:` are ours alone and compared apart.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

OURS = "roadstead:"
REVISION = f"{OURS}revision"
DISABLED = ":D"
FOUR_TUPLE = ("ip_dst", "ip_src", "tp_dst", "tp_src")
ADDRESSES = ("ip_dst", "ip_src")

_ADDITIONAL = ("neutron:additional_vips", "neutron:additional_vip_port_ids")
_LISTS = frozenset({"lr_ref", "neutron:additional_vip_fips"})
_JSON_KEYS = frozenset({"ls_refs", "neutron:member_status", "octavia:healthmonitors"})


@dataclass(frozen=True)
class HealthCheckRow:
    """Load_Balancer_Health_Check; lives and goes with the row that it hangs on."""

    vip: str
    options: Mapping[str, str]
    external_ids: Mapping[str, str]


@dataclass(frozen=True)
class Freedom:
    """What depends on the order in which things happened, and may be found in any of these forms.

    selection_fields, affinity: a row has them once; where its pools disagree any of their choices will do (None: whatever is there).
    switches, routers: where other rows of the load balancer hang; a row that was copied from them hangs there too.  counts: by switch,
    the numbers that `ls_refs` may have.
    """

    selection_fields: frozenset[tuple[str, ...]] | None = frozenset()
    affinity: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()
    routers: frozenset[str] = frozenset()
    counts: Mapping[str, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadBalancerRow:
    """Load_Balancer, and where it hangs.  protocol: None while nothing has set one.  switches, routers: their names."""

    name: str
    protocol: str | None
    vips: Mapping[str, str]
    external_ids: Mapping[str, str]
    options: Mapping[str, str] = field(default_factory=dict)
    selection_fields: tuple[str, ...] = FOUR_TUPLE
    ip_port_mappings: Mapping[str, str] = field(default_factory=dict)
    health_checks: tuple[HealthCheckRow, ...] = ()
    switches: frozenset[str] = frozenset()
    routers: frozenset[str] = frozenset()
    freedom: Freedom = field(default=Freedom(), compare=False)


@dataclass(frozen=True)
class SwitchPort:
    """What a port of ours must look like on its logical switch."""

    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Wanted:
    """Everything a load balancer wants of the database.

    switch_ports: by port id.  monitor_subnets: those that need a port for probes.  centralised: floating IPs of members whose NAT rows
    may have neither external_mac nor logical_port while the load balancer has a floating IP itself.  lacking: networks of VIPs that have
    no logical switch, so that no client reaches them.
    """

    rows: tuple[LoadBalancerRow, ...] = ()
    switch_ports: Mapping[str, SwitchPort] = field(default_factory=dict)
    monitor_subnets: frozenset[str] = frozenset()
    centralised: frozenset[str] = frozenset()
    lacking: frozenset[str] = frozenset()


# ------------------------------------------------------------ comparison


def canonical_row(row: LoadBalancerRow) -> dict[str, Any]:
    """The row by column, so that equal means that both say the same.  Keys of ours are left out."""
    return {
        "name": row.name,
        "protocol": row.protocol or None,
        "vips": {key: _list(value) for key, value in row.vips.items()},
        "external_ids": canonical_ids(row.external_ids),
        "options": dict(row.options),
        "selection_fields": tuple(sorted(row.selection_fields)),
        "ip_port_mappings": dict(row.ip_port_mappings),
        "health_check": sorted(_health_check(check) for check in row.health_checks),
        "switches": row.switches,
        "routers": row.routers,
    }


def canonical_ids(ids: Mapping[str, str]) -> dict[str, Any]:
    """external_ids by what they say.

    Of `ls_refs` the networks count, not how often each is counted: that number is another writer's book-keeping and depends on the order
    in which things happened.  Whatever really changed shows in another key, and then the numbers are written with it.
    """
    found: dict[str, Any] = {}
    for key, value in ids.items():
        if key.startswith(OURS) or key in _ADDITIONAL:
            continue
        if key in _JSON_KEYS:
            found[key] = _json(key, value)
        elif key in _LISTS or key.startswith("pool_"):
            found[key] = _list(value)
        else:
            found[key] = value
    addresses, ports = (ids.get(key, "").split(",") for key in _ADDITIONAL)
    if addresses != [""]:
        found["neutron:additional_vips"] = sorted(
            zip(addresses, [*ports, *[""] * (len(addresses) - len(ports))], strict=False)
        )
    return found


def differing(wanted: LoadBalancerRow, found: LoadBalancerRow) -> tuple[str, ...]:
    """Names of columns that must be written, sorted; the revision is no reason by itself."""
    ours, theirs = canonical_row(settled(wanted, found)), canonical_row(found)
    return tuple(sorted(key for key in ours if ours[key] != theirs[key]))


def settled(wanted: LoadBalancerRow, found: LoadBalancerRow) -> LoadBalancerRow:
    """The wanted row with what the found one has where either will do, so that traffic keeps its way."""
    freedom = wanted.freedom
    fields = tuple(sorted(found.selection_fields))
    choices = freedom.selection_fields
    if fields == wanted.selection_fields or not (choices is None or fields in choices):
        fields = wanted.selection_fields
    ids = {key: _kept(key, value, found.external_ids) for key, value in wanted.external_ids.items()}
    further = found.routers & freedom.routers - wanted.routers
    if further:
        ids["lr_ref"] = ",".join([*_split(ids.get("lr_ref", "")), *sorted(further)])
    if counts := _counts(ids.get("ls_refs"), found.external_ids.get("ls_refs"), freedom):
        ids["ls_refs"] = json.dumps(counts)
    options = dict(wanted.options)
    if (timeout := found.options.get("affinity_timeout")) in freedom.affinity:
        options["affinity_timeout"] = str(timeout)
    return replace(
        wanted,
        external_ids=ids,
        options=options,
        selection_fields=fields,
        switches=wanted.switches | (found.switches & freedom.switches),
        routers=wanted.routers | further,
    )


def _counts(wanted: str | None, found: str | None, freedom: Freedom) -> dict[str, int]:
    counts: dict[str, int] = json.loads(wanted) if wanted else {}
    try:
        there = json.loads(found) if found else {}
    except ValueError:
        there = {}
    for switch, count in there.items() if isinstance(there, dict) else ():
        if isinstance(count, int) and count in freedom.counts.get(switch, ()):
            counts[switch] = count
    return counts


def _kept(key: str, wanted: str, found: Mapping[str, str]) -> str:
    """What the original writes of listeners without traffic depends on what came first; either text means the same to OVN.

    A listener that is disabled may not name its pool yet, and one whose pool was made disabled names it by the pool's disabled key.
    """
    there = found.get(key)
    port, _, pool = wanted.partition(":")
    if there is None or not key.startswith("listener_") or not pool:
        return wanted
    if key.endswith(DISABLED) and there == f"{port}:":
        return there
    if there == wanted + DISABLED and pool + DISABLED in found:
        return there
    return wanted


def _split(value: str) -> list[str]:
    return [part for part in value.split(",") if part]


def _list(value: str) -> tuple[str, ...]:
    return tuple(sorted(_split(value)))


def _json(key: str, value: str) -> Any:
    try:
        parsed = json.loads(value)
    except ValueError:
        return value  # damaged: different from anything that is rendered
    if key == "ls_refs" and isinstance(parsed, dict):
        return tuple(sorted(parsed))
    if key == "octavia:healthmonitors" and isinstance(parsed, list):
        return tuple(sorted({str(item) for item in parsed}))
    return parsed


def _health_check(check: HealthCheckRow) -> tuple[Any, ...]:
    return check.vip, tuple(sorted(check.options.items())), tuple(sorted(check.external_ids.items()))

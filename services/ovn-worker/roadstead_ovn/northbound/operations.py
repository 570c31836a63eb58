"""A plan in the words of the OVSDB protocol (RFC 7047): the operations of one transaction, its verifications first.

What a plan names by what it says (switches, health checks) is looked up here by UUID in the local copy; what is not there any more makes
the plan out of date before it is sent.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import count
from typing import Any, Protocol
from uuid import UUID, uuid5

from roadstead_ovn.northbound.plan import COLUMNS, Plan, RowChange
from roadstead_ovn.northbound.port import Conflict, FoundRow
from roadstead_ovn.rows import HealthCheckRow, LoadBalancerRow

Json = dict[str, Any]
LB, CHECK, PORT, NAT = "Load_Balancer", "Load_Balancer_Health_Check", "Logical_Switch_Port", "NAT"
SWITCH, ROUTER = "Logical_Switch", "Logical_Router"
ROWS = UUID("5b1c2b0e-3d0f-4f0e-9a58-6f2f4f9f2a11")  # the namespace of chosen UUIDs; never to be changed
_MAPS = ("vips", "external_ids", "options", "ip_port_mappings")


class Handles(Protocol):
    """UUIDs of the local copy."""

    def current(self, handle: str) -> FoundRow | None:
        """The Load_Balancer row as the copy has it now."""

    def checks_of(self, handle: str) -> Mapping[str, HealthCheckRow]:
        """Health checks of a Load_Balancer row, by UUID."""

    def named(self, table: str, name: str) -> Collection[str]:
        """Rows of a table by their name; NAT rows by their external IP."""


def operations(plan: Plan, handles: Handles, *, prefix: str = "", chooses: bool = True) -> list[Json]:
    """The transaction.  prefix: makes names of new rows unique among several plans of one transaction.  Conflict: the copy has moved on.

    chooses: the server lets its clients choose UUIDs (Open vSwitch 3.0).  Then the first row of a load balancer has the same UUID whoever
    makes it, and of two that do only one succeeds.  For other servers the name is looked for, which reads every row of the table.
    """
    found = [_verified(row, handles) for row in plan.verified]
    ops = [op for pair in found for op in pair]
    if plan.is_alone and not chooses:
        ops.append(_alone(plan))
    fresh = _fresh(plan)
    for number, change in enumerate(plan.changes):
        made = _row(change, handles, f"{prefix}r{number}")
        if change.before is None and chooses:
            made = [
                {**op, "uuid": next(fresh)} if op["table"] == LB and op["op"] == "insert" else op
                for op in made
            ]
        ops += made
    for port, (old, new) in plan.addresses.items():
        where = _by_uuid(_one(handles, PORT, port))
        ops.append(_wait(PORT, where, {"addresses": as_set(old)}))
        ops.append({"op": "update", "table": PORT, "where": where, "row": {"addresses": as_set(new)}})
    for address in sorted(plan.unpinned):
        gone = {"external_mac": as_set(()), "logical_port": as_set(())}
        for handle in sorted(handles.named(NAT, address)):
            ops.append({"op": "update", "table": NAT, "where": _by_uuid(handle), "row": gone})
    return ops


def as_set(values: Collection[str]) -> list[Any]:
    return ["set", sorted(values)]


def as_map(values: Mapping[str, str]) -> list[Any]:
    return ["map", [[key, value] for key, value in values.items()]]


def _references(handles: Collection[str]) -> list[Any]:
    return ["set", [["uuid", handle] for handle in sorted(handles)]]


def _by_uuid(handle: str) -> list[Any]:
    return [["_uuid", "==", ["uuid", handle]]]


def _wait(table: str, where: list[Any], row: Mapping[str, Any]) -> Json:
    # Compared as sets of rows: one that is gone is no row, and so differs.
    return {
        "op": "wait",
        "timeout": 0,
        "table": table,
        "where": where,
        "columns": sorted(row),
        "until": "==",
        "rows": [dict(row)],
    }


def _verified(found: FoundRow, handles: Handles) -> list[Json]:
    now = handles.current(found.handle)
    if now is None or now.row != found.row:
        raise Conflict(f"row {found.handle} of load balancer {found.row.name} has changed since it was read")
    checks = handles.checks_of(found.handle)
    values = {**columns_of(found.row), "health_check": _references(checks)}
    ops = [_wait(LB, _by_uuid(found.handle), values)]
    return ops + [_wait(CHECK, _by_uuid(key), check_columns(check)) for key, check in sorted(checks.items())]


def _alone(plan: Plan) -> Json:
    # Rows that were renamed are taken back by the same transaction, and do not bear the name before it.
    named = [row for row in plan.verified if row.row.name == plan.load_balancer_id]
    rows = [{"_uuid": ["uuid", row.handle]} for row in named]
    where = [["name", "==", plan.load_balancer_id]]
    return {**_wait(LB, where, {"_uuid": None}), "rows": rows}


def _fresh(plan: Plan) -> Iterator[str]:
    taken = {row.handle for row in plan.verified}
    return (handle for handle in chosen(plan.load_balancer_id) if handle not in taken)


def chosen(load_balancer_id: str) -> Iterator[str]:
    """UUIDs of the load balancer's rows, in the order in which they are used; without end."""
    return (str(uuid5(ROWS, f"{load_balancer_id}/{number}")) for number in count())


def columns_of(row: LoadBalancerRow) -> Json:
    """The row's own columns but health_check, as the protocol has them."""
    return {
        "name": row.name,
        "protocol": as_set([row.protocol] if row.protocol else []),
        **{name: as_map(getattr(row, name)) for name in _MAPS},
        "selection_fields": as_set(row.selection_fields),
    }


def check_columns(check: HealthCheckRow) -> Json:
    return {
        "vip": check.vip,
        "options": as_map(check.options),
        "external_ids": as_map(check.external_ids),
    }


def _row(change: RowChange, handles: Handles, name: str) -> list[Json]:
    if change.after is None:
        assert change.before is not None
        return [{"op": "delete", "table": LB, "where": _by_uuid(change.before.handle)}]
    if change.before is None:
        ops, checks = _new_checks(change.after.health_checks, name)
        row = {**columns_of(change.after), "health_check": ["set", checks]}
        ops.append({"op": "insert", "table": LB, "row": row, "uuid-name": name})
        return ops + _hanging(change, handles, ["named-uuid", name])
    handle = change.before.handle
    ops = _update(change.before, change.after, change.columns, handles, name)
    return ops + _hanging(change, handles, ["uuid", handle])


def _update(
    before: FoundRow, after: LoadBalancerRow, columns: tuple[str, ...], handles: Handles, name: str
) -> list[Json]:
    ops: list[Json] = []
    values = columns_of(after)
    plain = {key: values[key] for key in columns if key in values and key not in _MAPS}
    if "health_check" in columns:
        left = list(after.health_checks)
        kept = []
        for key, check in sorted(handles.checks_of(before.handle).items()):
            if check in left:
                left.remove(check)
                kept.append(["uuid", key])
        ops, fresh = _new_checks(tuple(left), name)
        plain["health_check"] = ["set", kept + fresh]
    if plain:
        ops.append({"op": "update", "table": LB, "where": _by_uuid(before.handle), "row": plain})
    steps: list[Any] = []
    for key in columns:
        if key in _MAPS:
            steps += _map_steps(key, getattr(before.row, key), getattr(after, key))
    if steps:
        where = _by_uuid(before.handle)
        ops.append({"op": "mutate", "table": LB, "where": where, "mutations": steps})
    return ops


def _map_steps(column: str, old: Mapping[str, str], new: Mapping[str, str]) -> list[Any]:
    gone = sorted(key for key, value in old.items() if new.get(key) != value)
    fresh = {key: value for key, value in new.items() if old.get(key) != value}
    steps: list[Any] = [[column, "delete", ["set", gone]]] if gone else []
    return [*steps, [column, "insert", as_map(fresh)]] if fresh else steps


def _new_checks(checks: Collection[HealthCheckRow], name: str) -> tuple[list[Json], list[Any]]:
    ops, references = [], []
    for number, check in enumerate(checks):
        label = f"{name}c{number}"
        ops.append({"op": "insert", "table": CHECK, "row": check_columns(check), "uuid-name": label})
        references.append(["named-uuid", label])
    return ops, references


def _hanging(change: RowChange, handles: Handles, reference: list[str]) -> list[Json]:
    ops = []
    for step, sides in (("insert", change.attached), ("delete", change.detached)):
        for table, names in zip((SWITCH, ROUTER), sides, strict=True):
            for name in sorted(names):
                mutation = ["load_balancer", step, ["set", [reference]]]
                where = _by_uuid(_one(handles, table, name))
                ops.append({"op": "mutate", "table": table, "where": where, "mutations": [mutation]})
    return ops


def _one(handles: Handles, table: str, name: str) -> str:
    found = sorted(handles.named(table, name))
    if not found:
        raise Conflict(f"{table} {name} is gone")
    return found[0]


assert {*_MAPS, "name", "protocol", "selection_fields", "health_check"} == COLUMNS

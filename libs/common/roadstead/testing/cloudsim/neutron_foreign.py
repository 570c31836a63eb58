"""What somebody else does to the network's objects behind the client's back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import JsonObject
from .tables import Row, Table

if TYPE_CHECKING:
    from .neutron import Neutron


def change_by_somebody_else(neutron: Neutron, verb: str, object_id: str, values: JsonObject) -> JsonObject:
    """Apply a foreign change; ValueError for an unknown verb, KeyError for an unknown id.

    Verbs: `set` (write raw fields of any object, no rule is checked), `rename` (to `name`),
    `delete` (whatever still uses it), `disassociate` (a floating IP from its port),
    `unbind` (a port from its server).
    """
    table, row = _find(neutron, object_id)
    if verb == "set":
        table.change(row, **values)
    elif verb == "rename":
        table.change(row, name=values["name"])
    elif verb == "disassociate":
        neutron.state.disassociate(row)
    elif verb == "unbind":
        neutron.ports_part.unbind(row)
    elif verb == "delete":
        _delete(neutron, table, row)
    else:
        raise ValueError(
            f"network knows no foreign change {verb!r}; use set, rename, delete, disassociate or unbind"
        )
    return {key: value for key, value in row.items() if not key.startswith("_")}


def _find(neutron: Neutron, object_id: str) -> tuple[Table, Row]:
    state = neutron.state
    for table in (
        state.networks, state.subnets, state.ports, state.routers, state.floating_ips, state.groups, state.rules,
    ):  # fmt: skip
        row = table.get(object_id)
        if row is not None:
            return table, row
    raise KeyError(object_id)


def _delete(neutron: Neutron, table: Table, row: Row) -> None:
    state = neutron.state
    if table is state.ports:
        state.drop_port(row)
        return
    if table is state.networks:
        for port in state.ports.where("network_id", row["id"]):
            state.drop_port(port)
        for subnet in state.subnets.where("network_id", row["id"]):
            state.subnets.remove(subnet["id"])
    elif table is state.subnets:
        network = state.networks.get(row["network_id"])
        if network is not None:
            network["subnets"].remove(row["id"])
    elif table is state.routers or table is state.floating_ips:
        for port in state.ports.where("device_id", row["id"]):
            state.drop_port(port)
    elif table is state.groups:
        for rule in state.rules.where("security_group_id", row["id"]):
            state.rules.remove(rule["id"])
    table.remove(row["id"])

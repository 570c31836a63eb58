"""Keeps the Northbound rows of a simulated cloud in step with what its Neutron remembers.

After every call the rows of the objects that it touched are written whole, in one transaction, as the network service does; rows of
others (load balancers above all) stay as they are.  While the database is away the touched objects are kept for later.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from roadstead.testing.cloudsim import Cloud
from roadstead.testing.cloudsim.neutron_state import ROUTER_GATEWAY, ROUTER_INTERFACE, NetworkState

from .ovsdb import UUID, NamedUUID, OvsdbError, OvsdbRefused, Session, encoded
from .rows import NbRow, Shape, rows_of

LOG = logging.getLogger(__name__)
# Tables of the network service's rows with the column that names a row; what they hold in sets goes with them.
ROOTS = ("Logical_Router", "Logical_Switch")
Key = tuple[str, str]


class OvnMirror:
    """`remotes`: of the Northbound database, as OVN's own clients take them."""

    def __init__(self, remotes: str, shape: Shape | None = None) -> None:
        self.session = Session(remotes)
        self.shape = shape if shape is not None else Shape()
        self._cloud: Cloud | None = None
        self._of: dict[str, list[NbRow]] = {}  # by object: the rows written of it
        self._uuids: dict[Key, str] = {}
        self._floats: dict[str, str] = {}  # floating IP -> port that it led to
        self._late: set[str] = set()

    def follow(self, cloud: Cloud) -> None:
        """Lay the cloud's networks and follow every later change.  OvsdbError when the database is not there."""
        with cloud.lock:
            self._cloud = cloud
            self._attach()
            self.lay()
            cloud.followers.append(self.catch_up)

    def leave(self) -> None:
        """Follow no more; what was written stays."""
        if self._cloud is not None:
            with self._cloud.lock:
                self._cloud.followers.remove(self.catch_up)
        self.session.close()

    def lay(self) -> None:
        """Write everything anew, as the network service's repair does after a loss; load balancers of ours hang on again by themselves."""
        state = self._state()
        with self._followed().lock:
            self._forget()
            held = {
                row["name"]: row["load_balancer"]
                for table in ROOTS
                for row in self.session.select(table, ["name", "load_balancer"])
            }
            operations: list[dict[str, Any]] = [
                {"op": "delete", "table": table, "where": []} for table in ROOTS
            ]
            # An emptied switch leaves no port behind: their tables are no roots.
            self.session.transact(*operations)
            self._write(_ordered(state), held)

    def catch_up(self) -> None:
        """Write what was touched since the last time; failures of the database are logged, and the objects kept."""
        touched = self._late | self._taken()
        if not touched:
            return
        try:
            self._write(self._with_neighbours(touched))
        except (OvsdbError, OvsdbRefused) as error:
            self._late = touched
            LOG.warning("Neutron's rows wait for OVN: %s", error)
        else:
            self._late = set()

    # ------------------------------------------------------------- pieces

    def _followed(self) -> Cloud:
        if self._cloud is None:
            raise RuntimeError("the mirror follows no cloud: call follow first")
        return self._cloud

    def _state(self) -> NetworkState:
        return self._followed().neutron.state

    def _attach(self) -> None:
        state = self._state()
        shared: set[str] = set()
        for table in (state.networks, state.ports, state.routers, state.floating_ips):
            table.touched = shared

    def _taken(self) -> set[str]:
        shared = self._state().networks.touched
        if shared is None:  # the cloud was reset: its tables are new
            self._attach()
            return {*self._of, *_ordered(self._state())}
        taken = set(shared)
        shared.clear()
        return taken

    def _forget(self) -> None:
        self._of.clear()
        self._uuids.clear()
        self._floats.clear()
        self._late.clear()
        self._taken()

    def _with_neighbours(self, touched: Iterable[str]) -> list[str]:
        """The objects whose rows depend on a touched one, in the order in which rows must come to be."""
        state = self._state()
        wanted = set(touched)
        for object_id in touched:
            floating = state.floating_ips.get(object_id)
            port_id = floating["port_id"] if floating else None
            wanted |= {item for item in (port_id, self._floats.get(object_id)) if item}
            self._floats.pop(object_id, None)
            if port_id:
                self._floats[object_id] = port_id
            port = state.ports.get(object_id)
            router_id = port["device_id"] if port else self._router_of(object_id)
            if router_id and (port is None or port["device_owner"] in (ROUTER_INTERFACE, ROUTER_GATEWAY)):
                wanted.add(router_id)
        return sorted(wanted, key=lambda item: (self._rank(item), item))

    def _router_of(self, port_id: str) -> str | None:
        for row in self._of.get(port_id, ()):
            if row.table == "Logical_Router_Port":
                return str(row.columns["external_ids"]["neutron:router_name"])
        return None

    def _rank(self, object_id: str) -> int:
        state = self._state()
        tables = (state.networks, state.routers, state.ports, state.floating_ips)
        return next((i for i, table in enumerate(tables) if object_id in table), 0)

    def _write(
        self,
        ids: Iterable[str],
        held: Mapping[str, Any] | None = None,
        first: Sequence[dict[str, Any]] = (),
    ) -> None:
        state = self._state()
        after = {object_id: rows_of(state, self.shape, object_id) for object_id in ids}
        gone: list[NbRow] = []
        come: list[tuple[Key, NbRow, int]] = []
        operations: list[dict[str, Any]] = []
        for object_id, rows in after.items():
            there = {(row.table, row.name): row for row in self._of.get(object_id, ())}
            for row in rows:
                key = (row.table, row.name)
                old = there.pop(key, None)
                if old is not None and old.parent != row.parent:
                    gone.append(old)
                    old = None
                if old is not None:
                    operations.append(self._update(row))
                else:
                    operations += self._children(row, len(come))
                    come.append((key, row, len(operations)))
                    operations += self._insert(row, f"row{len(come)}", (held or {}).get(row.name))
            gone += there.values()
        removals = [*first, *(self._removal(row) for row in gone)]
        if not operations and not removals:
            self._remember(after)
            return
        results = self.session.transact(*removals, *operations)
        for row in gone:
            self._uuids.pop((row.table, row.name), None)
        for key, _, place in come:
            self._uuids[key] = str(UUID(results[len(removals) + place]["uuid"][1]))
        self._remember(after)

    def _remember(self, after: Mapping[str, list[NbRow]]) -> None:
        for object_id, rows in after.items():
            if rows:
                self._of[object_id] = rows
            else:
                self._of.pop(object_id, None)

    def _update(self, row: NbRow) -> dict[str, Any]:
        columns = {name: encoded(value) for name, value in row.columns.items()}
        if row.table == "Logical_Switch_Port":
            del columns["type"]  # the service does not turn one kind of port into another
        where: list[Any] = [["_uuid", "==", ["uuid", self._uuids[row.table, row.name]]]]
        return {"op": "update", "table": row.table, "where": where, "row": columns}

    def _children(self, row: NbRow, number: int) -> list[dict[str, Any]]:
        return [
            {"op": "insert", "table": table, "uuid-name": f"child{number}{column}", "row": dict(columns)}
            for column, (table, columns) in row.children.items()
        ]

    def _insert(self, row: NbRow, name: str, held: Any) -> list[dict[str, Any]]:
        number = int(name.removeprefix("row")) - 1
        columns = {column: encoded(value) for column, value in row.columns.items()}
        columns |= {column: encoded([NamedUUID(f"child{number}{column}")]) for column in row.children}
        if held and row.table in ROOTS:
            columns["load_balancer"] = encoded(held)
        made = [{"op": "insert", "table": row.table, "uuid-name": name, "row": columns}]
        if row.parent is not None:
            table, parent, column = row.parent
            made.append(_held(table, parent, column, "insert", encoded([NamedUUID(name)])))
        return made

    def _removal(self, row: NbRow) -> dict[str, Any]:
        reference: list[Any] = ["uuid", self._uuids[row.table, row.name]]
        if row.parent is None:
            where: list[Any] = [["_uuid", "==", reference]]
            return {"op": "delete", "table": row.table, "where": where}
        table, parent, column = row.parent
        return _held(table, parent, column, "delete", ["set", [reference]])


def _held(table: str, parent: str, column: str, mutator: str, rows: Any) -> dict[str, Any]:
    """Puts rows into the set of the row that holds them, or takes them out."""
    where: list[Any] = [["name", "==", parent]]
    mutations: list[Any] = [[column, mutator, rows]]
    return {"op": "mutate", "table": table, "where": where, "mutations": mutations}


def _ordered(state: NetworkState) -> list[str]:
    """Every object, holders before what they hold."""
    return [
        row["id"]
        for table in (state.networks, state.routers, state.ports, state.floating_ips)
        for row in table
    ]

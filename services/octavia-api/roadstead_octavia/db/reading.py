"""A whole tree in one statement: one row whose columns are the tables of the tree, each an array of arrays in JSON.

Arrays of values without names take the server half of the time that objects take, and one statement sees one state of the database.
Every sub-select goes along an index from the load balancer downwards; ids are in the materialised expressions once.
"""

# ruff: noqa: S608 - statements are put together from names of tables and columns; values travel as parameters

from datetime import datetime
from functools import cache
from typing import Any

import orjson

from roadstead_octavia.db.port import TREE_TABLES, Row, Tree
from roadstead_octavia.db.rows import columns_of, order

USED = ("flavor", "flavor_profile", "availability_zone", "availability_zone_profile")

# How to come from an object's id ($1) to its load balancer's.
_OWNERS = {
    "load_balancer": "$1",
    "listener": "(SELECT load_balancer_id FROM {s}listener WHERE id = $1)",
    "pool": "(SELECT load_balancer_id FROM {s}pool WHERE id = $1)",
    "member": "(SELECT p.load_balancer_id FROM {s}member m JOIN {s}pool p ON p.id = m.pool_id WHERE m.id = $1)",
    "health_monitor": (
        "(SELECT p.load_balancer_id FROM {s}health_monitor h JOIN {s}pool p ON p.id = h.pool_id WHERE h.id = $1)"
    ),
    "l7policy": (
        "(SELECT l.load_balancer_id FROM {s}l7policy y JOIN {s}listener l ON l.id = y.listener_id WHERE y.id = $1)"
    ),
    "l7rule": (
        "(SELECT l.load_balancer_id FROM {s}l7rule r JOIN {s}l7policy y ON y.id = r.l7policy_id"
        " JOIN {s}listener l ON l.id = y.listener_id WHERE r.id = $1)"
    ),
}
_OF_LOAD_BALANCER = "x.load_balancer_id = (SELECT id FROM t_load_balancer)"
# What of each table belongs to the tree; t_<table> are the expressions before it.
_WITHIN = {
    "vip": _OF_LOAD_BALANCER,
    "additional_vip": _OF_LOAD_BALANCER,
    "vip_security_group": _OF_LOAD_BALANCER,
    "listener": _OF_LOAD_BALANCER,
    "pool": _OF_LOAD_BALANCER,
    "listener_cidr": "x.listener_id IN (SELECT id FROM t_listener)",
    "sni": "x.listener_id IN (SELECT id FROM t_listener)",
    "session_persistence": "x.pool_id IN (SELECT id FROM t_pool)",
    "member": "x.pool_id IN (SELECT id FROM t_pool)",
    "health_monitor": "x.pool_id IN (SELECT id FROM t_pool)",
    "l7policy": "x.listener_id IN (SELECT id FROM t_listener)",
    "l7rule": "x.l7policy_id IN (SELECT id FROM t_l7policy)",
    "flavor": "x.id = (SELECT flavor_id FROM t_load_balancer)",
    "flavor_profile": "x.id = (SELECT flavor_profile_id FROM t_flavor)",
    "availability_zone": "x.name = (SELECT availability_zone FROM t_load_balancer)",
    "availability_zone_profile": "x.id = (SELECT availability_zone_profile_id FROM t_availability_zone)",
}
_TAGGED = ("load_balancer", "listener", "pool", "member", "health_monitor", "l7policy", "l7rule")


@cache
def tree_statement(schema: str, table: str) -> str:
    """The statement; $1: the id of a row of that table."""
    s = f"{schema}."
    parts = [
        f"t_load_balancer AS MATERIALIZED (SELECT * FROM {s}load_balancer WHERE id = {_OWNERS[table].format(s=s)})"
    ]
    parts += [
        f"t_{name} AS MATERIALIZED (SELECT * FROM {s}{name} x WHERE {where})"
        for name, where in _WITHIN.items()
    ]
    ids = " UNION ALL ".join(f"SELECT id FROM t_{name}" for name in _TAGGED)
    parts.append(f"t_tags AS MATERIALIZED (SELECT x.* FROM ({ids}) o JOIN {s}tags x ON x.resource_id = o.id)")
    columns = ",\n    ".join(_aggregate(name) for name in (*TREE_TABLES, *USED))
    with_all = ",\n    ".join(parts)
    return f"WITH {with_all}\nSELECT lb.version, lb.revision,\n    {columns}\nFROM t_load_balancer lb"


def _aggregate(table: str) -> str:
    values = ", ".join(f"x.{name}" for name in columns_of(table))
    by = ", ".join(f"x.{name} NULLS FIRST" for name in order(table))
    return f"(SELECT json_agg(json_build_array({values}) ORDER BY {by}) FROM t_{table} x) AS {table}"


def tree_from(record: Any) -> Tree | None:
    """The Tree of that record, or None."""
    if record is None:
        return None
    rows = {name: decoded(name, record[name]) for name in (*TREE_TABLES, *USED)}
    return Tree(version=record["version"], revision=record["revision"], rows=rows)


@cache
def _times_of(table: str) -> tuple[int, ...]:
    return tuple(at for at, name in enumerate(columns_of(table)) if name.endswith("_at"))


def decoded(table: str, text: str | None) -> tuple[Row, ...]:
    """Rows from an array of arrays of values in the order of the table's columns."""
    if text is None:
        return ()
    columns, times, parse = columns_of(table), _times_of(table), datetime.fromisoformat
    rows = []
    for values in orjson.loads(text):
        for at in times:
            if values[at] is not None:
                values[at] = parse(values[at])
        rows.append(dict(zip(columns, values, strict=True)))
    return tuple(rows)

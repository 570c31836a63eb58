"""What is told of a load balancer after a pass; pure.

A report says only what the API does not know yet: operating statuses that differ from those in its tree or from the ones last told, and
those of the objects that an operation was about.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from roadstead_ovn.balancer import GONE, Balancer
from roadstead_ovn.facts import Facts
from roadstead_ovn.health import Health, probe_subnets, records
from roadstead_ovn.store.port import Json

Records = dict[str, list[dict[str, Any]]]
LONGEST_TEXT = 500


def standings(health: Health, balancer: Balancer) -> dict[str, str]:
    """Operating status by object id."""
    found = records(health, balancer)
    return {record["id"]: record["operating_status"] for rows in found.values() for record in rows}


def unknown_to_api(now: Mapping[str, str], balancer: Balancer, told: Mapping[str, str]) -> frozenset[str]:
    """Objects whose operating status the API has otherwise, or may have: its tree may be older than what was told last."""
    return frozenset(
        identifier
        for identifier, standing in now.items()
        if balancer.statuses.get(identifier, ("", standing))[1] != standing
        or told.get(identifier, standing) != standing
    )


def some_records(health: Health, balancer: Balancer, ids: Collection[str]) -> Records:
    """The status message about those objects."""
    found = {
        kind: [record for record in rows if record["id"] in ids]
        for kind, rows in records(health, balancer).items()
    }
    return {kind: rows for kind, rows in found.items() if rows}


def is_given_up(call: Json, balancer: Balancer) -> bool:
    """Whether the API has ended the call as failed and would not hear of its success, so that what it was to remove stays.

    That is so once the load balancer has been changed.  A call that does not say what it removes is an older API's.
    """
    if call.get("removes") is not None:
        is_past = call["revision"] < balancer.revision
        return is_past and any(balancer.statuses.get(i, ("DELETED",))[0] not in GONE for i in call["removes"])
    if call.get("verb") != "delete" and "batch" not in str(call.get("method")):
        return False
    return any(balancer.statuses.get(i, ("", ""))[0] == "ERROR" for i in touched([call]))


def going(calls: Iterable[Json], revision: int) -> frozenset[str]:
    """Ids that calls at just this revision remove, whatever their status: a failure that was told or a deadline does not end the wish."""
    return frozenset(i for call in calls if call["revision"] == revision for i in call.get("removes") or ())


def touched(calls: Iterable[Json]) -> frozenset[str]:
    """Ids of the objects that these calls are about."""
    return frozenset(i for call in calls for ids in (call.get("objects") or {}).values() for i in ids)


def without_probes(found: Records, balancer: Balancer, facts: Facts, refused: Collection[str]) -> Records:
    """Monitors that need a port for probes in one of the refused subnets could not be made: they are in ERROR as a whole."""
    failed = {
        pool.monitor.id
        for pool in balancer.pools
        if pool.monitor is not None and not probe_subnets(balancer, pool, facts).isdisjoint(refused)
    }
    return {
        kind: [{**row, "provisioning_status": "ERROR"} if row["id"] in failed else row for row in rows]
        for kind, rows in found.items()
    }


def success(operation: str, load_balancer_id: str, call: Json, statuses: Records) -> dict[str, Any]:
    return {**_head(operation, load_balancer_id, call), "outcome": "success", "statuses": statuses}


def failure(operation: str, load_balancer_id: str, call: Json, text: str) -> dict[str, Any]:
    """text: for the user and the operator."""
    said = text[:LONGEST_TEXT]
    return {**_head(operation, load_balancer_id, call), "outcome": "failure", "user": said, "operator": said}


def _head(operation: str, load_balancer_id: str, call: Json) -> dict[str, Any]:
    return {
        "operation": operation,
        "loadbalancer_id": load_balancer_id,
        "revision": call["revision"],
    }


def status(load_balancer_id: str, revision: int, found: Mapping[str, Sequence[Json]]) -> dict[str, Any]:
    return {"loadbalancer_id": load_balancer_id, "revision": revision, **found}

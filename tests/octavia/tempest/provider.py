"""A provider whose operating statuses are measured, as the suite expects of the reference one: an operation ends first, and what is at
work is seen a moment later.  Otherwise the noop provider.

    python -m tests.octavia.tempest.provider
"""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from nats.errors import Error as NatsError

from roadstead.bus.pull import Delivery
from roadstead.subjects import provider_report_subject, provider_rpc_subject
from roadstead_octavia.provider.noop import driver
from roadstead_octavia.provider.noop.__main__ import main
from roadstead_octavia.provider.noop.process import NoopProvider

# Seconds from the end of the last operation to a measurement: of what serves, and of new members, which the reference hears of later.
AFTER, MEMBERS_AFTER = 1.0, 15.0
GOING = ("PENDING_DELETE", "DELETED")
AT_ONCE = frozenset({"healthmonitors", "l7policies", "l7rules"})
Model = Mapping[str, Any]
Statuses = dict[str, list[dict[str, Any]]]


class Measuring(NoopProvider):
    """Two reports for each call: that it is done, and how everything stands after a while unless another call comes first."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._measurements: dict[str, asyncio.Task[None]] = {}

    async def _called(self, delivery: Delivery, _epoch: int) -> None:
        call: Mapping[str, Any] = orjson.loads(delivery.data)
        identifier = call["loadbalancer_id"]
        tree = call.get("tree")
        if tree is None:
            reply = await self._bus.request(
                provider_rpc_subject(self.name, "tree"), {"loadbalancer_id": identifier}
            )
            tree = reply.get("tree")
        goes = (call["verb"], call["object"]) == ("delete", "loadbalancer")
        seen = measured(tree) if tree and not goes else {}
        touched = {kind: set(ids) for kind, ids in (call.get("objects") or {}).items()}
        statuses = {
            kind: [one for one in rows if one["id"] in touched.get(kind, ())]
            for kind, rows in seen.items()
            if kind in AT_ONCE
        }
        report = {**driver.result({**call, "tree": tree}, self.manner), "statuses": statuses}
        headers = {"Nats-Msg-Id": f"{call['operation']}.{call['send']}.result"}
        await self._bus.publish(provider_report_subject(self.name, "result"), orjson.dumps(report), headers)
        if (old := self._measurements.pop(identifier, None)) is not None:
            old.cancel()
        if seen:
            task = asyncio.create_task(self._measure(identifier, call, seen))
            self._measurements[identifier] = task
            task.add_done_callback(lambda done: self._forget(identifier, done))

    async def _measure(self, identifier: str, call: Mapping[str, Any], statuses: Statuses) -> None:
        revision = call["revision"]
        kinds = statuses.keys() - AT_ONCE - {"members"}
        await asyncio.sleep(AFTER)
        await self._tell(identifier, revision, {kind: statuses[kind] for kind in kinds})
        if call["method"] != "member_update":
            await asyncio.sleep(MEMBERS_AFTER - AFTER)
        await self._tell(identifier, revision, {k: v for k, v in statuses.items() if k == "members"})

    async def _tell(self, identifier: str, revision: int, seen: Statuses) -> None:
        if not seen:
            return
        message = {"loadbalancer_id": identifier, "revision": revision, **seen}
        headers = {"Nats-Msg-Id": f"{identifier}.{revision}.{'-'.join(sorted(seen))}"}
        try:
            await self._bus.publish(
                provider_report_subject(self.name, "status"), orjson.dumps(message), headers
            )
        except NatsError as error:
            sys.stderr.write(f"a measurement of {identifier} is lost: {error}\n")

    def _forget(self, identifier: str, done: asyncio.Task[None]) -> None:
        if self._measurements.get(identifier) is done:
            del self._measurements[identifier]


def measured(tree: Mapping[str, Any]) -> Statuses:
    """How the reference provider sees it once all is set up: what is switched off is OFFLINE, and so is a pool that nothing leads to.

    Members with a monitor are left as the API has them, and what is seen as it stands is not told: that would count as a change of it.
    """
    balancer: Model = tree["loadbalancer"]
    standing = {
        identifier: statuses
        for rows in (tree.get("statuses") or {}).values()
        for identifier, statuses in rows.items()
    }
    listeners: Sequence[Model] = balancer.get("listeners") or ()
    led_to = {
        target
        for listener in listeners
        for target in (
            listener.get("default_pool_id"),
            *(policy.get("redirect_pool_id") for policy in listener.get("l7policies") or ()),
        )
        if target
    }
    found: Statuses = {}

    def see(kind: str, identifier: str, works: bool, at_work: str = "ONLINE") -> None:
        provisioning, operating = standing.get(identifier, ("", ""))
        status = at_work if works else "OFFLINE"
        if provisioning not in GOING and operating != status:
            found.setdefault(kind, []).append({"id": identifier, "operating_status": status})

    see("loadbalancers", tree["loadbalancer_id"], _enabled(balancer))
    for listener in listeners:
        see("listeners", listener["listener_id"], _enabled(listener))
        for policy, rules in _policies(listener):
            see("l7policies", policy["l7policy_id"], _enabled(policy))
            for rule in rules:
                see("l7rules", rule["l7rule_id"], _enabled(rule))
    for pool in balancer.get("pools") or ():
        see("pools", pool["pool_id"], _enabled(pool) and pool["pool_id"] in led_to)
        if monitor := pool.get("healthmonitor"):
            see("healthmonitors", monitor["healthmonitor_id"], _enabled(monitor))
            continue
        for member in pool.get("members") or ():
            see("members", member["member_id"], _enabled(member), "NO_MONITOR")
    return found


def _enabled(model: Model) -> bool:
    return bool(model.get("admin_state_up", True))


def _policies(listener: Model) -> Iterator[tuple[Model, Sequence[Model]]]:
    for policy in listener.get("l7policies") or ():
        yield policy, policy.get("rules") or ()


if __name__ == "__main__":
    sys.exit(main(Measuring))

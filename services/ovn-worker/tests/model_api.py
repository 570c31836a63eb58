"""The Octavia API as a provider sees it: trees with revisions and statuses, operations that are sent again and run out, reports applied."""

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from roadstead.bus.failures import RequestFailed

from . import virtual
from .shapes import listener, member, monitor, pool, tree

Json = dict[str, Any]
AGAIN = (5.0, 15.0, 35.0)
DEADLINE = 60.0
PAGE = 2
_ID = {
    "listeners": "listener_id",
    "pools": "pool_id",
    "members": "member_id",
    "healthmonitors": "healthmonitor_id",
}


@dataclass
class Operation:
    id: str
    load_balancer: str
    revision: int
    method: str
    touched: dict[str, list[tuple[str, str]]]  # kind -> (id, provisioning status when done)
    deadline: float
    state: str = "SENT"
    sends: int = 0


@dataclass
class ModelApi:
    """send: hands a message to the bus.  with_tree: whether calls carry trees.  is_down: no request is answered."""

    send: Callable[[bytes], Awaitable[None]]
    with_tree: Callable[[], bool] = lambda: True
    trees: dict[str, Json] = field(default_factory=dict)
    operations: dict[str, Operation] = field(default_factory=dict)
    is_down: bool = False
    reports: list[Json] = field(default_factory=list)
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    made: int = 0

    # ------------------------------------------------------------ what users do

    def create(self, load_balancer_id: str, **values: Any) -> None:
        made = tree(**values)
        made |= {"loadbalancer_id": load_balancer_id, "revision": 0, "statuses": {}}
        made["loadbalancer"]["loadbalancer_id"] = load_balancer_id
        self.trees[load_balancer_id] = made
        kinds: dict[str, list[str]] = {"loadbalancers": [load_balancer_id]}
        for kind, identifier in self.children(load_balancer_id):
            kinds.setdefault(kind, []).append(identifier)
        self._touch(load_balancer_id, "loadbalancer_create", kinds, "PENDING_CREATE", operating="OFFLINE")

    def is_free(self, load_balancer_id: str) -> bool:
        found = self.trees.get(load_balancer_id)
        return found is not None and self._status(found, "loadbalancers", load_balancer_id)[0] in (
            "ACTIVE",
            "ERROR",
        )

    def child(self, load_balancer_id: str, kind: str, **values: Any) -> str:
        """One more listener, pool, member (with `pool_id`) or monitor (likewise)."""
        self.made += 1
        name = f"{kind[:2]}-{self.made}"
        model = self.trees[load_balancer_id]["loadbalancer"]
        kinds = {kind: [name], "loadbalancers": [load_balancer_id]}
        if kind == "listeners":
            model["listeners"].append(listener(name, values.pop("port"), values.pop("pool_id"), **values))
        elif kind == "pools":
            model["pools"].append(pool(name, [], **values))
        else:
            owner = next(p for p in model["pools"] if p["pool_id"] == values["pool_id"])
            kinds["pools"] = [owner["pool_id"]]
            if kind == "members":
                owner["members"].append(member(name, values["address"], values["port"], values["subnet_id"]))
            else:
                owner["healthmonitor"] = monitor(name)
        self._touch(
            load_balancer_id, f"{kind}_create", kinds, "PENDING_CREATE", only=[name], operating="OFFLINE"
        )
        return name

    def switch(self, load_balancer_id: str, kind: str, identifier: str) -> None:
        """Its admin state the other way."""
        found = self._find(load_balancer_id, kind, identifier)
        found["admin_state_up"] = not found.get("admin_state_up", True)
        kinds = {kind: [identifier], "loadbalancers": [load_balancer_id]}
        self._touch(load_balancer_id, f"{kind}_update", kinds, "PENDING_UPDATE", only=[identifier])

    def delete(self, load_balancer_id: str, kind: str, identifier: str) -> None:
        kinds = {kind: [identifier], "loadbalancers": [load_balancer_id]}
        self._touch(load_balancer_id, f"{kind}_delete", kinds, "PENDING_DELETE", only=[identifier])

    def batch(self, load_balancer_id: str, pool_id: str, added: Json | None, removed: Sequence[str]) -> None:
        """Members of a pool in one operation: one more, and some that go."""
        kinds = {"members": list(removed), "pools": [pool_id], "loadbalancers": [load_balancer_id]}
        new = []
        if added is not None:
            self.made += 1
            new = [f"me-{self.made}"]
            self._find(load_balancer_id, "pools", pool_id)["members"].append(member(new[0], **added))
            kinds["members"] += new
        self._touch(
            load_balancer_id,
            "member_batch_update",
            kinds,
            "PENDING_CREATE",
            only=new or ["none"],
            operating="OFFLINE",
            removed=removed,
        )

    def destroy(self, load_balancer_id: str) -> None:
        kinds = {"loadbalancers": [load_balancer_id]}
        self._touch(load_balancer_id, "loadbalancer_delete", kinds, "PENDING_DELETE", only=[load_balancer_id])

    def children(self, load_balancer_id: str) -> list[tuple[str, str]]:
        model = self.trees[load_balancer_id]["loadbalancer"]
        found = [("listeners", x["listener_id"]) for x in model["listeners"]]
        for each in model["pools"]:
            found.append(("pools", each["pool_id"]))
            found += [("members", m["member_id"]) for m in each["members"]]
            if each["healthmonitor"]:
                found.append(("healthmonitors", each["healthmonitor"]["healthmonitor_id"]))
        return found

    def _touch(
        self,
        owner: str,
        method: str,
        kinds: dict[str, list[str]],
        pending: str,
        *,
        only: Sequence[str] = (),
        operating: str | None = None,
        removed: Sequence[str] = (),
    ) -> None:
        found = self.trees[owner]
        found["revision"] += 1
        touched: dict[str, list[tuple[str, str]]] = {}
        for kind, ids in kinds.items():
            for identifier in ids:
                is_it = not only or identifier in only
                goes = identifier in removed or (pending == "PENDING_DELETE" and is_it)
                done = "DELETED" if goes else "ACTIVE"
                touched.setdefault(kind, []).append((identifier, done))
                old = found["statuses"].setdefault(kind, {}).get(identifier, ["", operating or "OFFLINE"])
                mark = "PENDING_DELETE" if goes else pending if is_it else "PENDING_UPDATE"
                found["statuses"][kind][identifier] = [mark, old[1]]
        operation = Operation(
            f"op-{len(self.operations)}", owner, found["revision"], method, touched, virtual.now() + DEADLINE
        )
        self.operations[operation.id] = operation
        task = asyncio.create_task(self._drive(operation))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _drive(self, operation: Operation) -> None:
        began = virtual.now()
        for at in (0.0, *AGAIN):
            await asyncio.sleep(began + at - virtual.now())
            if operation.state != "SENT":
                return
            operation.sends += 1
            await self.send(self._message(operation))
        await asyncio.sleep(operation.deadline - virtual.now())
        if operation.state == "SENT":
            self._end(operation, "deadline", {})

    def _message(self, operation: Operation) -> bytes:
        body: Json = {
            "operation": operation.id,
            "send": operation.sends,
            "loadbalancer_id": operation.load_balancer,
            "revision": operation.revision,
            "method": operation.method,
            "object": "x",
            "verb": operation.method.rpartition("_")[2],
            "objects": {kind: [i for i, _ in ids] for kind, ids in operation.touched.items()},
            "removes": [i for ids in operation.touched.values() for i, done in ids if done == "DELETED"],
            "deadline": datetime.fromtimestamp(operation.deadline, UTC).isoformat(),
        }
        found = self.trees.get(operation.load_balancer)
        if found is not None and self.with_tree():
            # A call bears the tree at the time of its sending.
            body |= {"tree": copy.deepcopy(found), "revision": found["revision"]}
        return orjson.dumps(body)

    # ------------------------------------------------------------ what providers say

    async def result(self, body: Mapping[str, Any], message_id: str) -> None:
        await asyncio.sleep(0)
        self.reports.append(orjson.loads(orjson.dumps(body)))  # as it arrives
        operation = self.operations[body["operation"]]
        assert operation.load_balancer == body["loadbalancer_id"]
        self._end(operation, body["outcome"], body.get("statuses") or {})

    async def status(self, body: Mapping[str, Any]) -> None:
        await asyncio.sleep(0)
        self.reports.append(orjson.loads(orjson.dumps(body)))  # as it arrives
        found = self.trees.get(body["loadbalancer_id"])
        if found is None or found["revision"] > body["revision"]:
            return
        self._apply(found, {k: v for k, v in body.items() if isinstance(v, list)})

    def _end(self, operation: Operation, outcome: str, statuses: Json) -> None:
        if operation.state == "DONE":
            return
        found = self.trees.get(operation.load_balancer)
        is_late = operation.state != "SENT"
        is_current = found is not None and found["revision"] == operation.revision
        if is_late and not (is_current and outcome == "success"):
            return
        operation.state = "DONE" if outcome == "success" else "FAILED"
        if found is None or not is_current:
            return
        for kind, ids in operation.touched.items():
            for identifier, done in ids:
                self._conclude(found, kind, identifier, done, outcome == "success")
        if operation.load_balancer in self.trees:
            self._apply(found, statuses)

    def _conclude(self, found: Json, kind: str, identifier: str, done: str, is_well: bool) -> None:
        if kind in ("loadbalancers",) and done == "DELETED" and is_well:
            del self.trees[identifier]
            return
        held = found["statuses"].get(kind, {}).get(identifier)
        if held is None:
            return
        if not is_well:
            if held[0].startswith("PENDING"):
                held[0] = "ERROR"
        elif done == "DELETED":
            self._remove(found, kind, identifier)
        else:
            held[0] = done

    def _remove(self, found: Json, kind: str, identifier: str) -> None:
        model, gone = found["loadbalancer"], [(kind, identifier)]
        if kind == "listeners":
            model["listeners"] = [x for x in model["listeners"] if x["listener_id"] != identifier]
        elif kind == "pools":
            for each in model["pools"]:
                if each["pool_id"] == identifier:
                    gone += [("members", m["member_id"]) for m in each["members"]]
                    if each["healthmonitor"]:
                        gone.append(("healthmonitors", each["healthmonitor"]["healthmonitor_id"]))
            model["pools"] = [x for x in model["pools"] if x["pool_id"] != identifier]
            for each in model["listeners"]:
                if each["default_pool_id"] == identifier:
                    each["default_pool_id"] = None
        else:
            for each in model["pools"]:
                each["members"] = [m for m in each["members"] if m["member_id"] != identifier]
                if each["healthmonitor"] and each["healthmonitor"]["healthmonitor_id"] == identifier:
                    each["healthmonitor"] = None
        for name, key in gone:
            found["statuses"].get(name, {}).pop(key, None)

    def _apply(self, found: Json, statuses: Json) -> None:
        for kind, rows in statuses.items():
            for row in rows:
                held = found["statuses"].get(kind, {}).get(row["id"])
                assert held is not None, f"a report about {row['id']}, which is not there"
                held[0] = row.get("provisioning_status", held[0])
                held[1] = row.get("operating_status", held[1])

    def _status(self, found: Json, kind: str, identifier: str) -> list[str]:
        pair: list[str] = found["statuses"][kind][identifier]
        return pair

    def _find(self, owner: str, kind: str, identifier: str) -> Json:
        model: Json = self.trees[owner]["loadbalancer"]
        if kind == "loadbalancers":
            return model
        members = [m for p in model["pools"] for m in p["members"]]
        monitors = [p["healthmonitor"] for p in model["pools"] if p["healthmonitor"]]
        rows = {"members": members, "healthmonitors": monitors}.get(kind) or model[kind]
        return next(x for x in rows if x[_ID[kind]] == identifier)

    # ------------------------------------------------------------ what providers ask

    async def tree(self, load_balancer_id: str) -> Json | None:
        await self._answering()
        return copy.deepcopy(self.trees.get(load_balancer_id))

    async def tree_of(self, kind: str, identifier: str) -> Json | None:
        await self._answering()
        for owner in self.trees:
            if (kind, identifier) in self.children(owner):
                return copy.deepcopy(self.trees[owner])
        return None

    async def pages(self) -> AsyncIterator[Sequence[Json]]:
        ids = sorted(self.trees)
        for begin in range(0, max(len(ids), 1), PAGE):
            await self._answering()
            yield [copy.deepcopy(self.trees[i]) for i in ids[begin : begin + PAGE] if i in self.trees]

    async def _answering(self) -> None:
        await asyncio.sleep(0.001)
        if self.is_down:
            raise RequestFailed("nobody answers")

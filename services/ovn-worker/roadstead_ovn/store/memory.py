"""Work rows in memory, for tests on a virtual clock: the same rules as `postgres`, kept equal by the same tests."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from roadstead_ovn.store.port import End, Json, LeaseLost, NewCall, Queue, Work


@dataclass
class _Row:
    work: Work
    due_at: float | None = None
    owner: str | None = None
    until: float | None = None


@dataclass
class _Duty:
    owner: str | None = None
    until: float = 0.0
    next_at: float = 0.0


@dataclass
class MemoryWork:
    """See `port.Store`.  now: seconds."""

    now: Callable[[], float]
    rows: dict[str, _Row] = field(default_factory=dict)
    probes: set[tuple[str, str]] = field(default_factory=set)
    duties: dict[str, _Duty] = field(default_factory=dict)
    statements: int = 0

    def _work(self, row: _Row) -> Work:
        return replace(row.work, probes=frozenset(s for s, owner in self.probes if owner == row.work.id))

    def _free(self, row: _Row) -> bool:
        return row.until is None or row.until <= self.now()

    async def take(self, call: NewCall, owner: str | None, lease: float) -> Work | None:
        self.statements += 1
        now = self.now()
        row = self.rows.setdefault(call.load_balancer_id, _Row(Work(call.load_balancer_id)))
        old = row.work
        wins = owner is not None and self._free(row)
        row.due_at = now if row.due_at is None else min(row.due_at, now)
        row.work = replace(
            old,
            revision=max(old.revision, call.revision),
            reason="call",
            wakes=old.wakes + 1,
            epoch=old.epoch + wins,
            failures=0 if call.revision > old.revision else old.failures,
            calls={**old.calls, call.operation: dict(call.entry)},
        )
        if not wins:
            return None
        row.owner, row.until = owner, now + lease
        return self._work(row)

    async def wake(self, identifiers: Collection[str], reason: str) -> int:
        self.statements += 1
        found = 0
        for identifier in identifiers:
            row = self.rows.get(identifier)
            if row is None or (row.due_at is not None and row.due_at <= self.now() and self._free(row)):
                continue
            self._due(row, self.now(), reason)
            found += 1
        return found

    def _due(self, row: _Row, at: float, reason: str) -> None:
        row.due_at = at if row.due_at is None else min(row.due_at, at)
        row.work = replace(row.work, wakes=row.work.wakes + 1, reason=reason)

    async def wake_all(self, reason: str, spread: float) -> int:
        self.statements += 1
        for row in self.rows.values():
            self._due(row, self.now() + random.random() * spread, reason)
        return len(self.rows)

    async def learn(
        self, revisions: Mapping[str, int], due: Collection[str], reason: str, spread: float
    ) -> None:
        self.statements += 1
        for identifier, revision in revisions.items():
            row = self.rows.setdefault(identifier, _Row(Work(identifier, revision=revision)))
            if identifier in due:
                self._due(row, self.now() + random.random() * spread, reason)

    async def claim(self, owner: str, limit: int, lease: float) -> Sequence[Work]:
        self.statements += 1
        now = self.now()
        due = [r for r in self.rows.values() if r.due_at is not None and r.due_at <= now and self._free(r)]
        found = []
        for row in sorted(due, key=lambda r: r.due_at or 0.0)[:limit]:
            row.owner, row.until = owner, now + lease
            row.work = replace(row.work, epoch=row.work.epoch + 1)
            found.append(self._work(row))
        return found

    def _held(self, work: Work, owner: str) -> _Row:
        row = self.rows.get(work.id)
        if row is None or row.owner != owner or row.work.epoch != work.epoch:
            raise LeaseLost(work.id)
        return row

    async def end(self, work: Work, owner: str, end: End, lease: float) -> Work | None:
        self.statements += 1
        row = self._held(work, owner)
        now, old = self.now(), row.work
        moved = old.wakes != work.wakes
        calls = {key: entry for key, entry in old.calls.items() if key not in end.reported}
        row.work = replace(
            old,
            done=max(old.done, end.done),
            calls={**calls, **end.patch},
            told=old.told if end.told is None else dict(end.told),
            uses=old.uses if end.uses is None else dict(end.uses),
            failures=end.failures,
            fault=end.fault,
        )
        if moved:
            row.due_at = now if row.due_at is None else min(row.due_at, now)
        else:
            row.due_at = None if end.again is None else now + end.again
        if moved and end.keep:
            row.until = now + lease
            return self._work(row)
        row.owner = row.until = None
        return None

    async def forget(self, work: Work, owner: str, lease: float) -> Work | None:
        row = self._held(work, owner)
        if row.work.wakes == work.wakes:
            self.statements += 1
            del self.rows[work.id]
            return None
        return await self.end(work, owner, End(done=work.done, again=0.0), lease)

    async def renew(self, owner: str, lease: float) -> frozenset[str]:
        self.statements += 1
        held = {key: r for key, r in self.rows.items() if r.owner == owner and not self._free(r)}
        for row in held.values():
            row.until = self.now() + lease
        return frozenset(held)

    async def release(self, owner: str) -> int:
        self.statements += 1
        held = [r for r in self.rows.values() if r.owner == owner]
        for row in held:
            row.owner = row.until = None
            row.work = replace(row.work, epoch=row.work.epoch + 1)
        return len(held)

    async def one(self, identifier: str) -> Work | None:
        row = self.rows.get(identifier)
        return self._work(row) if row else None

    async def view(self, identifier: str) -> Json | None:
        row = self.rows.get(identifier)
        if row is None:
            return None
        shown: dict[str, Any] = {"load_balancer_id": identifier, **vars(row.work)}
        return {**shown, "due_at": row.due_at, "lease_owner": row.owner, "lease_until": row.until}

    async def use_probes(self, identifier: str, subnets: Collection[str]) -> None:
        self.statements += 1
        self.probes |= {(subnet, identifier) for subnet in subnets}

    async def others_need_probes(self, identifier: str, subnet: str) -> bool:
        self.statements += 1
        return any(s == subnet and owner != identifier for s, owner in self.probes)

    async def drop_probes(self, identifier: str, subnet: str) -> None:
        self.statements += 1
        self.probes.discard((subnet, identifier))

    async def hold(self, name: str, owner: str, seconds: float) -> bool:
        self.statements += 1
        now, duty = self.now(), self.duties.setdefault(name, _Duty())
        if duty.owner != owner and (duty.next_at > now or (duty.owner is not None and duty.until > now)):
            return False
        duty.owner, duty.until = owner, now + seconds
        return True

    async def let_go(self, name: str, owner: str, after: float) -> None:
        self.statements += 1
        duty = self.duties.get(name)
        if duty is not None and duty.owner == owner:
            duty.owner, duty.until, duty.next_at = None, 0.0, self.now() + after

    async def hasten(self, name: str) -> None:
        self.statements += 1
        if name in self.duties:
            self.duties[name].next_at = min(self.duties[name].next_at, self.now())

    async def queue(self) -> Queue:
        now = self.now()
        waits = [now - r.due_at for r in self.rows.values() if r.due_at is not None and r.due_at <= now]
        failing = sum(r.work.failures > 0 for r in self.rows.values())
        return Queue(len(waits), max(waits, default=0.0), failing)

    async def ping(self) -> None:
        return

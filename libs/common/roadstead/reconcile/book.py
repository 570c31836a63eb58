"""The loop's side of a pass's writes: intents before, the lease in the last moment, records at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from roadstead.cloud.port import CloudError
from roadstead.events import dump
from roadstead.reconcile import rules
from roadstead.reconcile.kind import Kind
from roadstead.reconcile.passing import Pass
from roadstead.reconcile.past import superseding
from roadstead.reconcile.wiring import Held, Wiring
from roadstead.store.api import Outgoing, Row
from roadstead.subjects import credential_subject


@dataclass
class Book:
    """One pass's book."""

    w: Wiring
    on_outbox: Callable[[], None]
    kind: Kind[Any, Any, Any]
    row: Row
    held: Held
    of: Pass[Any, Any, Any] | None = None
    reported: dict[str, Any] = field(default_factory=dict)

    async def intend(self, intent: Mapping[str, Any], *, hold: bool) -> None:
        """Stored with all earlier writes of the pass; raises LEASE_LOST when the row is no longer ours."""
        w = self.w
        seconds = w.durations.call_deadline + w.durations.lease if hold else None
        before = w.clock.monotonic()
        assert self.of is not None
        writes = [dict(x) for x in self.of.writes] + [dict(intent)]
        changes = {k: v for k, v in self.of.pending_status.items() if self.reported.get(k) != v}
        lease, granted = self.held.lease, dict(self.held.granted)
        change = await self.held.change(
            w.store,
            lambda r, now: superseding(
                r,
                rules.intend(
                    r, now, lease=lease, intents=writes, hold_seconds=seconds, status=changes, granted=granted
                ),
                now,
            ),
        )
        if change.result is None:
            self.held.lost = True
            raise CloudError.lease_lost()
        self.held.granted.clear()
        self.reported.update(changes)
        if changes:
            self.on_outbox()
        if seconds is not None:
            self.held.sure_until = max(self.held.sure_until, before + seconds)

    def lease_holds(self) -> bool:
        return not self.held.lost and self.w.clock.monotonic() < self.held.sure_until

    async def save_record(self, record: Mapping[str, Any]) -> None:
        w = self.w
        sealed = w.sealer.seal_json(record)
        lease = self.held.lease
        key = self.row.key

        def message(row: Row) -> Outgoing:
            body = {"version": row.record_version, "incarnation": row.incarnation, "sealed": sealed}
            return Outgoing(
                credential_subject(key.region, key.id), dump(body), rules.trace_of(row.work.cause)
            )

        publish = message if self.kind.publishes_record else None
        change = await self.held.change(
            w.store, lambda r, now: rules.save_record(r, now, lease=lease, sealed=sealed, publish=publish)
        )
        if change.result is None:
            self.held.lost = True
            raise CloudError.lease_lost()
        if self.kind.publishes_record:
            w.keyring.put_identity(key.region, key.id, dict(record), int(change.result))
            self.on_outbox()

    async def change_document(self, name: str, rule: Any) -> Any:
        return await self.w.store.change_document(name, rule)

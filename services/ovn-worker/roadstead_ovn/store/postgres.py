"""Work rows in PostgreSQL; each operation of the loop is one statement."""
# ruff: noqa: S608 - statements contain the names of the schema and its columns; values travel as parameters

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from secrets import token_hex
from typing import Any

from roadstead.store.postgres.names import checked_schema
from roadstead.store.postgres.revisions import check_revision
from roadstead.store.postgres.session import Session
from roadstead_ovn.store.port import End, Json, LeaseLost, NewCall, Queue, Work

SCHEMA = "roadstead_ovn"
SETTINGS = {"plan_cache_mode": "force_generic_plan"}
_NOW = "clock_timestamp()"
_FREE = f"(w.lease_until IS NULL OR w.lease_until <= {_NOW})"
_COLUMNS = "w.load_balancer_id, w.revision, w.done, w.reason, w.wakes, w.epoch, w.failures, w.fault, w.calls, w.told, w.uses"
_MOVED = "(w.wakes <> $4)"


class PostgresWork:
    """See `port.Store`.  patience: seconds that a lost database is waited for."""

    def __init__(
        self,
        url: str,
        schema: str = SCHEMA,
        *,
        pool_size: int = 8,
        patience: float = 5.0,
        role: str | None = None,
    ) -> None:
        self._schema = checked_schema(schema)
        self._columns = f"{_COLUMNS}, ARRAY(SELECT p.subnet_id FROM {self._schema}.probe p WHERE p.load_balancer_id = w.load_balancer_id) AS probes"
        self.session = Session(
            url,
            size=pool_size,
            patience=patience,
            role=role,
            application="roadstead-ovn",
            settings=SETTINGS,
        )

    async def open(self) -> None:
        """Connect and look at the schema; SchemaBehind when it must be migrated first, StoreUnavailable."""
        await self.session.open()
        await self.session.run(lambda link, _: check_revision(link.fetch, self._schema))

    async def close(self) -> None:
        await self.session.close()

    async def ping(self) -> None:
        await self._value("SELECT 1")

    async def _fetch(self, text: str, *values: Any) -> list[Any]:
        return await self.session.run(lambda link, _: link.fetch(text, *values))

    async def _value(self, text: str, *values: Any) -> Any:
        return await self.session.run(lambda link, _: link.fetchval(text, *values))

    # ------------------------------------------------------------ what comes

    async def take(self, call: NewCall, owner: str | None, lease: float) -> Work | None:
        wins = f"(excluded.lease_owner IS NOT NULL AND {_FREE})"
        text = f"""
            INSERT INTO {self._schema}.work AS w
                (load_balancer_id, revision, due_at, reason, wakes, lease_owner, lease_until, epoch, calls)
            VALUES ($1, $2, {_NOW}, 'call', 1, $3::text, CASE WHEN $3::text IS NOT NULL THEN {_NOW} + $4::interval END, 1, $5::jsonb)
            ON CONFLICT (load_balancer_id) DO UPDATE SET
                revision = greatest(w.revision, excluded.revision),
                due_at = least(coalesce(w.due_at, excluded.due_at), excluded.due_at),
                reason = excluded.reason,
                wakes = w.wakes + 1,
                failures = CASE WHEN excluded.revision > w.revision THEN 0 ELSE w.failures END,
                lease_owner = CASE WHEN {wins} THEN excluded.lease_owner ELSE w.lease_owner END,
                lease_until = CASE WHEN {wins} THEN excluded.lease_until ELSE w.lease_until END,
                epoch = w.epoch + {wins}::int,
                calls = w.calls || excluded.calls,
                changed_at = {_NOW}
            RETURNING {self._columns}, w.lease_owner"""
        # The owner may hold the row already, in another pass: a name for this one taking tells the two apart.
        name = None if owner is None else f"{owner}/{token_hex(4)}"
        records = await self._fetch(
            text,
            call.load_balancer_id,
            call.revision,
            name,
            timedelta(seconds=lease),
            {call.operation: dict(call.entry)},
        )
        record = records[0]
        if owner is None or record["lease_owner"] != name:
            return None
        return _work(record)

    async def wake(self, identifiers: Collection[str], reason: str) -> int:
        text = f"""
            UPDATE {self._schema}.work w SET wakes = w.wakes + 1, due_at = least(coalesce(w.due_at, {_NOW}), {_NOW}), reason = $2,
                changed_at = {_NOW}
            WHERE w.load_balancer_id IN (
                SELECT w.load_balancer_id FROM {self._schema}.work w WHERE w.load_balancer_id = ANY($1::varchar[])
                    AND NOT (coalesce(w.due_at <= {_NOW}, false) AND {_FREE})
                ORDER BY 1 FOR UPDATE)
            RETURNING 1"""
        return len(await self._fetch(text, sorted(identifiers), reason)) if identifiers else 0

    async def wake_all(self, reason: str, spread: float) -> int:
        text = f"""
            UPDATE {self._schema}.work w SET wakes = w.wakes + 1, reason = $1, changed_at = {_NOW},
                due_at = least(coalesce(w.due_at, 'infinity'), {_NOW} + random() * $2::interval)
            WHERE w.load_balancer_id IN (SELECT load_balancer_id FROM {self._schema}.work ORDER BY 1 FOR UPDATE)
            RETURNING 1"""
        return len(await self._fetch(text, reason, timedelta(seconds=spread)))

    async def learn(
        self, revisions: Mapping[str, int], due: Collection[str], reason: str, spread: float
    ) -> None:
        ids = sorted(revisions)
        urgent = set(due)
        text = f"""
            INSERT INTO {self._schema}.work AS w (load_balancer_id, revision, due_at, reason, wakes)
            SELECT i, r, CASE WHEN d THEN {_NOW} + random() * $4::interval END, CASE WHEN d THEN $5::text ELSE '' END, d::int
            FROM unnest($1::varchar[], $2::bigint[], $3::bool[]) AS t (i, r, d) ORDER BY 1
            ON CONFLICT (load_balancer_id) DO UPDATE SET
                wakes = w.wakes + 1, due_at = least(coalesce(w.due_at, excluded.due_at), excluded.due_at), reason = excluded.reason,
                changed_at = {_NOW}
            WHERE excluded.due_at IS NOT NULL"""
        if ids:
            await self._fetch(
                text,
                ids,
                [revisions[i] for i in ids],
                [i in urgent for i in ids],
                timedelta(seconds=spread),
                reason,
            )

    # ------------------------------------------------------------ passes

    async def claim(self, owner: str, limit: int, lease: float) -> Sequence[Work]:
        text = f"""
            UPDATE {self._schema}.work w SET lease_owner = $1, lease_until = {_NOW} + $3::interval, epoch = w.epoch + 1
            WHERE w.load_balancer_id IN (
                SELECT w.load_balancer_id FROM {self._schema}.work w WHERE w.due_at <= {_NOW} AND {_FREE}
                ORDER BY w.due_at LIMIT $2 FOR UPDATE SKIP LOCKED)
            RETURNING {self._columns}"""
        return [_work(r) for r in await self._fetch(text, f"{owner}/", limit, timedelta(seconds=lease))]

    async def end(self, work: Work, owner: str, end: End, lease: float) -> Work | None:
        keeps = f"({_MOVED} AND $5)"
        text = f"""
            UPDATE {self._schema}.work w SET
                done = greatest(w.done, $7),
                calls = (w.calls - $8::text[]) || $9::jsonb,
                told = coalesce($10::jsonb, w.told),
                uses = coalesce($11::jsonb, w.uses),
                failures = $12,
                fault = $13,
                due_at = CASE WHEN {_MOVED} THEN least(w.due_at, {_NOW}) ELSE {_NOW} + $14::interval END,
                lease_owner = CASE WHEN {keeps} THEN w.lease_owner END,
                lease_until = CASE WHEN {keeps} THEN {_NOW} + $6::interval END,
                changed_at = {_NOW}
            WHERE w.load_balancer_id = $1 AND w.epoch = $2 AND starts_with(w.lease_owner, $3)
            RETURNING {self._columns}, w.lease_owner"""
        records = await self._fetch(
            text,
            work.id,
            work.epoch,
            f"{owner}/",
            work.wakes,
            end.keep,
            timedelta(seconds=lease),
            end.done,
            list(end.reported),
            {key: dict(entry) for key, entry in end.patch.items()},
            None if end.told is None else dict(end.told),
            None if end.uses is None else {key: list(value) for key, value in end.uses.items()},
            end.failures,
            end.fault,
            None if end.again is None else timedelta(seconds=end.again),
        )
        return _kept(work, records)

    async def forget(self, work: Work, owner: str, lease: float) -> Work | None:
        text = f"""
            WITH gone AS (
                DELETE FROM {self._schema}.work w WHERE w.load_balancer_id = $1 AND w.epoch = $2 AND starts_with(w.lease_owner, $3)
                    AND w.wakes = $4 RETURNING 1)
            SELECT count(*) FROM gone"""
        if await self._value(text, work.id, work.epoch, f"{owner}/", work.wakes):
            return None
        return await self.end(work, owner, End(done=work.done, again=0.0), lease)

    async def renew(self, owner: str, lease: float) -> frozenset[str]:
        text = f"""
            UPDATE {self._schema}.work w SET lease_until = {_NOW} + $2::interval
            WHERE w.lease_owner IS NOT NULL AND starts_with(w.lease_owner, $1) AND w.lease_until > {_NOW} RETURNING w.load_balancer_id"""
        return frozenset(
            r["load_balancer_id"] for r in await self._fetch(text, f"{owner}/", timedelta(seconds=lease))
        )

    async def release(self, owner: str) -> int:
        text = f"""
            UPDATE {self._schema}.work w SET lease_owner = NULL, lease_until = NULL, epoch = w.epoch + 1
            WHERE w.lease_owner IS NOT NULL AND starts_with(w.lease_owner, $1) RETURNING 1"""
        return len(await self._fetch(text, f"{owner}/"))

    async def one(self, identifier: str) -> Work | None:
        text = f"SELECT {self._columns} FROM {self._schema}.work w WHERE w.load_balancer_id = $1"
        records = await self._fetch(text, identifier)
        return _work(records[0]) if records else None

    async def view(self, identifier: str) -> Json | None:
        text = f"SELECT w.* FROM {self._schema}.work w WHERE w.load_balancer_id = $1"
        records = await self._fetch(text, identifier)
        return dict(records[0]) if records else None

    # ------------------------------------------------------------ probes

    async def use_probes(self, identifier: str, subnets: Collection[str]) -> None:
        text = f"""
            INSERT INTO {self._schema}.probe (subnet_id, load_balancer_id) SELECT s, $1 FROM unnest($2::varchar[]) s ORDER BY 1
            ON CONFLICT DO NOTHING"""
        await self._fetch(text, identifier, sorted(subnets))

    async def others_need_probes(self, identifier: str, subnet: str) -> bool:
        text = f"SELECT 1 FROM {self._schema}.probe WHERE subnet_id = $1 AND load_balancer_id <> $2 LIMIT 1"
        return bool(await self._fetch(text, subnet, identifier))

    async def drop_probes(self, identifier: str, subnet: str) -> None:
        text = f"DELETE FROM {self._schema}.probe WHERE subnet_id = $1 AND load_balancer_id = $2"
        await self._fetch(text, subnet, identifier)

    # ------------------------------------------------------------ duties

    async def hold(self, name: str, owner: str, seconds: float) -> bool:
        text = f"""
            INSERT INTO {self._schema}.duty AS d (name, owner, until) VALUES ($1, $2, {_NOW} + $3::interval)
            ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
            WHERE d.owner = excluded.owner OR (d.next_at <= {_NOW} AND (d.until IS NULL OR d.until <= {_NOW}))
            RETURNING 1"""
        return bool(await self._fetch(text, name, owner, timedelta(seconds=seconds)))

    async def let_go(self, name: str, owner: str, after: float) -> None:
        text = f"""
            UPDATE {self._schema}.duty SET owner = NULL, until = NULL, next_at = {_NOW} + $3::interval
            WHERE name = $1 AND owner = $2"""
        await self._fetch(text, name, owner, timedelta(seconds=after))

    async def hasten(self, name: str) -> None:
        text = f"UPDATE {self._schema}.duty SET next_at = {_NOW} WHERE name = $1 AND next_at > {_NOW}"
        await self._fetch(text, name)

    async def queue(self) -> Queue:
        text = f"""
            SELECT count(*) FILTER (WHERE due_at <= {_NOW}) AS due, count(*) FILTER (WHERE failures > 0) AS failing,
                coalesce(extract(epoch FROM max({_NOW} - due_at) FILTER (WHERE due_at <= {_NOW})), 0)::float8 AS lag
            FROM {self._schema}.work WHERE due_at IS NOT NULL"""
        record = (await self._fetch(text))[0]
        return Queue(record["due"], record["lag"], record["failing"])


def _kept(work: Work, records: Sequence[Any]) -> Work | None:
    if not records:
        raise LeaseLost(work.id)
    return _work(records[0]) if records[0]["lease_owner"] is not None else None


def _work(record: Any) -> Work:
    return Work(
        id=record["load_balancer_id"],
        probes=frozenset(record["probes"]),
        **{
            name: record[name]
            for name in (
                "revision",
                "done",
                "reason",
                "wakes",
                "epoch",
                "failures",
                "fault",
                "calls",
                "told",
                "uses",
            )
        },
    )

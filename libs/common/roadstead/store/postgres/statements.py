"""Every statement of the hot paths as text for asyncpg; `$1` is an optional time in all that need the time.

A statement does a whole operation, so that without an explicit transaction it is one: one round trip, and no session waits
inside a transaction for the program.  `xmin` (the transaction that wrote a row's version) is the version number that a write checks.
"""

# ruff: noqa: S608 - only checked schema names and our own column names are put into statements

from collections.abc import Sequence
from functools import cached_property, lru_cache

from roadstead.store.postgres.columns import QUEUE_COLUMNS, ROW_COLUMNS, WORK_COLUMNS
from roadstead.store.postgres.names import checked_schema, quoted

NOW = "coalesce($1::timestamptz, clock_timestamp())"
# The transaction, which is the version of every row that it wrote; NULL when the row was not as it should be.
WRITTEN = "SELECT CASE count(*) WHEN 1 THEN pg_current_xact_id_if_assigned()::xid END"
HEAD = 256  # due rows looked at by age; while there are fewer, these are all there is
WALK = 200  # identities visited by one claim when there are more

OUTBOX_ARRAYS = ("text[]", "bytea[]", "jsonb[]", "text[]", "bigint[]")
HISTORY_ARRAYS = ("timestamptz[]", "text[]", "jsonb[]")
SHAPES = 512  # statements kept by the set of columns that they write; a service uses a few dozen


class Statements:
    """The statements of one schema."""

    def __init__(self, schema: str) -> None:
        self.schema = checked_schema(schema)
        self.update = lru_cache(SHAPES)(self._update)
        self.insert = lru_cache(SHAPES)(self._insert)
        self.append = lru_cache(SHAPES)(self._append)

    def table(self, name: str) -> str:
        return f"{self.schema}.{name}"

    @property
    def selected(self) -> str:
        """All that row_from needs, from resource r and work w."""
        return ", ".join(["r.kind", "r.id", *(f"r.{quoted(c)}" for c in ROW_COLUMNS), self.queue])

    @property
    def queue(self) -> str:
        return ", ".join(f"w.{c}" for c in QUEUE_COLUMNS)

    # ---- rows

    @cached_property
    def get(self) -> str:
        return (
            f"SELECT {self.selected} FROM {self.schema}.resource r JOIN {self.schema}.work w USING (kind, id)"
            " WHERE r.kind = $1 AND r.id = $2"
        )

    @cached_property
    def load(self) -> str:
        """One record always: the time, and the row's columns or NULLs."""
        return (
            f"SELECT t.now, r.xmin AS row_version, w.xmin AS work_version, {self.selected}"
            f" FROM (SELECT {NOW} AS now) t"
            f" LEFT JOIN {self.schema}.resource r ON r.kind = $2 AND r.id = $3"
            f" LEFT JOIN {self.schema}.work w ON w.kind = r.kind AND w.id = r.id"
        )

    @cached_property
    def load_locked(self) -> str:
        """The same once the row is free, kept until the end of the transaction; no record when there is no row."""
        return (
            f"SELECT {NOW} AS now, r.xmin AS row_version, w.xmin AS work_version, {self.selected}"
            f" FROM {self.schema}.resource r JOIN {self.schema}.work w USING (kind, id)"
            " WHERE r.kind = $2 AND r.id = $3 FOR UPDATE OF r, w"
        )

    @cached_property
    def untold(self) -> str:
        """$2: seconds, $3: limit."""
        return (
            f"SELECT region, project, kind, id FROM {self.schema}.resource WHERE untold_since"
            f" <= {NOW} - make_interval(secs => $2::float8) ORDER BY untold_since, kind, id LIMIT $3"
        )

    def _update(self, row: tuple[str, ...], work: tuple[str, ...], outbox: bool, history: bool) -> str:
        """Write the named columns where both versions ($3, $4) still hold; NULL when they do not."""
        number = 5
        parts = [
            f"locked AS MATERIALIZED (SELECT r.kind, r.id FROM {self.schema}.resource r JOIN {self.schema}.work w USING (kind, id)"
            " WHERE r.kind = $1 AND r.id = $2 AND r.xmin = $3::xid AND w.xmin = $4::xid FOR UPDATE OF r, w)"
        ]
        for table, columns in (("resource", row), ("work", work)):
            if columns:
                sets = ", ".join(f"{quoted(c)} = ${number + i}" for i, c in enumerate(columns))
                number += len(columns)
                parts.append(
                    f"put_{table} AS (UPDATE {self.schema}.{table} t SET {sets} FROM locked l"
                    " WHERE t.kind = l.kind AND t.id = l.id)"
                )
        parts += self._appended("locked", number, outbox, history)
        return f"WITH {', '.join(parts)} {WRITTEN} FROM locked"

    def _insert(self, outbox: bool, history: bool) -> str:
        """Make the row unless somebody made it meanwhile, which gives NULL."""
        number = 3
        parts = []
        for table, columns, source in (
            ("resource", ROW_COLUMNS, ""),
            ("work", WORK_COLUMNS, " FROM put_resource"),
        ):
            names = ", ".join(["kind", "id", *map(quoted, columns)])
            values = ", ".join(["$1::text", "$2::text", *(f"${number + i}" for i in range(len(columns)))])
            number += len(columns)
            target = f"INSERT INTO {self.schema}.{table} ({names})"
            if source:
                # A value in a select list needs its type told; VALUES of an INSERT takes it from the column.
                values = ", ".join(["$1::text", "$2::text", *self._typed(columns, number - len(columns))])
                parts.append(f"put_{table} AS ({target} SELECT {values}{source})")
            else:
                parts.append(
                    f"put_{table} AS ({target} VALUES ({values}) ON CONFLICT DO NOTHING RETURNING 1)"
                )
        parts += self._appended("put_resource", number, outbox, history)
        return f"WITH {', '.join(parts)} {WRITTEN} FROM put_resource"

    def _append(self, outbox: bool, history: bool) -> str:
        """Messages and history of a rule that wrote no row where there was none."""
        parts = self._appended("always", 3, outbox, history)
        return f"WITH always AS (SELECT $1::text, $2::text), {', '.join(parts)} SELECT 1::bigint"

    def _typed(self, columns: Sequence[str], number: int) -> list[str]:
        types = {
            "gone": "boolean",
            "due_at": "timestamptz",
            "lease_until": "timestamptz",
            "wake_seq": "bigint",
            "lease_epoch": "bigint",
            "cause": "jsonb",
        }
        return [f"${number + i}::{types.get(c, 'text')}" for i, c in enumerate(columns)]

    def _appended(self, condition: str, number: int, outbox: bool, history: bool) -> list[str]:
        parts = []
        if outbox:
            arrays = ", ".join(f"${number + i}::{t}" for i, t in enumerate(OUTBOX_ARRAYS))
            number += len(OUTBOX_ARRAYS)
            parts.append(
                f"put_outbox AS (INSERT INTO {self.schema}.outbox (subject, payload, headers, message_id, purge_to)"
                f" SELECT u.s, u.p, u.h, u.m, u.t FROM {condition}, unnest({arrays}) WITH ORDINALITY"
                " AS u(s, p, h, m, t, n) ORDER BY u.n)"
            )
        if history:
            arrays = ", ".join(f"${number + i}::{t}" for i, t in enumerate(HISTORY_ARRAYS))
            parts.append(
                f"put_history AS (INSERT INTO {self.schema}.history (resource_kind, resource_id, at, kind, body)"
                f" SELECT $1, $2, u.a, u.k, u.b FROM {condition}, unnest({arrays}) WITH ORDINALITY"
                " AS u(a, k, b, n) ORDER BY u.n)"
            )
        return parts

    # ---- queue

    @cached_property
    def wake(self) -> str:
        """$2, $3: kinds and ids; $4: cause."""
        return (
            f"WITH t AS (SELECT {NOW} AS now), chosen AS (SELECT w.kind, w.id FROM {self.schema}.work w"
            " JOIN unnest($2::text[], $3::text[]) AS u(kind, id) ON w.kind = u.kind AND w.id = u.id"
            " WHERE NOT w.gone ORDER BY w.kind, w.id FOR UPDATE OF w),"
            f" woken AS (UPDATE {self.schema}.work w SET wake_seq = w.wake_seq + 1, due_at = least(w.due_at, t.now), cause = $4::jsonb"
            " FROM chosen c, t WHERE w.kind = c.kind AND w.id = c.id RETURNING 1) SELECT count(*) FROM woken"
        )

    @cached_property
    def claim(self) -> str:
        """$2: owner, $3: limit, $4: per identity, $5: cursor, $6: seconds.  One record at least, NULLs when nothing was claimed.

        The row itself comes along as this statement's snapshot has it, with a version only if its work was not changed between
        the snapshot and the lock: then every change that woke it is in what was read.

        `head` are the oldest due rows.  While they are all, their identities are the candidates.  When there are more, `walk`
        steps from identity to identity behind the cursor, one index descent each, and once around the end; the identities of
        `head` come last, so that a claim finds something however many identities have nothing due yet.
        """
        work = f"{self.schema}.work"
        free = "due_at <= (SELECT now FROM t) AND (lease_until IS NULL OR lease_until <= (SELECT now FROM t))"
        step = "SELECT identity, due_at, {} AS wrapped FROM " + work + " WHERE due_at IS NOT NULL AND {}"
        onward = (
            "(" + step.format("a.wrapped", "identity > a.identity") + " ORDER BY identity, due_at LIMIT 1)"
        )
        around = "(" + step.format("true", "NOT a.wrapped") + " ORDER BY identity, due_at LIMIT 1)"
        return f"""
            WITH RECURSIVE t AS MATERIALIZED (SELECT {NOW} AS now),
            head AS MATERIALIZED (SELECT identity FROM {work} WHERE {free} ORDER BY due_at LIMIT {HEAD}),
            crowd AS MATERIALIZED (SELECT count(*) = {HEAD} AS more FROM head),
            walk AS (
                SELECT $5::text COLLATE "C" AS identity, NULL::timestamptz AS due_at, false AS wrapped, 0 AS n
                WHERE (SELECT more FROM crowd)
                UNION ALL
                SELECT x.identity, x.due_at, x.wrapped, a.n + 1
                FROM walk a CROSS JOIN LATERAL ({onward} UNION ALL {around} LIMIT 1) x
                WHERE a.n < {WALK} AND NOT (x.wrapped AND x.identity > $5::text)
            ),
            candidates AS (
                SELECT identity FROM walk WHERE due_at <= (SELECT now FROM t)
                UNION ALL
                (SELECT identity FROM head WHERE identity NOT IN (SELECT identity FROM walk WHERE n > 0)
                    GROUP BY identity ORDER BY identity <= $5::text, identity)
            ),
            picked AS MATERIALIZED (
                SELECT p.kind, p.id, p.version FROM candidates c CROSS JOIN LATERAL (
                    SELECT w.kind, w.id, w.xmin AS version FROM {work} w WHERE w.identity = c.identity AND {free}
                    ORDER BY w.due_at LIMIT $4 FOR UPDATE SKIP LOCKED
                ) p LIMIT $3
            ),
            claimed AS (
                UPDATE {work} w SET lease_owner = $2::text, lease_epoch = w.lease_epoch + 1,
                    lease_until = (SELECT now FROM t) + make_interval(secs => $6::float8)
                FROM picked p WHERE w.kind = p.kind AND w.id = p.id
                RETURNING {self.queue}, w.kind, w.id, w.identity AS fair, p.version AS locked_version
            )
            SELECT (SELECT identity FROM walk ORDER BY n DESC LIMIT 1) AS walked_to, (SELECT now FROM t) AS now,
                w.fair, {self.selected}, CASE WHEN before.xmin = w.locked_version THEN r.xmin END AS row_version,
                pg_current_xact_id_if_assigned()::xid AS work_version
            FROM (SELECT 1) one LEFT JOIN claimed w ON true
                LEFT JOIN {self.schema}.resource r ON r.kind = w.kind AND r.id = w.id
                LEFT JOIN {work} before ON before.kind = w.kind AND before.id = w.id"""

    @cached_property
    def next_due(self) -> str:
        return (
            f"WITH t AS MATERIALIZED (SELECT {NOW} AS now) SELECT least("
            f"(SELECT due_at FROM {self.schema}.work WHERE due_at IS NOT NULL"
            " AND (lease_until IS NULL OR lease_until <= (SELECT now FROM t)) ORDER BY due_at LIMIT 1),"
            f"(SELECT min(greatest(due_at, lease_until)) FROM {self.schema}.work"
            " WHERE due_at IS NOT NULL AND lease_until > (SELECT now FROM t)))"
        )

    def _held(self, sets: str) -> str:
        # Rows are locked in the order of their keys first: two callers with the same rows cannot wait for each other.
        return (
            f"WITH t AS (SELECT {NOW} AS now), held AS (SELECT w.kind, w.id FROM {self.schema}.work w"
            " JOIN unnest($2::text[], $3::text[], $4::text[], $5::bigint[]) AS u(kind, id, owner, epoch)"
            " ON w.kind = u.kind AND w.id = u.id AND w.lease_owner = u.owner AND w.lease_epoch = u.epoch"
            " ORDER BY w.kind, w.id FOR UPDATE OF w)"
            f" UPDATE {self.schema}.work w SET {sets} FROM held h, t WHERE w.kind = h.kind AND w.id = h.id"
            " RETURNING w.kind, w.id, w.lease_until"
        )

    @cached_property
    def renew(self) -> str:
        """$2 to $5: kinds, ids, owners, epochs; $6: seconds.  A lease is never made shorter."""
        return self._held("lease_until = greatest(w.lease_until, t.now + make_interval(secs => $6::float8))")

    @cached_property
    def release(self) -> str:
        """$2 to $5: kinds, ids, owners, epochs."""
        return self._held("due_at = least(w.due_at, t.now), lease_owner = NULL, lease_until = NULL")

    # ---- outbox

    @cached_property
    def outbox_take(self) -> str:
        """$2: limit, $3: seconds.  The records come in no order.

        Nothing is taken while an earlier message of its subject is another relay's: neither one that is hidden (`b`) nor one
        that is being taken or removed at this moment, which this statement's snapshot still shows (`kept`).
        """
        table = f"{self.schema}.outbox"
        return (
            f"WITH t AS MATERIALIZED (SELECT {NOW} AS now),"
            f" free AS MATERIALIZED (SELECT o.id, o.subject FROM {table} o"
            " WHERE (o.hidden_until IS NULL OR o.hidden_until <= (SELECT now FROM t))"
            f" AND NOT EXISTS (SELECT FROM {table} b WHERE b.subject = o.subject AND b.id < o.id"
            " AND b.hidden_until > (SELECT now FROM t))"
            " ORDER BY o.id LIMIT $2 FOR UPDATE OF o SKIP LOCKED),"
            " kept AS MATERIALIZED (SELECT f.id FROM free f WHERE NOT EXISTS ("
            f"SELECT FROM {table} e WHERE e.subject = f.subject AND e.id < f.id"
            " AND e.id < (SELECT max(id) FROM free) AND e.id NOT IN (SELECT id FROM free)))"
            f" UPDATE {table} o SET hidden_until = t.now + make_interval(secs => $3::float8) FROM kept, t"
            " WHERE o.id = kept.id RETURNING o.id, o.subject, o.payload, o.headers, o.message_id, o.purge_to"
        )

    @cached_property
    def outbox_done(self) -> str:
        return f"DELETE FROM {self.schema}.outbox WHERE id = ANY($1::bigint[])"

    # ---- history

    @cached_property
    def history(self) -> str:
        """$1, $2: kind and id, $3, $4: since and until, $5: limit.  Newest first."""
        return (
            f"SELECT kind, at, body FROM {self.schema}.history WHERE resource_kind = $1 AND resource_id = $2"
            " AND kind <> 'status' AND at >= coalesce($3::timestamptz, '-infinity') AND at < coalesce($4::timestamptz, 'infinity')"
            " ORDER BY at DESC, seq DESC LIMIT $5"
        )

    @cached_property
    def stood(self) -> str:
        """$1, $2: kind and id, $3: time."""
        return (
            f"SELECT kind, at, body FROM {self.schema}.history WHERE resource_kind = $1 AND resource_id = $2"
            " AND kind = 'status' AND at > $3 ORDER BY at, seq LIMIT 1"
        )

    # ---- documents

    @cached_property
    def document(self) -> str:
        return f"SELECT body FROM {self.schema}.document WHERE name = $1"

    @cached_property
    def document_load(self) -> str:
        return (
            f"SELECT t.now, d.xmin AS version, d.body FROM (SELECT {NOW} AS now) t"
            f" LEFT JOIN {self.schema}.document d ON d.name = $2"
        )

    @cached_property
    def document_load_locked(self) -> str:
        """The same once the document is free; no record when there is none."""
        return f"SELECT {NOW} AS now, d.xmin AS version, d.body FROM {self.schema}.document d WHERE d.name = $2 FOR UPDATE"

    @cached_property
    def document_insert(self) -> str:
        return f"INSERT INTO {self.schema}.document (name, body) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1"

    @cached_property
    def document_update(self) -> str:
        return f"UPDATE {self.schema}.document SET body = $2 WHERE name = $1 AND xmin = $3::xid RETURNING 1"

    @cached_property
    def document_delete(self) -> str:
        return f"DELETE FROM {self.schema}.document WHERE name = $1 AND xmin = $2::xid RETURNING 1"

    # ---- purge

    @cached_property
    def purge_tombstones(self) -> str:
        """$1: before, $2: limit; how many went."""
        return (
            f"WITH old AS (SELECT r.kind, r.id FROM {self.schema}.resource r JOIN {self.schema}.work w USING (kind, id)"
            " WHERE r.gone_at < $1 ORDER BY r.gone_at LIMIT $2 FOR UPDATE OF r, w SKIP LOCKED),"
            f" work AS (DELETE FROM {self.schema}.work w USING old o WHERE w.kind = o.kind AND w.id = o.id),"
            f" gone AS (DELETE FROM {self.schema}.resource r USING old o WHERE r.kind = o.kind AND r.id = o.id RETURNING 1)"
            " SELECT count(*) FROM gone"
        )

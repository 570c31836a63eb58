"""Plans of the statements that run most often: none reads a table from end to end, whatever is known of it."""

import re
from typing import Any

import pytest

from roadstead.store.postgres import PostgresStore
from roadstead.store.postgres.session import PLANNER
from roadstead.store.postgres.statements import Statements
from roadstead.testing.due_rows import due_rows

from .conftest import SCHEMA

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("analyzed", [True, False])
async def test_claims_read_no_table_from_end_to_end(
    postgres: PostgresStore, foreign: Any, mode: str, analyzed: bool
) -> None:
    """20 000 due rows, nine of ten of one identity: the plan reads a few hundred pages, whatever is known of the table."""
    select = (
        "SELECT n::text AS id, 'r' AS region, CASE WHEN n % 10 > 0 THEN 'm' ELSE 'i' || n % 500 END AS identity, 0 AS age"
        " FROM generate_series(1, 20000) n"
    )
    for statement in due_rows(SCHEMA, select):
        await foreign.execute(statement)
    if analyzed:
        await foreign.execute(f"ANALYZE {SCHEMA}.work")
    for name, value in {**PLANNER, "plan_cache_mode": mode}.items():
        await foreign.execute(f"SET {name} = {value}")
    types = "timestamptz, text, bigint, bigint, text, float8"
    await foreign.execute(f"PREPARE claim ({types}) AS {Statements(SCHEMA).claim}")
    plan = await foreign.fetch("EXPLAIN (ANALYZE, FORMAT TEXT) EXECUTE claim (NULL, 'me', 16, 4, '', 20)")
    text = "\n".join(r[0] for r in plan)
    assert "Seq Scan on work" not in text
    assert "Update on work" in text
    assert await foreign.fetchval(f"SELECT count(*) FROM {SCHEMA}.work WHERE lease_owner = 'me'") == 16


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
async def test_a_relay_reads_what_it_takes_and_not_the_whole_outbox(
    postgres: PostgresStore, foreign: Any, mode: str
) -> None:
    """20 000 messages of 500 subjects wait, and the first of half of the subjects are in another relay's hands."""
    await foreign.execute(
        f"INSERT INTO {SCHEMA}.outbox (subject, payload, headers, message_id, hidden_until)"
        " SELECT 's' || n % 500, 'x', '{}', 'm' || n, CASE WHEN n < 500 AND n % 2 = 0 THEN now() + interval '1 h' END"
        " FROM generate_series(1, 20000) n"
    )
    for name, value in {**PLANNER, "plan_cache_mode": mode}.items():
        await foreign.execute(f"SET {name} = {value}")
    await foreign.execute(f"PREPARE take (timestamptz, bigint, float8) AS {Statements(SCHEMA).outbox_take}")
    plan = await foreign.fetch("EXPLAIN (ANALYZE, FORMAT TEXT) EXECUTE take (NULL, 64, 15)")
    text = "\n".join(r[0] for r in plan)
    assert "Seq Scan on outbox" not in text
    assert text.count("using outbox_subject") == 2
    most = max(
        float(rows) * int(loops) for rows, loops in re.findall(r"actual.*rows=([\d.]+) loops=(\d+)", text)
    )
    assert most < 1000
    hidden = await foreign.fetch(f"SELECT subject FROM {SCHEMA}.outbox WHERE hidden_until IS NOT NULL")
    assert len(hidden) == 249 + 64
    assert len({r["subject"] for r in hidden if int(r["subject"][1:]) % 2}) == 64

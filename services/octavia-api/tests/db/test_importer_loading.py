"""Writing an imported database: whole or not at all, counted, and refused with words where it does not fit."""

import asyncio
import pickle
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import roadstead.cli.main as program
from roadstead_octavia.db.importer import server
from roadstead_octavia.db.importer.fitting import TABLES
from roadstead_octavia.db.importer.loading import Outcome, load
from roadstead_octavia.db.importer.problem import ImportRefused
from roadstead_octavia.db.importer.unsettled import PATIENCE, operations
from roadstead_octavia.db.port import Change, Insert
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.db.refusals import now
from roadstead_octavia.db.tables import LOOKUPS, NIL
from roadstead_octavia.provider.reports import Enders, Reports
from roadstead_octavia.provider.store import SqlOperations
from roadstead_octavia.provider.watchdog import Watchdog

from .samples import OPTIONS, pool

pytestmark = pytest.mark.integration
HEADERS = {"X-Forwarded-For": "true", "X-Forwarded-Port": "true"}
DUMP = f"""-- MariaDB dump
/*!40101 SET NAMES utf8mb4 */;
CREATE TABLE `alembic_version` (`version_num` varchar(32) NOT NULL);
INSERT INTO `alembic_version` VALUES ('fabf4983846b');
INSERT INTO `provisioning_status` (`name`,`description`) VALUES ('ACTIVE',NULL),('FAMOUS','a later one');
INSERT INTO `flavor_profile` (`id`,`name`,`provider_name`,`flavor_data`)
 VALUES ('{NIL}','DELETED-PLACEHOLDER','DELETED','{{}}'),('fp','p','ovn','{{\\"a\\": 1}}');
INSERT INTO `quotas` (`project_id`,`pool`,`in_use_pool`) VALUES ('p1',7,99);
INSERT INTO `load_balancer` (`project_id`,`id`,`name`,`provisioning_status`,`operating_status`,`enabled`,`created_at`,`updated_at`,`provider`,`topology`)
 VALUES ('p1','lb1','Zürich \\'one\\'','ACTIVE','ONLINE',1,'2024-02-03 04:05:06',NULL,'ovn','SINGLE');
INSERT INTO `vip` (`load_balancer_id`,`ip_address`,`port_id`,`octavia_owned`) VALUES ('lb1','192.0.2.9','port',1);
INSERT INTO `pool` (`id`,`project_id`,`load_balancer_id`,`protocol`,`lb_algorithm`,`provisioning_status`,`operating_status`,`enabled`,`tls_enabled`,`tls_versions`)
 VALUES ('po1','p1','lb1','TCP','SOURCE_IP_PORT','ACTIVE','ONLINE',1,0,'TLSv1.2,TLSv1.3');
INSERT INTO `listener` (`id`,`project_id`,`load_balancer_id`,`default_pool_id`,`protocol`,`protocol_port`,`provisioning_status`,`operating_status`,`enabled`,`insert_headers`,`client_authentication`,`old_column`)
 VALUES ('li1','p1','lb1','po1','HTTP',80,'ACTIVE','ONLINE',1,0x{pickle.dumps(HEADERS).hex()},'NONE','kept nowhere');
INSERT INTO `health_monitor` (`id`,`pool_id`,`type`,`delay`,`timeout`,`fall_threshold`,`rise_threshold`,`enabled`,`provisioning_status`,`operating_status`,`http_version`)
 VALUES ('hm1','po1','HTTP',5,4,3,2,1,'ACTIVE','ONLINE',1.1);
INSERT INTO `tags` (`resource_id`,`tag`) VALUES ('lb1','blue');
"""


def dumped(folder: Path, text: str = DUMP) -> str:
    path = folder / "octavia.sql"
    path.write_text(text)
    return str(path)


def run(source: str, database_url: str, monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    monkeypatch.setenv("ROADSTEAD_DATABASE_URL", database_url)
    return program.run(["octavia", "import", source, *more])


def test_a_dump_is_taken_over_whole_and_a_second_time_changes_nothing(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = dumped(tmp_path)
    assert run(source, database_url, monkeypatch, "--dry-run") == 0
    assert "nothing was kept" in capsys.readouterr().out
    assert run(source, database_url, monkeypatch) == 0
    said = capsys.readouterr().out
    assert "1 values of listener.old_column" in said
    assert said.rstrip().endswith("taken over")
    asyncio.run(check(database_url))
    assert run(source, database_url, monkeypatch) == 0
    assert "there already" in capsys.readouterr().out


async def check(database_url: str) -> None:
    database = PostgresDatabase(database_url)
    await database.open()
    tree = await database.tree("lb1")
    assert tree is not None
    assert (tree.load_balancer["name"], str(tree.load_balancer["created_at"])) == (
        "Zürich 'one'",
        "2024-02-03 04:05:06",
    )
    assert (tree.of("vip")[0]["octavia_owned"], tree.of("tags")[0]["tag"]) == (True, "blue")
    assert tree.of("listener")[0]["insert_headers"] == HEADERS
    assert tree.of("health_monitor")[0]["http_version"] == 1.1
    assert tree.of("pool")[0]["tls_versions"] == "TLSv1.2,TLSv1.3"
    quota = await database.row("quotas", {"project_id": "p1"})
    assert quota is not None
    assert (quota["pool"], quota["in_use_pool"]) == (7, None)
    assert {r["name"] for r in await database.rows("provisioning_status", {})} == {
        *LOOKUPS["provisioning_status"],
        "FAMOUS",
    }
    assert await database.commit(Change("lb1", tree.version, (Insert("pool", pool("lb1")),)), OPTIONS) == 2
    await database.close()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("'po1','p1','lb1'", "'po1','p1','lb2'", "a row of pool refers to one that the source lacks"),
        ("('lb1','blue')", "('lb1','blue'),('lb1','blue')", "two rows of tags have the same key"),
        ("'192.0.2.9'", f"'{'9' * 70}'", r"vip \(load_balancer_id lb1\): ip_address cannot be taken over"),
        ("'HTTP',80,", "'HTTP',NULL,", r"listener \(id li1\): protocol_port is NULL or missing"),
        ("'ovn','SINGLE'", "'ovn\\0','SINGLE'", "it holds a NUL"),
        ("'lb1','192", "_binary '\xff','192", "vip"),
        (pickle.dumps(HEADERS).hex(), pickle.dumps({"a": Path()}).hex(), "instruction"),
        ("'SOURCE_IP_PORT','ACTIVE'", "'SOURCE_IP_PORT','PENDING_UPDATE'", "1 pool PENDING_UPDATE.*--settle"),
        ("blue');", "blue", "cut short"),
    ],
)
def test_what_does_not_fit_is_refused_in_words_and_nothing_is_written(
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    said: str,
) -> None:
    import re

    text = DUMP.replace(old, new, 1)
    assert text != DUMP
    assert run(dumped(tmp_path, text), database_url, monkeypatch) == 1
    assert re.search(said, capsys.readouterr().err)
    assert run(dumped(tmp_path), database_url, monkeypatch) == 0


UNDER_WAY = DUMP.replace("'SOURCE_IP_PORT','ACTIVE'", "'SOURCE_IP_PORT','PENDING_UPDATE'").replace(
    "1,'ACTIVE','ONLINE',1.1)", "1,'PENDING_DELETE','ONLINE',1.1)"
)


async def waiting(database_url: str) -> tuple[Any, list[Any]]:
    """The statuses of pool and monitor, and all operations."""
    database = PostgresDatabase(database_url)
    await database.open()
    rows = [await database.row(t, {"id": i}) or {} for t, i in (("pool", "po1"), ("health_monitor", "hm1"))]
    asked = await SqlOperations(database).recent(None, 10)
    await database.close()
    return [row["provisioning_status"] for row in rows if row], list(asked)


def test_settling_asks_the_provider_once_more_for_all_that_waits(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = dumped(tmp_path, UNDER_WAY)
    assert run(source, database_url, monkeypatch, "--settle") == 0
    assert "1 load balancers had operations under way" in capsys.readouterr().out
    statuses, (asked,) = asyncio.run(waiting(database_url))
    assert statuses == ["PENDING_UPDATE", "PENDING_DELETE"]
    assert (asked["provider"], asked["method"], asked["state"]) == ("ovn", "loadbalancer_update", "SENT")
    assert {(t["id"], t["done"]) for t in asked["touched"]} == {("po1", "ACTIVE"), ("hm1", "DELETED")}
    assert asked["revision"] == 1
    assert asked["next_send_at"] == asked["created_at"]
    assert asked["deadline"] - asked["created_at"] == PATIENCE


@pytest.mark.parametrize(
    ("outcome", "seconds", "left"),
    [("success", 0.0, ["ACTIVE"]), (None, PATIENCE.total_seconds() + 1, ["ERROR", "ERROR"])],
)
def test_what_waited_ends_with_the_providers_report_or_at_the_deadline(
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    outcome: str | None,
    seconds: float,
    left: list[str],
) -> None:
    assert run(dumped(tmp_path, UNDER_WAY), database_url, monkeypatch, "--settle") == 0

    async def end() -> int:
        database = PostgresDatabase(database_url)
        await database.open()
        stored = SqlOperations(database)
        enders = Enders(database, None, OPTIONS, operations=stored)  # type: ignore[arg-type]  # no port is removed
        sent: list[Any] = []
        bus: Any = SimpleNamespace(send=sent.append)
        watchdog = Watchdog(stored, enders, bus, now=lambda: now() + timedelta(seconds=seconds))
        assert await watchdog.once() == 1
        if outcome is not None:
            (sending,) = sent
            message = {"operation": sending.operation["id"], "loadbalancer_id": "lb1", "outcome": outcome}
            await Reports(database, stored, enders).result("ovn", message)
        await database.close()
        return len(sent)

    assert asyncio.run(end()) == (1 if outcome else 0)
    statuses, (ended,) = asyncio.run(waiting(database_url))
    assert statuses == left
    assert ended["state"] == ("DONE" if outcome else "TIMED_OUT")


@pytest.mark.parametrize(
    ("own", "method"),
    [
        ("PENDING_CREATE", "loadbalancer_create"),
        ("PENDING_DELETE", "loadbalancer_delete"),
        ("ACTIVE", "loadbalancer_update"),
    ],
)
def test_the_load_balancers_own_status_tells_what_is_asked(own: str, method: str) -> None:
    tables: dict[str, list[Any]] = {table: [] for table in TABLES}
    tables["load_balancer"] = [
        {"id": "a", "provisioning_status": own, "provider": "ovn"},
        {"id": "b", "provisioning_status": "ACTIVE", "provider": "ovn"},
    ]
    tables["listener"] = [{"id": "l", "load_balancer_id": "a", "provisioning_status": "ACTIVE"}]
    tables["l7policy"] = [{"id": "p", "listener_id": "l", "provisioning_status": "ACTIVE"}]
    tables["l7rule"] = [{"id": "r", "l7policy_id": "p", "provisioning_status": "PENDING_CREATE"}]
    (asked,) = operations(tables, now())
    assert (asked["load_balancer_id"], asked["method"]) == ("a", method)
    assert [t["id"] for t in asked["touched"]] == (["r"] if own == "ACTIVE" else ["a", "r"])


async def test_a_schema_that_holds_others_is_refused(database: PostgresDatabase, database_url: str) -> None:
    def one(identifier: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
        row = {"id": identifier, "provisioning_status": "ACTIVE", "operating_status": "ONLINE", "enabled": 1}
        return [("load_balancer", row)]

    first: Outcome = await load(database_url, one("a"))
    assert (first.rows, first.already) == ({"load_balancer": 1}, False)
    with pytest.raises(ImportRefused, match="holds 1 load balancers already"):
        await load(database_url, one("b"))
    assert [row["id"] for row in await database.rows("load_balancer", {})] == ["a"]
    with pytest.raises(ImportRefused, match="no rows of an Octavia database"):
        await load(database_url, [])


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("none.sql", "there is no file"),
        ("postgresql://h/d", "is not read"),
        ("mysql://h", "PyMySQL|must be mysql"),
    ],
)
def test_a_source_that_cannot_be_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], source: str, said: str
) -> None:
    import re

    assert run(source, "postgresql://x@127.0.0.1:1/x", monkeypatch) in (1, 2)
    assert re.search(said, capsys.readouterr().err)


def test_a_server_needs_its_driver() -> None:
    try:
        import pymysql  # type: ignore[import-untyped,unused-ignore,import-not-found]  # noqa: F401
    except ImportError:
        with pytest.raises(ImportRefused, match="install roadstead-octavia-api"):
            next(iter(server.rows("mysql://u@127.0.0.1:1/o", ())))
        return
    with pytest.raises(ImportRefused, match="cannot be read"):
        next(iter(server.rows("mysql://u@127.0.0.1:1/o", ())))

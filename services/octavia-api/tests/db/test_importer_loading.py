"""Writing an imported database: whole or not at all, counted, and refused with words where it does not fit."""

import asyncio
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import roadstead.cli.main as program
from roadstead_octavia.db.importer import server
from roadstead_octavia.db.importer.loading import Outcome, load
from roadstead_octavia.db.importer.problem import ImportRefused
from roadstead_octavia.db.port import Change, Insert
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.db.tables import LOOKUPS, NIL

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


def test_settling_makes_what_waits_an_error(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = DUMP.replace("'SOURCE_IP_PORT','ACTIVE'", "'SOURCE_IP_PORT','PENDING_UPDATE'")
    assert run(dumped(tmp_path, text), database_url, monkeypatch, "--settle") == 0

    async def status() -> Any:
        database = PostgresDatabase(database_url)
        await database.open()
        row = await database.row("pool", {"id": "po1"})
        await database.close()
        return row and row["provisioning_status"]

    assert asyncio.run(status()) == "ERROR"


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

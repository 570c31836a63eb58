"""Cases from fault reports about the database: many first requests, refused commits, a fail-over, several migrations at once."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roadstead.store.migrate import migrate
from roadstead.testing.servers import PostgresServer

from .client import Client
from .ground import Ground
from .people import Home

AT_ONCE = 20
pytestmark = pytest.mark.timeout(240)

# Counted by a sequence, which no rollback takes back.
REFUSING_COMMITS = """
CREATE SEQUENCE IF NOT EXISTS refusals;
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE n bigint := nextval('octavia.refusals');
BEGIN
  IF n % 3 = 1 AND n < 40 THEN RAISE EXCEPTION 'as told' USING ERRCODE = '40P01'; END IF;
  IF n % 3 = 2 AND n < 40 THEN RAISE EXCEPTION 'as told' USING ERRCODE = '40001'; END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON load_balancer DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION refuse();
"""


@pytest.fixture(scope="module")
def quaked(make_ground: Callable[..., Ground]) -> Ground:
    """A service whose database is made to fail."""
    return make_ground()


def newcomer(ground: Ground, name: str) -> tuple[Client, Home]:
    """A project that nobody has seen before; it sees red's network, as all do."""
    home = Home(name)
    ground.people.move_in(home, 0, quiet=True)
    return Client(ground.url, ground.people.token_of(home)), home


async def shared_subnet(ground: Ground) -> str:
    make = ground.people.admin
    network = make("POST", "/network/v2.0/networks", {"network": {"name": "all", "shared": True}})["network"]
    wanted = {"network_id": network["id"], "ip_version": 4, "cidr": "10.77.0.0/16"}
    return str(make("POST", "/network/v2.0/subnets", {"subnet": wanted})["subnet"]["id"])


async def first_posts(client: Client, subnet: str) -> list[int]:
    """Status codes of as many creations at the same moment."""
    wanted = {"loadbalancer": {"vip_subnet_id": subnet, "provider": "plain"}}
    replies = await asyncio.gather(*(client.call("POST", "loadbalancers", wanted) for _ in range(AT_ONCE)))
    for reply in replies:
        assert reply.status in (201, 403, 503), (reply.status, reply.body)
        assert "deadlock" not in json.dumps(reply.body).lower()
    return [reply.status for reply in replies]


async def agree(ground: Ground, home: Home, made: int) -> None:
    """Rows, Neutron's ports and what the quota would count are the same number, and nothing is left over."""
    ends = time.monotonic() + 60
    while ground.pending():
        assert time.monotonic() < ends
        await asyncio.sleep(0.2)
    live = f"SELECT count(*) FROM load_balancer WHERE project_id = '{home.project}' AND provisioning_status <> 'DELETED'"
    assert ground.number(live) == made
    ground.sql("UPDATE vip_port_claim SET deadline = created_at, removing_since = NULL")
    while ground.number("SELECT count(*) FROM vip_port_claim"):
        assert time.monotonic() < ends
        await asyncio.sleep(0.5)
    assert len(ground.ports(project_id=home.project)) == made


async def test_oc_39_first_requests_of_a_project_all_succeed_up_to_its_quota(quaked: Ground) -> None:
    subnet = await shared_subnet(quaked)
    client, home = newcomer(quaked, "first")
    assert await first_posts(client, subnet) == [201] * AT_ONCE
    await agree(quaked, home, AT_ONCE)
    client.close()

    limited, second = newcomer(quaked, "second")
    root = Client(quaked.url, quaked.people.admin_token)
    await root.ok("PUT", f"quotas/{second.project}", {"quota": {"load_balancer": 7}})
    codes = await first_posts(limited, subnet)
    assert (codes.count(201), codes.count(403)) == (7, AT_ONCE - 7)
    await agree(quaked, second, 7)
    root.close()
    limited.close()


async def test_oc_39_a_commit_that_the_database_refuses_is_made_again_with_one_port(quaked: Ground) -> None:
    subnet = await shared_subnet(quaked)
    client, home = newcomer(quaked, "refused")
    quaked.sql(REFUSING_COMMITS)
    try:
        codes = await first_posts(client, subnet)
        assert quaked.number("SELECT last_value FROM refusals") > AT_ONCE
    finally:
        quaked.sql("DROP TRIGGER refuse ON load_balancer")
    assert codes.count(201) >= AT_ONCE - 3, codes
    await agree(quaked, home, codes.count(201))
    client.close()


async def test_oc_39_a_database_that_restarts_meanwhile_costs_503_and_nothing_else(
    quaked: Ground, postgres_server: PostgresServer
) -> None:
    subnet = await shared_subnet(quaked)
    client, home = newcomer(quaked, "restart")
    asking = asyncio.create_task(first_posts(client, subnet))
    await asyncio.sleep(0.2)
    postgres_server.restart()  # by this thread: the server ends with the one that started it
    codes = await asking
    ends = time.monotonic() + 30
    while (await client.call("GET", "loadbalancers")).status != 200:
        assert time.monotonic() < ends
        await asyncio.sleep(0.2)
    # A commit whose answer was lost is told as 503, and its load balancer is there all the same.
    made = quaked.number(
        f"SELECT count(*) FROM load_balancer WHERE project_id = '{home.project}'"
        " AND provisioning_status <> 'DELETED'"
    )
    assert made >= codes.count(201)
    await agree(quaked, home, made)
    client.close()


# ------------------------------------------------------------ migrations

MIGRATE = "import asyncio, sys; from roadstead.store.migrate import migrate; asyncio.run(migrate(sys.argv[1], ['octavia']))"


@pytest.fixture
def empty(postgres_server: PostgresServer) -> Any:
    name = f"octavia_empty_{os.getpid()}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


def heads(postgres: PostgresServer, url: str) -> list[str]:
    database = url.rpartition("/")[2]
    return postgres.execute("SELECT version_num FROM octavia.alembic_version", database).splitlines()


def program(url: str, text: str = MIGRATE) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", text, url], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


async def test_oc_40_of_three_migrations_at_once_one_works_and_the_others_wait(
    postgres_server: PostgresServer, empty: str
) -> None:
    programs = [program(empty) for _ in range(3)]
    ends = [await asyncio.to_thread(p.communicate, None, 120) for p in programs]
    assert [p.returncode for p in programs] == [0, 0, 0], ends
    assert len(heads(postgres_server, empty)) == 1


async def test_oc_40_a_migration_that_was_killed_is_taken_up_by_the_next(
    postgres_server: PostgresServer, empty: str
) -> None:
    database = empty.rpartition("/")[2]
    postgres_server.execute(STANDING_STILL, database)
    half = program(empty)
    asleep = "pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
    ends = time.monotonic() + 60
    while not postgres_server.execute(f"SELECT {asleep}", database):
        assert time.monotonic() < ends
        assert half.poll() is None, half.communicate()
        await asyncio.sleep(0.1)
    half.send_signal(signal.SIGKILL)
    await asyncio.to_thread(half.communicate)
    # What the server does by itself once it writes to a client that is gone.
    postgres_server.execute(f"SELECT pg_terminate_backend(pid) FROM (SELECT {asleep}) s", database)
    postgres_server.execute("DROP EVENT TRIGGER stand_still", database)
    tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'octavia'"
    assert int(postgres_server.execute(tables, database)) <= 1  # all of a revision or nothing
    await migrate(empty, ["octavia"])
    assert len(heads(postgres_server, empty)) == 1


STANDING_STILL = """
CREATE SEQUENCE public.statements;
GRANT ALL ON SEQUENCE public.statements TO PUBLIC;
CREATE FUNCTION public.stand_still() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
  IF nextval('public.statements') = 12 THEN PERFORM pg_sleep(600); END IF;
END $$;
CREATE EVENT TRIGGER stand_still ON ddl_command_end EXECUTE FUNCTION public.stand_still();
"""


async def test_oc_40_a_service_in_front_of_an_empty_database_ends_with_a_clear_text(
    ground: Ground, empty: str
) -> None:
    replica = ground.replicas[0]
    settings = {**replica.settings, "ROADSTEAD_DATABASE_URL": empty, "ROADSTEAD_REPLICA": "lost"}
    settings["ROADSTEAD_OCTAVIA_BIND_PORT"] = 0
    environment = {"PATH": os.environ["PATH"], **{k: str(v) for k, v in settings.items()}}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "roadstead_octavia"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 3
    assert "schema" in done.stdout + done.stderr


def test_oc_40_the_migrations_have_one_head() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    import roadstead_octavia.db.migrations as home

    config = Config()
    config.set_main_option("script_location", str(Path(home.__file__).parent))
    assert len(ScriptDirectory.from_config(config).get_heads()) == 1

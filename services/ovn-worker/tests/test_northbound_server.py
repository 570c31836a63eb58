"""What a real server does to the port: another leader, an answer that is lost, a database that comes back empty, a schema that is too old."""

import asyncio
import logging
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.conformance_ovn.server import MISSING, Client, Ovn, is_installed, running

from roadstead.testing.server_process import free_port
from roadstead_ovn.balancer import Balancer, balancer_of
from roadstead_ovn.facts import Subnet
from roadstead_ovn.northbound.ovsdb import OvsdbNorthbound, Server, Servers
from roadstead_ovn.northbound.port import Source, Unknown, Unready, Wake, Written
from roadstead_ovn.northbound.wire import Bounds, TlsFiles
from roadstead_ovn.render import render

from .grounds import SUBNETS, world
from .shapes import listener, member, pool, tree

pytestmark = [
    pytest.mark.ovn,
    pytest.mark.skipif(not is_installed(), reason=MISSING),
    pytest.mark.timeout(90),
]
BOUNDS = Bounds(first_retry=0.05, longest_retry=0.5)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Ovn]:
    with running(OVN_NORTHD="0", OVN_NB="3") as ovn:
        client = Client(leader_socket(ovn), "OVN_Northbound")
        for operations in world():
            client.transact(*operations)
        client.close()
        yield ovn


def leader_socket(ovn: Ovn) -> str:
    return f"{ovn.home}/run/{ovn.run('leader').strip()}.sock"


@asynccontextmanager
async def connected(*remotes: str, sb: str) -> AsyncIterator[OvsdbNorthbound]:
    northbound = OvsdbNorthbound(Servers(Server(remotes), Server((f"unix:{sb}",)), BOUNDS))
    northbound.remember(SUBNETS)
    await northbound.start()
    try:
        async with asyncio.timeout(15):
            await northbound.ready()
        yield northbound
    finally:
        await northbound.close()


def members(ovn: Ovn) -> list[str]:
    return [f"unix:{ovn.home}/run/nb{number}.sock" for number in (1, 2, 3)]


def balancer(identifier: str = "lb") -> Balancer:
    wish = tree([listener()], [pool(members=[member("m", "192.0.2.10")])])
    wish["loadbalancer"] |= {"vip_port_id": "", "vip_network_id": "net-a", "vip_subnet_id": "sub-a"}
    made = balancer_of({**wish, "loadbalancer_id": identifier})
    assert made is not None
    return made


async def written(northbound: OvsdbNorthbound, what: Balancer) -> Written:
    subnets = tuple(Subnet(*each) for each in SUBNETS)
    wanted = render(what, replace(northbound.facts(what), subnets=subnets))
    return await northbound.write(what.id, what.revision, wanted, northbound.found(what.id, wanted))


async def woken(northbound: OvsdbNorthbound) -> list[Wake]:
    async with asyncio.timeout(15):
        found = list(await northbound.wakes())
        await northbound.ready()
    return found


async def test_another_leader_is_followed(cluster: Ovn) -> None:
    async with connected(*members(cluster), sb=cluster.sb) as northbound:
        await written(northbound, balancer("first"))
        await asyncio.to_thread(cluster.run, "transfer")
        assert Wake(Source.RECONNECT, None) in await woken(northbound)
        assert await written(northbound, balancer("first")) == Written(0, 0)
        assert await written(northbound, balancer("second")) == Written(1, 1)


async def test_a_write_whose_answer_is_lost_is_found_done(cluster: Ovn) -> None:
    async with connected(*members(cluster), sb=cluster.sb) as northbound:
        moving = asyncio.create_task(asyncio.to_thread(cluster.run, "transfer", "--at-write"))
        await asyncio.sleep(0.5)
        with pytest.raises(Unknown):
            await written(northbound, balancer("lost"))
        await moving
        assert Wake(Source.RECONNECT, None) in await woken(northbound)
        assert await written(northbound, balancer("lost")) == Written(0, 0)


async def test_a_member_that_dies_is_left_for_another(cluster: Ovn) -> None:
    async with connected(*members(cluster), sb=cluster.sb) as northbound:
        dead = cluster.run("leader").strip()
        await asyncio.to_thread(cluster.run, "stop", dead, "--hard")
        try:
            assert Wake(Source.RECONNECT, None) in await woken(northbound)
            assert await written(northbound, balancer("after")) == Written(1, 1)
        finally:
            await asyncio.to_thread(cluster.run, "start", dead)


async def test_a_database_that_comes_back_empty_is_seen_as_empty() -> None:
    with running(OVN_NORTHD="0") as ovn:
        client = Client(ovn.nb, "OVN_Northbound")
        for operations in world():
            client.transact(*operations)
        async with connected(f"unix:{ovn.nb}", sb=ovn.sb) as northbound:
            assert await written(northbound, balancer()) == Written(1, 1)
            await asyncio.to_thread(ovn.run, "stop", "nb")
            for _ in range(200):
                if not northbound.is_ready():
                    break
                await asyncio.sleep(0.02)
            with pytest.raises(Unready):
                northbound.known()
            (ovn.home / "db" / "nb.db").unlink()
            await asyncio.to_thread(ovn.run, "start", "nb")
            assert Wake(Source.RECONNECT, None) in await woken(northbound)
            assert northbound.known() == {}
            client = Client(ovn.nb, "OVN_Northbound")
            for operations in world():
                client.transact(*operations)
            async with asyncio.timeout(5):
                assert await northbound.wakes()
            for _ in range(100):
                if northbound.facts(balancer()).networks:
                    break
                await asyncio.sleep(0.02)
            assert await written(northbound, balancer()) == Written(1, 1)


async def test_a_server_without_what_is_needed_is_named(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from roadstead_ovn.northbound import schema

    columns: dict[str, Any] = dict(schema.NORTHBOUND["tables"]["NAT"]["columns"])
    monkeypatch.setitem(
        schema.NORTHBOUND["tables"]["NAT"], "columns", {**columns, "novel": {"type": "string"}}
    )
    with running(OVN_NORTHD="0") as ovn, caplog.at_level(logging.ERROR):
        northbound = OvsdbNorthbound(
            Servers(Server((f"unix:{ovn.nb}",)), Server((f"unix:{ovn.sb}",)), BOUNDS)
        )
        await northbound.start()
        try:
            for _ in range(200):
                if "novel" in caplog.text:
                    break
                await asyncio.sleep(0.02)
            assert "does not give the tables that are needed" in caplog.text
            assert not northbound.is_ready()
        finally:
            await northbound.close()


async def test_many_writes_at_once_are_one_transaction_each_and_all_there() -> None:
    with running(OVN_NORTHD="0") as ovn:
        client = Client(ovn.nb, "OVN_Northbound")
        for operations in world():
            client.transact(*operations)
        async with connected(f"unix:{ovn.nb}", sb=ovn.sb) as northbound:
            names = [f"lb-{number}" for number in range(300)]
            results = await asyncio.gather(*(written(northbound, balancer(name)) for name in names))
            assert results == [Written(1, 1)] * 300
            assert northbound.known() == dict.fromkeys(names, 7)
            again = await asyncio.gather(*(written(northbound, balancer(name)) for name in names))
            assert again == [Written(0, 0)] * 300
        assert len(client.select("Load_Balancer", (), "name")) == 300


async def test_a_server_that_chooses_uuids_itself_is_asked_for_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running(OVN_NORTHD="0") as ovn:
        client = Client(ovn.nb, "OVN_Northbound")
        for operations in world():
            client.transact(*operations)
        async with connected(f"unix:{ovn.nb}", sb=ovn.sb) as northbound:
            monkeypatch.setattr(northbound, "_chooses", False)
            results = await asyncio.gather(
                *(written(northbound, balancer()) for _ in range(3)), return_exceptions=True
            )
            assert sorted(type(result).__name__ for result in results) == ["Conflict", "Conflict", "Written"]
            assert await written(northbound, balancer()) == Written(0, 0)
        assert len(client.select("Load_Balancer", (), "name")) == 1


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    """A certificate that vouches for itself, for both sides."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ovsdb")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(Encoding.PEM))
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(plain)
    return TlsFiles(str(folder / "key.pem"), str(folder / "cert.pem"), str(folder / "cert.pem"))


@contextmanager
def encrypted(home: Path, files: TlsFiles) -> Iterator[str]:
    """A Northbound server that is reached by TLS alone; its remote."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    database = home / "tls.db"
    schema = "/usr/share/ovn/ovn-nb.ovsschema"
    subprocess.run(["ovsdb-tool", "create", str(database), schema], check=True, timeout=20)
    told = [
        f"--private-key={files.private_key}",
        f"--certificate={files.certificate}",
        f"--ca-cert={files.authority}",
    ]
    runs = [f"--remote=pssl:{port}:127.0.0.1", f"--unixctl={home}/tls.ctl", "-vconsole:off"]
    server = subprocess.Popen(["ovsdb-server", *told, *runs, str(database)])
    try:
        yield f"ssl:127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=10)


async def test_a_server_behind_tls_is_reached_with_the_right_certificate_alone(
    certificates: TlsFiles,
) -> None:
    with running(OVN_NORTHD="0") as ovn, encrypted(ovn.home, certificates) as remote:
        southbound = Server((f"unix:{ovn.sb}",))
        northbound = OvsdbNorthbound(Servers(Server((remote,), certificates), southbound, BOUNDS))
        await northbound.start()
        try:
            async with asyncio.timeout(15):
                await northbound.ready()
            assert northbound.known() == {}
        finally:
            await northbound.close()
        unreadable = TlsFiles("/nowhere/key.pem", certificates.certificate, certificates.authority)
        other = OvsdbNorthbound(Servers(Server((remote,), unreadable), southbound, BOUNDS))
        await other.start()
        try:
            await asyncio.sleep(0.5)
            assert not other.is_ready()
        finally:
            await other.close()


async def test_a_host_name_is_looked_up() -> None:
    with running(OVN_NORTHD="0", OVN_NB_PORT=str(free_port())) as ovn:
        remote = f"tcp:localhost:{ovn.environment['OVN_NB_PORT']}"
        async with connected(remote, sb=ovn.sb) as northbound:
            assert northbound.known() == {}


async def test_a_fault_in_the_copy_makes_it_anew(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(OVN_NORTHD="0") as ovn:
        async with connected(f"unix:{ovn.nb}", sb=ovn.sb) as northbound:
            picture = northbound._picture

            def broken(*_: Any) -> None:
                raise RuntimeError("a row that nobody thought of")

            monkeypatch.setattr(picture, "apply", broken)
            client = Client(ovn.nb, "OVN_Northbound")
            for operations in world():
                client.transact(*operations)
            assert Wake(Source.RECONNECT, None) in await woken(northbound)
            assert "is made anew" in caplog.text
            assert await written(northbound, balancer()) == Written(1, 1)

"""The whole path in one place: Octavia API, bus, OVN worker and a private OVN, over one simulated cloud whose networks OVN has too."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import nats
import orjson

from roadstead.testing.private_ovn import PrivateOvn
from roadstead.testing.servers import PostgresServer
from roadstead_ovn.balancer import balancer_of
from roadstead_ovn.facts import Subnet
from roadstead_ovn.northbound.ovsdb import OvsdbNorthbound, Server, Servers
from roadstead_ovn.northbound.plan import Plan, plan
from roadstead_ovn.render import render
from roadstead_ovn.rows import canonical_row
from tests.octavia.ground import START, Ground, Program
from tests.octavia.people import SERVICE_PASSWORD

from .lbaas import Lbaas
from .region import Region

PROVIDER = "ovn"
READY_SUBJECT = f"rpc.provider.{PROVIDER}.check"


class Worker(Program):
    """A replica of the OVN worker; its `url` is that of its health."""

    def command(self) -> list[str]:
        self.settings["ROADSTEAD_HEALTH_PORT"] = self.port
        return super().command()


class Stack(Ground):
    """Like `Ground`, with the provider `ovn` alone, and a `scene` on that OVN that belongs to the project red."""

    scene: Region
    user: Lbaas

    def __init__(
        self, folder: Path, postgres: PostgresServer, database: str, ovn: PrivateOvn, **settings: Any
    ) -> None:
        self.distributed = bool(settings.pop("distributed", False))
        self.worker_settings = {
            name: settings.pop(name) for name in list(settings) if name.startswith("ovn_")
        }
        super().__init__(
            folder,
            postgres,
            database,
            enabled_provider_drivers=f"{PROVIDER}:Real packets.",
            default_provider_driver=PROVIDER,
            **settings,
        )
        self.ovn = ovn
        self.workers: list[Worker] = []

    def start(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o711)
        self.nats.start()
        self.enter_cloud()
        self.add_replica()
        self.name_service()
        self.add_worker()
        self.user = Lbaas(self.url, self.people.token_of(self.people.red))
        return self

    def enter_cloud(self) -> None:
        super().enter_cloud()
        self.scene = Region(self.cloud, self.ovn, self.people.red.project, distributed=self.distributed)

    def leave_cloud(self) -> None:
        if hasattr(self, "scene"):
            self.scene.close()
        super().leave_cloud()

    def stop(self) -> None:
        for worker in self.workers:
            worker.kill()
        super().stop()

    def add_worker(self) -> Worker:
        """One more replica of the OVN worker."""
        number = len(self.workers)
        settings = {
            **self._common(f"ovn-{number}"),
            "ROADSTEAD_DATABASE_URL": self.postgres.url_of(self.database),
            "ROADSTEAD_OVN_NB_CONNECTION": self.ovn.northbound,
            "ROADSTEAD_OVN_SB_CONNECTION": self.ovn.southbound,
            "ROADSTEAD_OVN_AUTH_URL": self.front.auth_url,
            "ROADSTEAD_OVN_PASSWORD": SERVICE_PASSWORD,
            **{f"ROADSTEAD_{name.upper()}": value for name, value in self.worker_settings.items()},
        }
        worker = Worker(self.folder / f"ovn-{number}", "roadstead_ovn", self.nats, READY_SUBJECT, settings)
        self.workers.append(worker)
        worker.start(START)
        return worker

    def restart_worker(self) -> None:
        """The first replica ends in order, and another process takes its place."""
        self.workers[0].stop()
        self.workers[0].start(START)

    # ------------------------------------------------------------ what OVN has and what it should have

    def differences(self, *ids: str) -> dict[str, list[str]]:
        """By load balancer, what a fresh rendering would write, keys of ours aside.  Without ids: of all that the API has."""
        return asyncio.run(
            self._differences(ids or tuple(lb["id"] for lb in self.user.list("loadbalancers")))
        )

    async def _differences(self, ids: tuple[str, ...]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        servers = Servers(
            Server(tuple(self.ovn.northbound.split(","))), Server(tuple(self.ovn.southbound.split(",")))
        )
        northbound = OvsdbNorthbound(servers)
        bus = await nats.connect(self.nats.url)
        await northbound.start()
        try:
            await asyncio.wait_for(northbound.ready(), 15)
            northbound.remember([(s["id"], s["network_id"], s["cidr"]) for s in self._subnets()])
            for load_balancer_id in ids:
                reply = await bus.request(
                    f"rpc.provider.{PROVIDER}.tree",
                    orjson.dumps({"loadbalancer_id": load_balancer_id}),
                    timeout=10,
                )
                tree = orjson.loads(reply.data)["tree"]
                balancer = balancer_of(tree) if tree else None
                if balancer is None:
                    continue
                facts = northbound.facts(balancer)
                subnets = tuple(Subnet(s["id"], s["network_id"], s["cidr"]) for s in self._subnets())
                wanted = render(balancer, replace(facts, subnets=subnets))
                what = plan(
                    load_balancer_id, balancer.revision, wanted, northbound.found(load_balancer_id, wanted)
                )
                if words := _in_words(what):
                    found[load_balancer_id] = words
        finally:
            await northbound.close()
            await bus.close()
        return found

    def tree(self, load_balancer_id: str) -> dict[str, Any]:
        """What the API tells its provider of that load balancer."""

        async def ask() -> dict[str, Any]:
            bus = await nats.connect(self.nats.url)
            try:
                wanted = orjson.dumps({"loadbalancer_id": load_balancer_id})
                reply = await bus.request(f"rpc.provider.{PROVIDER}.tree", wanted, timeout=10)
            finally:
                await bus.close()
            found: dict[str, Any] = orjson.loads(reply.data)["tree"]
            return found

        return asyncio.run(ask())

    def _subnets(self) -> list[dict[str, Any]]:
        return list(self.cloud.neutron.state.subnets)

    def rows_of(self, load_balancer_id: str) -> list[dict[str, Any]]:
        """Its Load_Balancer rows as they are in the database."""
        session = self.ovn.nb()
        try:
            columns = [
                "name",
                "protocol",
                "vips",
                "external_ids",
                "ip_port_mappings",
                "health_check",
                "options",
            ]
            return session.select("Load_Balancer", columns, [["name", "==", load_balancer_id]])
        finally:
            session.close()

    def versions(self) -> dict[str, Any]:
        """By table and row, what changes with every write to it: equal while nobody writes a load balancer."""
        session = self.ovn.nb()
        try:
            return {
                f"{table} {row['_uuid']}": row["_version"]
                for table in (
                    "Load_Balancer",
                    "Load_Balancer_Health_Check",
                    "Logical_Switch",
                    "Logical_Router",
                )
                for row in session.select(table, ["_uuid", "_version"])
            }
        finally:
            session.close()

    def vips_of(self, load_balancer_id: str) -> dict[str, set[str]]:
        """All entries of its rows: where clients connect, and the backends that they may reach."""
        return {
            vip: {backend for backend in backends.split(",") if backend}
            for row in self.rows_of(load_balancer_id)
            for vip, backends in row["vips"].items()
        }


def _in_words(what: Plan) -> list[str]:
    """What differs, short enough for the report of a failed test."""
    found = [f"switch port {port}: {addresses}" for port, addresses in what.addresses.items()]
    found += [f"floating IP {address} is pinned" for address in what.unpinned]
    for change in what.changes:
        if change.before is None or change.after is None:
            found.append("a row is missing" if change.before is None else "a row is too many")
            continue
        is_so, should = canonical_row(change.before.row), canonical_row(change.after)
        found += [f"{c}: {is_so[c]} instead of {should[c]}" for c in should if is_so[c] != should[c]]
    return found

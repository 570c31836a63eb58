"""Our Octavia API and OVN worker in the place of the reference cloud's own, and the way back: the steps of docs/octavia-takeover.md.

The same Keystone, Neutron and OVN databases, the same region: from the switch on, whoever uses the cloud uses ours.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from roadstead.testing.ovn_mirror.ovsdb import Session, as_list
from tests.octavia.ground import START, Program

from .reference import CloudPeople, ReferenceService

ROOT = Path(__file__).resolve().parents[3]
PROVIDER = "ovn"
ORIGINAL = ("octavia-api", "octavia-driver-agent")
# Ports of the cloud, counted from Keystone's.
OCTAVIA, DATABASE, NORTHBOUND, SOUTHBOUND = 6, 8, 13, 14
OURS = "roadstead:"
CHECK = ["_uuid", "vip", "options", "external_ids"]
BALANCER = [
    "_uuid",
    "name",
    "protocol",
    "vips",
    "external_ids",
    "ip_port_mappings",
    "health_check",
    "options",
    "selection_fields",
]
Rows = dict[str, list[dict[str, Any]]]


class Worker(Program):
    """A replica of the OVN worker."""

    def command(self) -> list[str]:
        self.settings["ROADSTEAD_HEALTH_PORT"] = self.port
        return super().command()


class Takeover(ReferenceService):
    """From `start`, which leaves the original in place, over `take_over` to `hand_back`; `stop` puts everything back in any case."""

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__(
            *given,
            enabled_provider_drivers=f"{PROVIDER}:Open Virtual Network.",
            default_provider_driver=PROVIDER,
            **settings,
        )
        self.region = self.cloud.region
        self.people = CloudPeople(self.cloud, "moving", "staying")
        self.base = int(urlsplit(self.cloud.auth_url).port or 0)
        self.workers: list[Worker] = []

    @property
    def original_url(self) -> str:
        return f"http://127.0.0.1:{self.base + OCTAVIA}"

    def start(self) -> Self:
        """The original serves; a run that was killed in between is put right first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o711)
        self.people.log_in()
        self.catalog_leads_to(self.original_url)
        self.original("up")
        self.nats.start()
        self.enter_cloud()
        return self

    def stop(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.people.log_in()
        self.catalog_leads_to(self.original_url)
        self.original("up")
        super().stop()

    # ------------------------------------------------------------ steps

    def take_over(self) -> None:
        self.original("down")
        self.roadstead("octavia", "import", str(self.dump()))
        self.serve()
        self.catalog_leads_to(self.url)

    def hand_back(self) -> None:
        """Ours end in order, the original gets the rows as they are now."""
        for program in (*self.replicas, *self.workers):
            program.stop()
        back = self.folder / "back.sql"
        self.roadstead("octavia", "export", str(back))
        with back.open("rb") as stream:
            subprocess.run(
                ["mariadb", *self._database(), "octavia"],
                stdin=stream,
                check=True,
                capture_output=True,
                timeout=60,
            )
        self.original("up")
        self.catalog_leads_to(self.original_url)

    def serve(self) -> None:
        """API and worker."""
        self.add_replica()
        self.add_worker()

    def original(self, what: str) -> None:
        """`up` or `down`: the cloud's own API and driver agent."""
        done = subprocess.run(
            [str(ROOT / "deploy/cloud/cloud"), what, *ORIGINAL],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def dump(self) -> Path:
        """The original's database as a file."""
        target = self.folder / "octavia.sql"
        words = ["mariadb-dump", "--hex-blob", *self._database(), "octavia"]
        target.write_bytes(subprocess.run(words, check=True, capture_output=True, timeout=60).stdout)
        return target

    def _database(self) -> list[str]:
        return [
            "--protocol=tcp",
            "--host=127.0.0.1",
            f"--port={self.base + DATABASE}",
            "--user=root",
            f"--password={self.cloud.password}",
        ]

    def roadstead(self, *words: str) -> str:
        """What the command printed; it must succeed."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("ROADSTEAD_", "OS_"))}
        environment |= {
            "ROADSTEAD_DATABASE_URL": self.postgres.url_of(self.database),
            "ROADSTEAD_NATS_URL": self.nats.url,
            "ROADSTEAD_HOME": str(self.folder / "home"),
        }
        done = subprocess.run(
            [sys.executable, "-m", "roadstead.cli", *words],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def add_worker(self) -> Worker:
        number = len(self.workers)
        settings = {
            **self._common(f"ovn-{number}"),
            "ROADSTEAD_DATABASE_URL": self.postgres.url_of(self.database),
            "ROADSTEAD_OVN_NB_CONNECTION": f"tcp:127.0.0.1:{self.base + NORTHBOUND}",
            "ROADSTEAD_OVN_SB_CONNECTION": f"tcp:127.0.0.1:{self.base + SOUTHBOUND}",
            "ROADSTEAD_OVN_AUTH_URL": self.auth_url,
            "ROADSTEAD_OVN_PASSWORD": self.service_password,
            "ROADSTEAD_OVN_REGION_NAME": self.region,
        }
        worker = Worker(
            self.folder / f"ovn-{number}",
            "roadstead_ovn",
            self.nats,
            f"rpc.provider.{PROVIDER}.check",
            settings,
        )
        self.workers.append(worker)
        worker.start(START)
        return worker

    def name_service(self) -> None:
        self.catalog_leads_to(self.url)

    def leave_cloud(self) -> None:
        self.people.log_in()
        self.people.leave()

    def catalog_leads_to(self, url: str) -> None:
        """Load balancing of the cloud's region."""
        service = self.cloud.services()["load-balancer"]
        where = f"/identity/v3/endpoints?service_id={service}&region_id={self.region}"
        for endpoint in self.people.admin("GET", where)["endpoints"]:
            if endpoint["url"] != url:
                wanted = {"endpoint": {"url": url}}
                self.people.admin("PATCH", f"/identity/v3/endpoints/{endpoint['id']}", wanted)

    # ------------------------------------------------------------ what tests look at

    def _northbound(self) -> Session:
        """A new one for each look: the server ends those that are silent for long."""
        return Session(f"tcp:127.0.0.1:{self.base + NORTHBOUND}")

    def rows_in_ovn(self, load_balancer: str) -> Rows:
        """All that the Northbound database has of it, without the keys that are ours alone; switches and routers by name."""
        nb = self._northbound()
        balancers = nb.select("Load_Balancer", BALANCER, [["name", "==", load_balancer]])
        checks = {row["_uuid"]: row for row in nb.select("Load_Balancer_Health_Check", CHECK)}
        found: Rows = {"rows": [_shown(row) for row in balancers], "checks": [], "holders": []}
        for row in balancers:
            found["checks"] += [_shown(checks[uuid]) for uuid in as_list(row["health_check"])]
            for table in ("Logical_Switch", "Logical_Router"):
                for holder in nb.select(table, ["name", "load_balancer"]):
                    if row["_uuid"] in as_list(holder["load_balancer"]):
                        found["holders"].append({table: holder["name"], "row": row["_uuid"]})
        return {kind: sorted(rows, key=str) for kind, rows in found.items()}

    def revision_in_ovn(self, load_balancer: str) -> list[str | None]:
        """By row, what our worker wrote; None where it has not been."""
        rows = self._northbound().select("Load_Balancer", ["external_ids"], [["name", "==", load_balancer]])
        return [row["external_ids"].get(f"{OURS}revision") for row in rows]


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Without our keys; sets in any order are the same."""
    kept = {name: sorted(value) if isinstance(value, list) else value for name, value in row.items()}
    return kept | {"external_ids": {k: v for k, v in row["external_ids"].items() if not k.startswith(OURS)}}

"""Stands in for ovn-controller on every host.

Registers a chassis per host in OVN's southbound database, claims the ports that ask for
it and answers load balancer health checks.  The real ovn-northd, Neutron and Octavia then
see ports come up, gateways find a home and members get a status; no packet moves.
"""

import argparse
import signal
import sys
import time
import zlib
from types import FrameType
from typing import Any

from ovs import poller
from ovs.db import idl

SCHEMA = "/usr/share/ovn/ovn-sb.ovsschema"
PREFIX = "pretended-"
BRIDGES = "physnet1:br-physnet1,external:br-external"
COLUMNS = {
    "SB_Global": ("nb_cfg",),
    "Encap": ("type", "ip", "options", "chassis_name"),
    "Chassis": ("name", "hostname", "encaps", "external_ids", "other_config", "nb_cfg"),
    "Chassis_Private": ("name", "chassis", "nb_cfg", "nb_cfg_timestamp", "external_ids"),
    "Port_Binding": ("logical_port", "type", "chassis", "options", "up", "parent_port", "virtual_parent"),
    "Service_Monitor": ("status",),
}
# Kinds of ports that a chassis brings up, as opposed to those that live in OVN alone.
CLAIMED_KINDS = ("", "external", "virtual", "l3gateway")


class Chassis:
    """Keeps the southbound database as if real chassis followed it.  The first host is the gateway."""

    def __init__(self, southbound: str, hosts: list[str], member_health: str) -> None:
        schema = idl.SchemaHelper(SCHEMA)
        for table, columns in COLUMNS.items():
            schema.register_columns(table, list(columns))
        self._idl = idl.Idl(southbound, schema)
        self._hosts = hosts
        self._member_health = member_health

    def run(self) -> None:
        """Follow the database until the process is told to end."""
        seen: int | None = None
        while True:
            self._idl.run()
            if self._idl.change_seqno != seen:
                seen = self._idl.change_seqno
                if self._idl.has_ever_connected() and not self._follow():
                    seen = None  # a lost race: look again and write anew
                    time.sleep(0.1)
                continue
            wait = poller.Poller()
            self._idl.wait(wait)
            wait.timer_wait(1000)
            wait.block()

    def _follow(self) -> bool:
        """Write what real chassis would write now; False when the database refused."""
        transaction = idl.Transaction(self._idl)
        chassis = {host: self._registered(transaction, host) for host in self._hosts}
        self._claim_ports(chassis)
        for monitor in self._rows("Service_Monitor"):
            if list(monitor.status) != [self._member_health]:
                monitor.status = [self._member_health]
        status = transaction.commit_block()
        if status in (transaction.SUCCESS, transaction.UNCHANGED):
            return True
        print(f"{transaction.status_to_string(status)}: {transaction.get_error()}", flush=True)
        return False

    def _rows(self, table: str) -> list[Any]:
        return list(self._idl.tables[table].rows.values())

    def _named(self, table: str, name: str) -> Any:
        return next((row for row in self._rows(table) if row.name == name), None)

    def _registered(self, transaction: Any, host: str) -> Any:
        """The chassis row of a host, made when it is not there, its configuration number kept up."""
        name = PREFIX + host
        row = self._named("Chassis", name)
        if row is None:
            row = self._insert_chassis(transaction, name, host)
        newest = next((row.nb_cfg for row in self._rows("SB_Global")), 0)
        private = self._named("Chassis_Private", name)
        if private is None:
            private = transaction.insert(self._idl.tables["Chassis_Private"])
            private.name = name
            private.nb_cfg = -1
            private.chassis = row
        elif not private.chassis:
            private.chassis = row
        if private.nb_cfg != newest:
            private.nb_cfg = newest
            private.nb_cfg_timestamp = int(time.time() * 1000)
        return row

    def _insert_chassis(self, transaction: Any, name: str, host: str) -> Any:
        options = "availability-zones=nova"
        if host == self._hosts[0]:
            options = f"enable-chassis-as-gw,{options}"
        described = {
            "ovn-bridge-mappings": BRIDGES,
            "ovn-cms-options": options,
            "datapath-type": "system",
            "iface-types": "geneve,internal,system,tap,vxlan",
        }
        features = ("ovn-monitor-all", "ovn-ct-lb-related", "port-up-notif", "mac-binding-timestamp", "fdb-timestamp",
                    "ovn-enable-lflow-cache")  # fmt: skip
        digest = zlib.crc32(host.encode())
        encap = transaction.insert(self._idl.tables["Encap"])
        encap.type = "geneve"
        encap.ip = f"127.{digest >> 8 & 255}.{digest & 255}.1"
        encap.options = {"csum": "true"}
        encap.chassis_name = name
        row = transaction.insert(self._idl.tables["Chassis"])
        row.name = name
        row.hostname = host
        row.encaps = [encap]
        row.external_ids = described
        row.other_config = {
            **described, **dict.fromkeys(features, "true"), "is-interconn": "false", "ovn-chassis-mac-mappings": "",
        }  # fmt: skip
        return row

    def _claim_ports(self, chassis: dict[str, Any]) -> None:
        gateway = chassis[self._hosts[0]]
        for port in self._rows("Port_Binding"):
            if port.type == "chassisredirect":
                owner = gateway
            elif port.type in CLAIMED_KINDS:
                owner = _requested(port, chassis)
                if owner is None and (port.parent_port or port.virtual_parent):
                    owner = gateway  # a trunk's sub-port or a virtual address follows
            else:
                continue
            if owner is None:
                if port.chassis and port.chassis[0].name.startswith(PREFIX):
                    port.chassis = []
                    port.up = [False]
                continue
            if not port.chassis or port.chassis[0].uuid != owner.uuid:
                port.chassis = owner
            if port.type != "chassisredirect" and list(port.up) != [True]:
                port.up = [True]


def _requested(port: Any, chassis: dict[str, Any]) -> Any:
    """The chassis that Neutron asks for, by host name or chassis name; the first of ours."""
    for name in port.options.get("requested-chassis", "").split(","):
        owner = chassis.get(name.strip().removeprefix(PREFIX))
        if owner is not None:
            return owner
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--southbound", required=True)
    parser.add_argument("--member-health", required=True, choices=("online", "offline", "error"))
    parser.add_argument("hosts", nargs="+")
    arguments = parser.parse_args()

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    Chassis(arguments.southbound, arguments.hosts, arguments.member_health).run()


if __name__ == "__main__":
    main()

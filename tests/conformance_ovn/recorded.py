"""Recorded scenarios of the original provider, replayed into the trees and facts that a worker would have had at each step.

They are data that this project does not hold.  A replay keeps what the API would store: calls that were refused change nothing, and a
call about what is not there is answered by the API before any provider hears of it.
"""

import copy
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from roadstead_ovn.facts import (
    Facts,
    FloatingIP,
    Network,
    Port,
    RouterPort,
    ServiceMonitor,
    Subnet,
    canonical,
)
from roadstead_ovn.rows import HealthCheckRow, LoadBalancerRow

ROOT = Path(__file__).resolve().parents[2]
_GIVEN = os.environ.get("ROADSTEAD_OVN_GOLDEN")
FOLDER = (
    Path(_GIVEN)
    if _GIVEN
    else Path(os.environ.get("ROADSTEAD_SHARED") or ROOT.parent / "shared") / "ovn" / "golden"
)
REASON = (
    f"{FOLDER} with the recorded scenarios is missing; set ROADSTEAD_SHARED to the folder above ovn/golden"
)
needs_recordings = pytest.mark.skipif(not (FOLDER / "world.json").is_file(), reason=REASON)

Json = dict[str, Any]


@cache
def scenarios() -> Mapping[str, Json]:
    """By id; empty where there are none."""
    found: dict[str, Json] = {}
    for file in sorted(FOLDER.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            scenario = json.loads(line)
            found[scenario["id"]] = scenario
    return found


def world() -> Json:
    read: Json = json.loads((FOLDER / "world.json").read_text())
    return read


def _port(item: Mapping[str, Any]) -> Port:
    return Port(
        item["id"],
        item["network_id"],
        item.get("name", ""),
        item.get("device_owner", ""),
        item.get("device_id", ""),
        item.get("project_id", ""),
        tuple((ip["subnet_id"], ip["ip_address"]) for ip in item["fixed_ips"]),
    )


@dataclass
class Region:
    """The network service of one scenario."""

    networks: dict[str, Network] = field(default_factory=dict)
    subnets: dict[str, Subnet] = field(default_factory=dict)
    ports: dict[str, Port] = field(default_factory=dict)
    router_ports: dict[str, RouterPort] = field(default_factory=dict)
    floating: dict[str, FloatingIP] = field(default_factory=dict)
    monitors: dict[tuple[str, int, str], str] = field(default_factory=dict)
    next_host: int = 200
    pins: dict[str, str] = field(
        default_factory=dict
    )  # MAC of a floating IP that is translated where its machine runs

    @classmethod
    def of_world(cls) -> "Region":
        read, made = world(), cls()
        for item in read["networks"]:
            made.networks[item["id"]] = Network(item["id"], bool(item["provider_physical_network"]))
        for item in read["subnets"]:
            made.subnets[item["id"]] = Subnet(item["id"], item["network_id"], item["cidr"])
        for item in read["ports"]:
            made.ports[item["id"]] = port = _port(item)
            if port.device_owner.startswith("network:router_"):
                is_gateway = port.device_owner == "network:router_gateway"
                made.interface(port, port.device_id, is_gateway)
        return made

    def interface(self, port: Port, router: str, is_gateway: bool) -> None:
        texts = tuple(f"{ip}/{self.subnets[s].cidr.split('/')[1]}" for s, ip in port.fixed_ips)
        self.router_ports[port.id] = RouterPort(port.id, router, port.network_id, texts, is_gateway)

    def add_port(self, request: Mapping[str, Any]) -> None:
        """As the scenarios' network service numbers ports and addresses."""
        number = 1
        while (identifier := f"0000beef-0000-4000-8000-{number:012x}") in self.ports:
            number += 1
        fixed = []
        for ip in request["fixed_ips"]:
            address = ip.get("ip_address")
            if address is None:
                base = self.subnets[ip["subnet_id"]].cidr.split("/")[0]
                tail = f"{self.next_host:x}" if ":" in base else f".{self.next_host}"
                address = base + tail if ":" in base else base.rsplit(".", 1)[0] + tail
                self.next_host += 1
            fixed.append({"subnet_id": ip["subnet_id"], "ip_address": address})
        self.ports[identifier] = _port({**request, "id": identifier, "fixed_ips": fixed})

    def lose_switch(self, network_id: str) -> None:
        """Gone with its ports, behind the network service's back."""
        del self.networks[network_id]
        self.ports = {k: p for k, p in self.ports.items() if p.network_id != network_id}
        self.router_ports = {k: p for k, p in self.router_ports.items() if p.network_id != network_id}

    def took(self, call: Mapping[str, Any]) -> None:
        if call["call"] == "create_port":
            taken = {(p.network_id, canonical(a)) for p in self.ports.values() for _, a in p.fixed_ips}
            wanted = {(call["network_id"], ip.get("ip_address")) for ip in call["fixed_ips"]}
            if "raised" not in call and not wanted & taken:
                self.add_port(call)
        elif call["call"] == "delete_port" and "raised" not in call:
            self.ports.pop(call["port_id"], None)

    def facts(self) -> Facts:
        monitors = []
        for (address, number, protocol), status in self.monitors.items():
            for port in self.ports.values():
                if any(canonical(ip) == canonical(address) for _, ip in port.fixed_ips):
                    monitors.append(ServiceMonitor(port.id, address, number, protocol, status))
        return Facts(
            tuple(self.networks.values()),
            tuple(self.subnets.values()),
            tuple(self.ports.values()),
            tuple(self.router_ports.values()),
            tuple(self.floating.values()),
            tuple(monitors),
        )


@dataclass(frozen=True)
class Moment:
    """After one step.  tree: what a call carries, None while there is no load balancer; before: as it stood when the call was checked."""

    step: Json
    tree: Json | None
    facts: Facts
    before: Json | None
    facts_before: Facts


class Replay:
    """Walks through one scenario."""

    def __init__(self, scenario: Json) -> None:
        self.scenario = scenario
        self.network = Region.of_world()
        self.balancer: Json | None = None
        self.listeners: dict[str, Json] = {}
        self.pools: dict[str, Json] = {}
        self.statuses: dict[str, list[str]] = {}
        self.pending: dict[str, str] = {}

    def moments(self) -> Iterator[Moment]:
        for step in self.scenario["steps"]:
            self._off_the_record(step)
            before, facts_before = self.tree(), self.network.facts()
            self.pending = {}
            kept = copy.deepcopy((self.balancer, self.listeners, self.pools))
            self._user_ports(step)
            if step["do"] == "call":
                if "error" in step:
                    self.balancer, self.listeners, self.pools = kept
                else:
                    self._called(step)
            elif step["do"] == "event":
                self._happened(step)
            for call in step.get("network_calls", ()):
                self.network.took(call)
            yield Moment(step, self.tree(), self.network.facts(), before, facts_before)
            self._settle(step)

    # -------------------------------------------------- what the API stores

    def tree(self) -> Json | None:
        if self.balancer is None:
            return None
        model = {
            **copy.deepcopy(self.balancer),
            "listeners": copy.deepcopy(list(self.listeners.values())),
            "pools": copy.deepcopy(list(self.pools.values())),
        }
        found: dict[str, dict[str, list[str]]] = {"objects": {}}
        for identifier in self._ids():
            operating = self.statuses.get(identifier, ["", "OFFLINE"])[1]
            found["objects"][identifier] = [self.pending.get(identifier, "ACTIVE"), operating]
        return {
            "loadbalancer_id": model["loadbalancer_id"],
            "provider": "ovn",
            "revision": 1,
            "vip_port_owned": False,
            "loadbalancer": model,
            "statuses": found,
        }

    def _ids(self) -> Iterator[str]:
        assert self.balancer is not None
        yield self.balancer["loadbalancer_id"]
        yield from self.listeners
        for pool in self.pools.values():
            yield pool["pool_id"]
            yield from (m["member_id"] for m in pool["members"])
            if pool.get("healthmonitor"):
                yield pool["healthmonitor"]["healthmonitor_id"]

    def _settle(self, step: Json) -> None:
        """The end of an operation: reported statuses are stored, and what was to go is gone."""
        for message in step["statuses"]:
            for rows in message.values():
                for row in rows:
                    known = self.statuses.setdefault(row["id"], ["ACTIVE", "OFFLINE"])
                    known[1] = row.get("operating_status", known[1])
        gone = {i for i, status in self.pending.items() if status == "PENDING_DELETE"}
        self.pending = {}
        if self.balancer and self.balancer["loadbalancer_id"] in gone:
            self.balancer, self.listeners, self.pools = None, {}, {}
        for identifier in gone:
            self.listeners.pop(identifier, None)
            self.pools.pop(identifier, None)
        for pool in self.pools.values():
            pool["members"] = [m for m in pool["members"] if m["member_id"] not in gone]
            if pool.get("healthmonitor") and pool["healthmonitor"]["healthmonitor_id"] in gone:
                pool["healthmonitor"] = None
        for listener in self.listeners.values():
            if listener.get("default_pool_id") in gone:
                listener["default_pool_id"] = None

    def _user_ports(self, step: Json) -> None:
        """A port that a user made is in no record of its own: it shows in the request that names it."""
        if step.get("method") == "create_vip_port" and step["args"][2].get("vip_port_id"):
            vip = step["args"][2]
            ip = {"subnet_id": vip["vip_subnet_id"], "ip_address": vip["vip_address"]}
            item = {"id": vip["vip_port_id"], "network_id": vip["vip_network_id"], "name": "my-own-port"}
            self.network.ports[item["id"]] = _port({**item, "fixed_ips": [ip]})

    def _called(self, step: Json) -> None:
        method, arguments = step["method"], copy.deepcopy(step["args"])
        handler = getattr(self, f"_{method}", None)
        if handler is not None:
            handler(*arguments)

    def _loadbalancer_create(self, model: Json) -> None:
        listeners, pools = model.pop("listeners", None) or [], model.pop("pools", None) or []
        self.balancer = model
        self.pending[model["loadbalancer_id"]] = "PENDING_CREATE"
        for pool in pools:
            self._pool_create(pool)
        for listener in listeners:
            self._listener_create(listener)

    def _loadbalancer_update(self, _: Json, new: Json) -> None:
        assert self.balancer is not None
        self.balancer.update(new)

    def _loadbalancer_delete(self, model: Json) -> None:
        for identifier in self._ids():
            self.pending[identifier] = "PENDING_DELETE"

    def _listener_create(self, model: Json) -> None:
        if model["listener_id"] not in self.listeners:
            self.pending[model["listener_id"]] = "PENDING_CREATE"
            self.listeners[model["listener_id"]] = model

    def _listener_update(self, _: Json, new: Json) -> None:
        self.listeners[new["listener_id"]].update(new)

    def _listener_delete(self, model: Json) -> None:
        self.pending[model["listener_id"]] = "PENDING_DELETE"

    def _pool_create(self, model: Json) -> None:
        if model["pool_id"] in self.pools:
            return
        self.pending[model["pool_id"]] = "PENDING_CREATE"
        members, monitor = model.get("members") or [], model.get("healthmonitor")
        self.pools[model["pool_id"]] = {**model, "members": [], "healthmonitor": None}
        for member in members:
            self._member_create(member)
        if monitor:
            self._health_monitor_create(monitor)
        if model.get("listener_id") in self.listeners:
            self.listeners[model["listener_id"]]["default_pool_id"] = model["pool_id"]

    def _pool_update(self, _: Json, new: Json) -> None:
        self.pools[new["pool_id"]].update(new)

    def _pool_delete(self, model: Json) -> None:
        pool = self.pools[model["pool_id"]]
        going = [model["pool_id"], *(m["member_id"] for m in pool["members"])]
        if pool.get("healthmonitor"):
            going.append(pool["healthmonitor"]["healthmonitor_id"])
        self.pending.update(dict.fromkeys(going, "PENDING_DELETE"))

    def _member_create(self, model: Json) -> None:
        pool = self.pools.get(model["pool_id"])
        if pool is not None and all(m["member_id"] != model["member_id"] for m in pool["members"]):
            self.pending[model["member_id"]] = "PENDING_CREATE"
            pool["members"].append(model)

    def _member_update(self, _: Json, new: Json) -> None:
        for pool in self.pools.values():
            for member in pool["members"]:
                if member["member_id"] == new["member_id"]:
                    member.update(new)

    def _member_delete(self, model: Json) -> None:
        if any(m["member_id"] == model["member_id"] for p in self.pools.values() for m in p["members"]):
            self.pending[model["member_id"]] = "PENDING_DELETE"

    def _member_batch_update(self, pool_id: str, members: list[Json]) -> None:
        pool = self.pools[pool_id]
        wanted = {m["member_id"]: m for m in members}
        for member in pool["members"]:
            if member["member_id"] in wanted:
                member.update(wanted.pop(member["member_id"]))
            else:
                self.pending[member["member_id"]] = "PENDING_DELETE"
        for member in wanted.values():
            self._member_create(member)

    def _health_monitor_create(self, model: Json) -> None:
        pool = self.pools.get(model["pool_id"])
        if pool is not None:
            self.pending[model["healthmonitor_id"]] = "PENDING_CREATE"
            pool["healthmonitor"] = model

    def _health_monitor_update(self, _: Json, new: Json) -> None:
        for pool in self.pools.values():
            if (pool.get("healthmonitor") or {}).get("healthmonitor_id") == new["healthmonitor_id"]:
                pool["healthmonitor"].update(new)

    def _health_monitor_delete(self, model: Json) -> None:
        self.pending[model["healthmonitor_id"]] = "PENDING_DELETE"

    # -------------------------------------------------- what happens outside

    def _off_the_record(self, step: Json) -> None:
        """What changed without a step of its own shows in what came of the next one.

        A load balancer that ends in ERROR with its row made had no switch for its VIP. A member that a repair takes out of the rows is one
        that the API does not have. A VIP's port that is not removed with its load balancer was gone before.
        """
        if step.get("method") == "loadbalancer_create" and failed(step) and step["nb"]["Load_Balancer"]:
            network = step["args"][0]["vip_network_id"]
            if network in self.network.networks:
                self.network.lose_switch(network)
        elif step.get("method") == "loadbalancer_delete":
            port = self.network.ports.get(step["args"][0].get("vip_port_id") or "")
            asked = {call.get("port_id") for call in step.get("network_calls", ())}
            if port is not None and port.name.startswith("ovn-lb-vip-") and port.id not in asked:
                del self.network.ports[port.id]
        elif step["do"] == "sync":
            written = " ".join(
                value
                for row in step["nb"]["Load_Balancer"]
                for key, value in row["external_ids"].items()
                if key.startswith("pool_")
            )
            for pool in self.pools.values():
                pool["members"] = [m for m in pool["members"] if m["member_id"] in written]

    def _happened(self, step: Json) -> None:
        what, network = step["what"], self.network
        if what == "floating_ip_associate":
            address = step["floating_ip"]
            network.floating[address] = FloatingIP(address, step["port_id"], step["fixed_ip"])
            for row in step["nb"].get("NAT", ()):
                if row["external_ip"] == address and row["external_mac"]:
                    network.pins[address] = row["external_mac"]
        elif what == "floating_ip_disassociate":
            network.floating.pop(step["floating_ip"])
        elif what == "router_interface_add":
            subnet = network.subnets[step["subnet"]]
            ip = {"subnet_id": subnet.id, "ip_address": step["address"]}
            port = _port({"id": step["port_id"], "network_id": subnet.network_id, "fixed_ips": [ip]})
            network.ports[port.id] = port
            network.interface(port, step["router"], step["gateway"])
        elif what == "router_interface_delete":
            network.ports.pop(step["port_id"])
            network.router_ports.pop(step["port_id"])
        elif what == "service_monitor":
            network.monitors[step["ip"], step["port"], step["protocol"]] = step["status"]


def failed(step: Json) -> bool:
    """Whether the load balancer ended in ERROR."""
    rows = [row for message in step["statuses"] for row in message.get("loadbalancers", ())]
    return any(row.get("provisioning_status") == "ERROR" for row in rows)


# ------------------------------------------------------------ rows as they were recorded


def found_rows(step: Json) -> list[LoadBalancerRow]:
    """The rows after the step, as a worker would read them."""
    nb = step["nb"]
    return [_row(row, nb) for row in nb["Load_Balancer"]]


def _row(row: Json, nb: Json) -> LoadBalancerRow:
    label = f"{row['name']}/{row['protocol'] or '-'}"
    hanging = [
        frozenset(n for n, labels in nb[f"{table}.load_balancer"].items() if label in labels)
        for table in ("Logical_Switch", "Logical_Router")
    ]
    checks = [HealthCheckRow(x["vip"], x["options"], x["external_ids"]) for x in row["health_check"]]
    return LoadBalancerRow(
        row["name"],
        row["protocol"],
        row["vips"],
        {k: v if isinstance(v, str) else json.dumps(v) for k, v in row["external_ids"].items()},
        row["options"],
        tuple(row["selection_fields"]),
        row["ip_port_mappings"],
        tuple(checks),
        hanging[0],
        hanging[1],
    )

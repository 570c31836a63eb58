"""A network, a provider and a caller for load balancers that are made on a real database."""

import itertools
import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from roadstead_octavia.call import Answer, Call, Caller, Operation, Parts
from roadstead_octavia.db.port import Row
from roadstead_octavia.errors import ApiError, refuse
from roadstead_octavia.options import Options
from roadstead_octavia.outside.network import NetworkRefused
from roadstead_octavia.resources.loadbalancer import operations
from roadstead_octavia.resources.loadbalancer.wire import RESOURCE
from roadstead_octavia.wire.read import read

PROJECT = "f0000000000000000000000000000001"
TOKEN = "the caller's"
NETWORK, SUBNET, OTHER_SUBNET = (f"{n}0000000-0000-4000-8000-000000000000" for n in "123")
OPTIONS = Options(enabled_provider_drivers={"noop": "x"}, default_provider_driver="noop")

_numbers = itertools.count(1)  # ids are the same in every run, so that the names of tests are too


def an_id() -> str:
    return str(uuid.UUID(int=next(_numbers), version=4))


class Net:
    """What the network has, by kind and id; what it was asked, and the ports that are there."""

    def __init__(self) -> None:
        self.things: dict[tuple[str, str], dict[str, Any]] = {}
        self.asked: list[tuple[str, str, str | None]] = []
        self.ports: dict[str, str] = {}  # port by load balancer
        self.refusal: NetworkRefused | None = None
        self.late = False  # the port is made although there is no answer
        self.stuck = False  # ports cannot be removed
        self.qos = True
        self.free: dict[str, int] = {}
        self.add("networks", NETWORK, subnets=[SUBNET, OTHER_SUBNET])
        for number, subnet in enumerate((SUBNET, OTHER_SUBNET)):
            self.add("subnets", subnet, network_id=NETWORK, cidr=f"192.0.{number}.0/24", ip_version=4)

    def add(self, kind: str, identifier: str, **more: Any) -> str:
        self.things[kind, identifier] = {"id": identifier, **more}
        return identifier

    async def find(
        self, kind: str, identifier: str, *, token: str | None = None, as_service: bool = False
    ) -> Mapping[str, Any] | None:
        self.asked.append((kind, identifier, None if as_service else token))
        return self.things.get((kind, identifier))

    async def has_qos(self) -> bool:
        return self.qos

    async def availability(self, network_id: str) -> Mapping[str, int]:
        return self.free

    async def make_vip_port(
        self,
        load_balancer_id: str,
        project_id: str,
        vip: Row,
        additional: Sequence[Row],
        groups: Sequence[str],
    ) -> tuple[Row, Sequence[Row]]:
        if self.refusal is not None:
            if self.late:
                self.ports[load_balancer_id] = an_id()
            raise self.refusal
        port = vip["port_id"] or self.ports.setdefault(load_balancer_id, an_id())
        filled = [
            {**row, "port_id": port, "ip_address": row["ip_address"] or f"192.0.{n}.9"}
            for n, row in enumerate((vip, *additional))
        ]
        return filled[0], filled[1:]

    async def remove_vip_port(self, load_balancer_id: str, port_id: str | None) -> None:
        if self.stuck:
            raise NetworkRefused(503, "not now")
        self.ports.pop(load_balancer_id, None)


class Driver:
    """A provider.  answers: what it says when asked, an ApiError is raised; refuses: what `check` raises, by method."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "create_vip_port": refuse("ProviderNotImplemented", prov="noop", user_msg="x")
        }
        self.refuses: dict[str, ApiError] = {}
        self.asked: list[tuple[str, Sequence[Any]]] = []
        self.checked: list[tuple[str, Sequence[Any]]] = []

    async def check(self, provider: str, method: str, arguments: Sequence[Any], revision: int = 0) -> None:
        self.checked.append((method, arguments))
        if method in self.refuses:
            raise self.refuses[method]

    async def ask(self, provider: str, method: str, arguments: Sequence[Any]) -> Any:
        self.asked.append((method, arguments))
        found = self.answers.get(method)
        if isinstance(found, ApiError):
            raise found
        return found


class Anybody:
    """A policy that allows everything but some rules."""

    def __init__(self) -> None:
        self.forbidden: set[str] = set()

    def allows(self, call: Any, rule: str, project_id: str | None) -> bool:
        return rule not in self.forbidden

    def enforce(self, call: Any, rule: str, project_id: str | None) -> None:
        if rule in self.forbidden:
            raise refuse("PolicyForbidden")


class World:
    def __init__(self, database: Any, options: Options = OPTIONS) -> None:
        self.database = database
        self.options = options
        self.net, self.driver, self.policy = Net(), Driver(), Anybody()
        self.sent: list[Any] = []

    def call(self, body: Mapping[str, Any] | None = None, *ids: str, **query: str) -> Call:
        parts: Any = Parts(
            database=self.database,
            provider=self.driver,
            network=self.net,
            keys=None,  # type: ignore[arg-type]  # nothing here refers to certificates
            policy=self.policy,
            dispatch=lambda operation, tree, revision: self.sent.append(operation),
        )
        caller = Caller("user", PROJECT, token=TOKEN)
        return Call(caller, self.options, parts, ids=ids, query=tuple(query.items()), body=body or {})

    def read(self, method: Any, body: Mapping[str, Any]) -> Any:
        raw = json.dumps({"loadbalancer": body}).encode()
        return read(RESOURCE, raw, "application/json", method=method, options=self.options)

    async def create(self, **body: Any) -> dict[str, Any]:
        """The load balancer that was made; `vip_subnet_id` unless the body says where else."""
        where = (
            {}
            if any(name.startswith("vip_") and name.endswith("_id") for name in body)
            else {"vip_subnet_id": SUBNET}
        )
        answer = await operations.create(self.call(self.read("POST", {**where, **body})))
        assert answer.status == 201
        assert answer.body is not None
        made: dict[str, Any] = answer.body["loadbalancer"]
        return made

    async def refused(self, **body: Any) -> ApiError:
        """How making it is refused."""
        try:
            await self.create(**body)
        except ApiError as error:
            return error
        raise AssertionError("it was made")

    async def active(self, **body: Any) -> str:
        """The id of a load balancer that is ACTIVE with everything below it."""
        made = await self.create(**body)
        for table in ("load_balancer", "listener", "pool", "member", "health_monitor", "l7policy", "l7rule"):
            text = f"UPDATE {self.database.schema}.{table} SET provisioning_status = 'ACTIVE'"
            await self.database.run(lambda link, _, text=text: link.execute(text))
        return str(made["id"])

    async def do(self, operation: Operation, identifier: str, body: Any = None, **query: str) -> Answer:
        sent = self.read("PUT", body) if body is not None else None
        return await operation(self.call(sent, identifier, **query))

    async def claims(self) -> Sequence[Row]:
        found: Sequence[Row] = await self.database.rows("vip_port_claim", {})
        return found

    async def balancers(self) -> Sequence[Row]:
        found: Sequence[Row] = await self.database.rows("load_balancer", {})
        return found

"""Bad input: whatever comes, the answer is no fault of the service, a refusal is well formed, and nothing was written by it."""

import json
import os
import string
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from requests import Request

from roadstead.testing.servers import PostgresServer
from roadstead_octavia.http.operations import resource_of
from roadstead_octavia.http.routes import ROUTES, Route
from roadstead_octavia.wire.openapi import document

from .client import Reply
from .inside import MINE, SUBNET, THEIRS, Inside, well_formed
from .operations import whole

SOAK = os.environ.get("ROADSTEAD_SOAK") == "1"
SECONDS = 600.0 if SOAK else 45.0  # for all operations together, each kind of test
EXAMPLES = 2000 if SOAK else 40
BY_DESIGN = (501, 503)
pytestmark = pytest.mark.timeout(int(SECONDS) * 2 + 120)

SCHEMA = schemathesis.openapi.from_dict(document())
TAKEN = [route for route in ROUTES if route.takes is not None]
bounded = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=not SOAK,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def inside(postgres_server: PostgresServer, octavia_template: str) -> Iterator[Inside]:
    name = f"octavia_fuzz_{os.getpid()}"
    made = Inside(postgres_server.create_database(name, template=octavia_template))
    yield made
    made.close()


class Known:
    """Ids of a tree in each project, planted again when it was deleted by a request."""

    def __init__(self, inside: Inside) -> None:
        self.inside = inside
        self.ids: dict[str, dict[str, str]] = {}
        self.profiles: dict[str, str] = {}

    def of(self, project: str) -> dict[str, str]:
        ids = self.ids.get(project)
        if ids is None or not self._all_there(ids, project):
            ids = self.ids[project] = self._plant(project)
        return ids

    def _get(self, path: str, project: str) -> Any:
        reply, _ = self.inside.ask("GET", f"/v2/lbaas/{path}", project=project)
        return None if reply.status != 200 else next(iter(reply.body.values()))

    def _all_there(self, ids: dict[str, str], project: str) -> bool:
        rule = self._get(f"l7policies/{ids['l7policy']}/rules/{ids['l7rule']}", project)
        member = self._get(f"pools/{ids['pool']}/members/{ids['member']}", project)
        return rule is not None and member is not None

    def _plant(self, project: str) -> dict[str, str]:
        body = json.dumps({"loadbalancer": whole("known", SUBNET)}).encode()
        reply, _ = self.inside.ask("POST", "/v2/lbaas/loadbalancers", body, project=project)
        assert reply.status == 201, reply.body
        lb = reply.body["loadbalancer"]["id"]
        (listener,) = self._get(f"listeners?loadbalancer_id={lb}", project)
        pool = listener["default_pool_id"]
        policy = listener["l7policies"][0]["id"]
        return {
            "loadbalancer": lb,
            "listener": listener["id"],
            "pool": pool,
            "member": self._get(f"pools/{pool}/members", project)[0]["id"],
            "healthmonitor": self._get(f"healthmonitors?pool_id={pool}", project)[0]["id"],
            "l7policy": policy,
            "l7rule": self._get(f"l7policies/{policy}/rules", project)[0]["id"],
        }

    def profile(self, kind: str, data: str) -> str:
        """A profile of flavors or zones."""
        if kind not in self.profiles:
            body = json.dumps({kind: {"name": "known", "provider_name": "noop", data: "{}"}}).encode()
            path = f"/v2/lbaas/{kind.replace('_', '')}s"
            reply, _ = self.inside.ask("POST", path, body, roles="admin")
            assert reply.status == 201, reply.body
            self.profiles[kind] = reply.body[kind]["id"]
        return self.profiles[kind]

    def path(self, route: Route, project: str) -> str:
        """The route's path with ids of that project's tree."""
        ids = self.of(project)
        values = {"pool_id": ids["pool"], "l7policy_id": ids["l7policy"], "id": ids.get(route.resource, MINE)}
        values |= {"project_id": project, "name": "nova", "provider": "noop"}
        return route.prefixes[0] + route.path.format_map(_Any(values))


class _Any(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "x"


@pytest.fixture(scope="module")
def known(inside: Inside) -> Known:
    return Known(inside)


def judged(said: str, answer: tuple[Reply, list[str]]) -> None:
    reply, wrote = answer
    assert reply.status < 500 or reply.status in BY_DESIGN, (said, reply.status, reply.body)
    if reply.status >= 400:
        assert well_formed(reply), (said, reply.status, reply.headers, reply.body)
        assert wrote == [], (said, reply.status, reply.body, wrote)
        assert reply.headers["x-openstack-request-id"].startswith("req-")


def deadline(parts: int) -> float:
    return time.monotonic() + SECONDS / parts


class Enough(BaseException):
    """Time is up.  No Exception: then it would count as a finding, and a plain return would go on making examples."""


def in_time(run: Callable[[], None]) -> None:
    with suppress(Enough):
        run()


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("route", ROUTES, ids=lambda r: r.operation)
def test_requests_made_from_the_document(inside: Inside, known: Known, route: Route, mode: str) -> None:
    operation = SCHEMA[route.prefixes[0] + route.path][route.method]
    chosen = schemathesis.GenerationMode(mode)
    ends = deadline(2 * len(ROUTES))
    seen: list[int] = []

    @bounded
    @given(
        case=operation.as_strategy(generation_mode=chosen),
        real=st.sampled_from(("mine", "theirs", "no")),
        admin=st.booleans(),
    )
    def run(case: Any, real: str, admin: bool) -> None:
        if time.monotonic() > ends and seen:
            raise Enough
        prepared = Request(**case.as_transport_kwargs(base_url="http://localhost")).prepare()
        where, _, query = (prepared.path_url or "/").partition("?")
        if real != "no":
            where = known.path(route, MINE if real == "mine" else THEIRS)
        body = prepared.body or b""
        assert isinstance(body, str | bytes)
        raw = body.encode() if isinstance(body, str) else body
        kind = prepared.headers.get("Content-Type")
        target = f"{where}?{query}" if query else where
        answer = inside.ask(
            route.method,
            target,
            raw,
            roles="admin" if admin else "member",
            content_type=kind.decode() if isinstance(kind, bytes) else kind,
        )
        seen.append(answer[0].status)
        judged(f"{route.method} {target} {raw[:300]!r}", answer)

    in_time(run)
    assert seen


LONG = "x" * 5000
WRONG: tuple[Any, ...] = (
    *(
        None,
        "",
        " ",
        LONG,
        "\0",
        "a\0b",
        "\ud800",
        "é" * 300,
        0,
        -1,
        2**31,
        2**63,
        2**70,
        -(2**70),
        1.5,
        1e308,
    ),
    *(
        True,
        False,
        [],
        {},
        [None],
        [[]],
        [{}],
        {"x": 1},
        ["\0"],
        {"\0": "\0"},
        "not-an-id",
        "10.0.0.1/99",
        "::1%eth0",
    ),
    *("999.1.1.1", "http://", "%00", "'; DROP TABLE x; --", [LONG] * 50),
)


@pytest.mark.parametrize("route", TAKEN, ids=lambda r: r.operation)
def test_every_field_with_every_kind_of_nonsense(inside: Inside, known: Known, route: Route) -> None:
    """Each field in turn beside an otherwise empty object, and beside a whole one where that is small."""
    resource = resource_of(route.resource)
    form = resource.post if route.takes == "POST" else resource.put
    assert form is not None
    ends = deadline(len(TAKEN))
    asked = 0
    for name in form.fields:
        for value in (*WRONG, *known.of(THEIRS).values()):
            if time.monotonic() > ends and asked and SOAK:
                return
            given = {**_whole(route, known), name: value}
            root: dict[str, Any] = {resource.one: given}
            if route.operation == "member.batch":
                root = {"members": [given]}
            raw = json.dumps(root).encode()
            target = known.path(route, MINE)
            judged(
                f"{route.method} {target} {name}={str(value)[:80]!r}",
                inside.ask(route.method, target, raw, roles="admin"),
            )
            asked += 1
    assert asked >= len(WRONG)


def _whole(route: Route, known: Known) -> dict[str, Any]:
    """What a valid request of that kind holds."""
    if route.takes != "POST" and route.operation != "member.batch":
        return {}
    ids = known.of(MINE)
    bodies: dict[str, dict[str, Any]] = {
        "loadbalancer": {"vip_subnet_id": SUBNET},
        "listener": {"loadbalancer_id": ids["loadbalancer"], "protocol": "TCP", "protocol_port": 7777},
        "pool": {"loadbalancer_id": ids["loadbalancer"], "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"},
        "member": {"address": "192.0.2.99", "protocol_port": 99},
        "healthmonitor": {"pool_id": ids["pool"], "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 2},
        "l7policy": {"listener_id": ids["listener"], "action": "REJECT"},
        "l7rule": {"type": "PATH", "compare_type": "EQUAL_TO", "value": "/x"},
        "flavorprofile": {"name": "x", "provider_name": "noop", "flavor_data": "{}"},
        "flavor": {"name": "x", "flavor_profile_id": known.profile("flavorprofile", "flavor_data")},
        "availability_zone_profile": {"name": "x", "provider_name": "noop", "availability_zone_data": "{}"},
        "availability_zone": {
            "name": "x",
            "availability_zone_profile_id": known.profile(
                "availability_zone_profile", "availability_zone_data"
            ),
        },
    }
    return bodies.get(route.resource, {"name": "x"})


@pytest.mark.parametrize("route", ROUTES, ids=lambda r: r.operation)
def test_ids_of_another_project_open_nothing(inside: Inside, known: Known, route: Route) -> None:
    """A member of one project names the other's objects in every path: nothing is shown, nothing is written."""
    if "{" not in route.path or route.resource in ("provider", "flavor", "availability_zone"):
        pytest.skip("its path names nothing of a project")
    reply, wrote = inside.ask(
        route.method,
        known.path(route, THEIRS),
        json.dumps({resource_of(route.resource).one: _whole(route, known)}).encode() if route.takes else b"",
    )
    assert wrote == []
    if route.function == "list_":
        assert reply.status in (200, 403, 404)
        assert reply.status != 200 or next(iter(reply.body.values())) == []
    else:
        assert reply.status in (400, 403, 404), (reply.status, reply.body)
        assert well_formed(reply)


BODIES = st.one_of(
    st.binary(max_size=200),
    st.sampled_from((b"", b"null", b"[]", b"{}", b"{", b'"x"', b"\xff\xfe{}", b"{" * 5000, b"[" * 100_000)),
    st.builds(lambda depth: b'{"loadbalancer":' * depth + b"1" + b"}" * depth, st.integers(1, 3000)),
    st.just(b'{"loadbalancer": {"name": "' + b"x" * 200_000 + b'"}}'),
    st.text(string.printable, max_size=100).map(str.encode),
)


@pytest.mark.parametrize("route", TAKEN, ids=lambda r: r.operation)
def test_bodies_that_are_nothing(inside: Inside, known: Known, route: Route) -> None:
    ends = deadline(len(TAKEN))

    @bounded
    @given(
        body=BODIES,
        kind=st.sampled_from(
            ("application/json", "application/json; charset=utf-16", "text/xml", "text/plain", None)
        ),
    )
    def run(body: bytes, kind: str | None) -> None:
        if time.monotonic() > ends:
            raise Enough
        target = known.path(route, MINE)
        judged(
            f"{route.method} {target} {body[:80]!r} {kind}",
            inside.ask(route.method, target, body, content_type=kind),
        )

    in_time(run)


QUERIES = st.lists(
    st.tuples(
        st.sampled_from(
            (
                *("limit", "marker", "sort", "sort_key", "sort_dir", "page_reverse", "fields", "tags"),
                *(
                    "not-tags",
                    "name",
                    "id",
                    "admin_state_up",
                    "created_at",
                    "project_id",
                    "x",
                    "\0",
                    "cascade",
                ),
            )
        ),
        st.one_of(
            st.sampled_from(("", "-1", "0", "1e9", "\0", "None", "true", "name:down", "%", LONG, MINE)),
            st.text(max_size=20),
        ),
    ),
    max_size=5,
)


@pytest.mark.parametrize("route", [r for r in ROUTES if r.method == "GET"], ids=lambda r: r.operation)
def test_queries_that_are_nothing(inside: Inside, known: Known, route: Route) -> None:
    ends = deadline(40)

    @bounded
    @given(query=QUERIES)
    def run(query: list[tuple[str, str]]) -> None:
        if time.monotonic() > ends:
            raise Enough
        target = Request("GET", "http://x" + known.path(route, MINE), params=query).prepare().path_url
        judged(f"GET {target}", inside.ask("GET", target, roles="admin"))

    in_time(run)

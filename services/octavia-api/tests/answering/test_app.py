"""One request through the layers: what is refused where, and in which body."""

import json
import logging
from typing import Any

import pytest

from roadstead.store.api import StoreUnavailable
from roadstead.telemetry.metrics import Meters
from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Busy
from roadstead_octavia.errors import not_found, refuse
from roadstead_octavia.http.cors import Cors
from roadstead_octavia.http.faults import Unauthenticated
from roadstead_octavia.http.identity import IdentityDown
from roadstead_octavia.http.operations import NoSuchOperation, load_what_is_there
from roadstead_octavia.http.routes import ROUTES

from .client import ADMIN, LB, MEMBER, OTHER, POOL, PROJECT, READER, STRANGER, Rows, an_app, ask
from .rows import a_load_balancer, a_member, a_pool

LIST = "/v2/lbaas/loadbalancers"


def raising(error: Exception) -> Any:
    async def operation(call: Call) -> Answer:
        raise error

    return {"loadbalancer.list": operation}


class Seen:
    """An operation that remembers its call."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer or Answer(200, {"ok": True})
        self.call: Call | None = None

    async def __call__(self, call: Call) -> Answer:
        self.call = call
        return self.answer


# ---------------------------------------------------------------- refusals on the way


async def test_without_a_token_the_answer_is_401_in_the_identity_services_words() -> None:
    app = an_app(who=Unauthenticated('Keystone uri="http://keystone/v3"'))
    got = await ask(app, "GET", LIST)
    assert got.status == 401
    assert got.headers["www-authenticate"] == 'Keystone uri="http://keystone/v3"'
    assert got.headers["content-type"] == "application/json"
    message = "The request you have made requires authentication."
    assert got.body == {"error": {"code": 401, "title": "Unauthorized", "message": message}}


async def test_an_identity_service_that_is_down_is_503_and_not_401() -> None:
    got = await ask(an_app(who=IdentityDown("no answer within 10 s")), "GET", LIST)
    assert (got.status, got.headers["retry-after"]) == (503, "2")
    assert "no answer" not in got.text  # its text is for the log


@pytest.mark.parametrize("path", ["/", "/healthcheck", "/load-balancer/healthcheck", "/load-balancer/"])
async def test_versions_and_health_need_no_token(path: str) -> None:
    app = an_app(who=Unauthenticated("x"), options={"healthcheck_enabled": True})
    assert (await ask(app, "GET", path)).status in (200, 204, 404)


async def test_the_token_comes_before_the_route_and_before_what_the_client_reads() -> None:
    app = an_app(who=Unauthenticated("x"))
    assert (await ask(app, "GET", "/v2/nonsense", {"accept": "text/html"})).status == 401


@pytest.mark.parametrize("size", [114_689, 10**30])
async def test_a_body_that_says_it_is_too_large_is_413_in_json_b10(size: int) -> None:
    app = an_app(who=Unauthenticated("x"))
    got = await ask(app, "POST", LIST, {"content-length": str(size)}, b"{}")
    assert (got.status, got.body["code"], got.body["title"]) == (413, 413, "Request Entity Too Large")
    assert got.body["description"] == "Request is too large. Larger than max_request_body_size (114688)."


async def test_a_body_that_turns_out_too_large_is_413_too() -> None:
    app = an_app(operations={"loadbalancer.create": Seen()})
    got = await ask(app, "POST", LIST, {"content-type": "application/json"}, b" " * 114_689, chunk=1000)
    assert got.status == 413
    fits = await ask(app, "POST", LIST, {"content-type": "application/json"}, b" " * 114_688)
    assert fits.status == 400  # it is read, and is no JSON


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("limit=x", "Supplied pagination limit 'x' is not valid."),
        ("limit=1&limit=2", "Supplied pagination limit '1,2' is not valid."),  # A17
        ("sort=name:sideways", "Supplied sort direction 'sideways' is not valid."),
        ("sort=name:asc:desc", "Supplied sort key 'name:asc:desc' is not valid."),
        ("sort=name&sort=id", "Supplied sort key 'name,id' is not valid."),  # A17
        ("sort_key=name&sort_dir=up", "Supplied sort direction 'up' is not valid."),
        ("marker=a&marker=b", "Supplied pagination marker 'a,b' is not valid."),  # A18
    ],
)
async def test_every_get_keeps_to_the_syntax_of_paging(query: str, text: str) -> None:
    for path in (LIST, f"{LIST}/{LB}", "/v2/nonsense"):
        got = await ask(an_app(), "GET", f"{path}?{query}")
        assert got.status == 400
        assert got.body == {"code": 400, "title": "Bad Request", "description": text}


async def test_too_many_arguments_are_400() -> None:
    got = await ask(an_app(), "GET", f"{LIST}?{'&'.join(f'a{n}=1' for n in range(1001))}")
    assert (got.status, got.body["description"]) == (400, "Too many arguments.")


async def test_an_argument_that_a_call_does_not_know_is_400_before_its_body_is_read() -> None:
    app = an_app(operations={"loadbalancer.create": Seen(), "loadbalancer.delete": Seen(Answer(204))})
    got = await ask(app, "POST", f"{LIST}?nonsense=1", {"content-type": "text/plain"}, b"x")
    assert (got.status, got.body["faultstring"]) == (400, 'Unknown argument: "nonsense"')
    assert (await ask(app, "DELETE", f"{LIST}/{LB}?cascade=true")).status == 204
    assert (await ask(app, "DELETE", f"{LIST}/{LB}?cascade=true&x=")).status == 400


async def test_the_method_argument_is_ignored_b7() -> None:
    app = an_app(operations={"loadbalancer.delete": Seen(Answer(204))})
    assert (await ask(app, "DELETE", f"{LIST}/{LB}?_method=get")).status == 204


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_body_where_none_belongs_is_ignored_b8(method: str) -> None:
    seen = Seen()
    app = an_app(operations={"loadbalancer.show": seen, "loadbalancer.delete": seen})
    got = await ask(app, method, f"{LIST}/{LB}", {"content-type": "text/nonsense"}, b"\xff{")
    assert got.status == 200
    assert seen.call is not None
    assert (seen.call.ids, dict(seen.call.body)) == ((LB,), {})


async def test_a_body_of_failover_is_ignored_a22() -> None:
    app = an_app(operations={"loadbalancer.failover": Seen(Answer(202))})
    got = await ask(app, "PUT", f"{LIST}/{LB}/failover", body={"x": 1})
    assert (got.status, got.raw, "content-type" in got.headers) == (202, b"", False)


async def test_head_has_the_headers_alone() -> None:
    got = await ask(an_app(), "HEAD", LIST)
    assert (got.status, got.raw, got.headers["allow"]) == (405, b"", "DELETE, GET, POST, PUT")


# ---------------------------------------------------------------- the operation


async def test_a_call_has_what_the_request_said() -> None:
    seen = Seen(Answer(201, {"loadbalancer": {}}))
    app = an_app(operations={"loadbalancer.create": seen}, who=READER)
    got = await ask(
        app, "POST", "/v2.0/loadbalancers/", body={"loadbalancer": {"name": "a", "vip_subnet_id": LB}}
    )
    assert (got.status, got.body) == (201, {"loadbalancer": {}})
    assert seen.call is not None
    assert (seen.call.body["name"], seen.call.body["vip_subnet_id"]) == ("a", LB)
    assert seen.call.caller is READER
    assert seen.call.url == "http://localhost/v2.0/loadbalancers/"
    assert got.headers["x-openstack-request-id"] == seen.call.request_id


async def test_refusals_of_an_operation_are_faults_in_json_and_in_xml() -> None:
    app = an_app(operations=raising(not_found("Load Balancer", "<a>")))
    got = await ask(app, "GET", LIST)
    text = "Load Balancer <a> not found."
    assert (got.status, got.body) == (404, {"faultcode": "Client", "faultstring": text, "debuginfo": None})
    got = await ask(app, "GET", f"{LIST}.xml")
    assert got.headers["content-type"] == "application/xml; charset=UTF-8"
    assert got.text == (
        "<error><faultcode>Client</faultcode><faultstring>Load Balancer &lt;a&gt; not found.</faultstring>"
        "<debuginfo /></error>"
    )


async def test_a_fault_of_ours_shows_nothing_but_its_number_a25(caplog: pytest.LogCaptureFixture) -> None:
    app = an_app(operations=raising(RuntimeError("SELECT secret FROM tokens")))
    with caplog.at_level(logging.ERROR):
        got = await ask(app, "GET", LIST)
    assert (got.status, got.body["faultcode"]) == (500, "Server")
    assert got.headers["x-openstack-request-id"] in got.body["faultstring"]
    assert "secret" not in got.text


async def test_a_fault_of_ours_outside_of_operations_is_no_different() -> None:
    got = await ask(an_app(who=RuntimeError("secret")), "GET", LIST)
    assert got.status == 500
    assert got.headers["x-openstack-request-id"] in got.body["faultstring"]
    assert "secret" not in got.text


@pytest.mark.parametrize("error", [Busy(), StoreUnavailable("connection to 10.0.0.1 refused")])
async def test_a_database_that_is_busy_or_away_is_503(error: Exception) -> None:
    got = await ask(an_app(operations=raising(error)), "GET", LIST)
    assert (got.status, "10.0.0.1" in got.text) == (503, False)


async def test_a_refusal_brings_its_headers() -> None:
    error = refuse("ProjectBusy")
    error.headers = (("Retry-After", "7"),)
    got = await ask(an_app(operations=raising(error)), "GET", LIST)
    assert (got.status, got.headers["retry-after"]) == (503, "7")


async def test_a_start_without_all_operations_is_refused_and_names_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from roadstead_octavia.http import operations

    monkeypatch.setattr(operations, "_function", lambda route: None)
    with pytest.raises(NoSuchOperation, match=r"loadbalancer\.create"):
        operations.load()


def test_lists_and_shows_are_answered_for_every_resource() -> None:
    there = load_what_is_there()
    wanted = {r.operation for r in ROUTES if r.function in ("list_", "show")}
    assert wanted <= set(there)


# ---------------------------------------------------------------- nested paths


async def test_a_path_through_a_row_that_is_not_there_is_404_of_the_router_b4() -> None:
    rows = Rows({"member": [a_member()]})
    app = an_app(rows, operations={**load_what_is_there(), "member.create": Seen()})
    for method, path, body in (
        ("GET", f"/v2/lbaas/pools/{POOL}/members", None),
        ("GET", f"/v2/lbaas/pools/{POOL}/members/{OTHER}", None),
        ("POST", f"/v2/lbaas/pools/{POOL}/members", {"nonsense": 1}),
    ):
        got = await ask(app, method, path, body=body)
        assert got.status == 404
        assert got.body == {"code": 404, "title": "Not Found", "description": f"Pool {POOL} not found."}
    got = await ask(an_app(Rows()), "GET", "/v2/lbaas/l7policies/x/rules")
    assert got.body["description"] == "L7Policy x not found."


async def test_a_refusal_below_a_row_that_is_there_stays_what_it_is() -> None:
    rows = Rows({"pool": [a_pool()]})
    got = await ask(an_app(rows), "GET", f"/v2/lbaas/pools/{POOL}/members/{MEMBER}")
    assert (got.status, got.body["faultstring"]) == (404, f"Member {MEMBER} not found.")


async def test_the_row_above_is_not_asked_for_when_nothing_is_refused() -> None:
    rows = Rows({"pool": [a_pool()], "member": [a_member()]})
    got = await ask(an_app(rows), "GET", f"/v2/lbaas/pools/{POOL}/members/{MEMBER}")
    assert (got.status, rows.looked_up, len(rows.pages)) == (200, [], 1)


# ---------------------------------------------------------------- lists and shows


async def test_a_list_is_everybodys_for_an_administrator_and_ones_own_for_others() -> None:
    rows = Rows({"load_balancer": [a_load_balancer(), a_load_balancer(OTHER, project_id=OTHER)]})
    shown = {}
    for who in (ADMIN, READER, STRANGER):
        got = await ask(an_app(rows, who), "GET", LIST)
        shown[who.project_id, who.is_admin] = {lb["id"] for lb in got.body["loadbalancers"]}
    assert shown == {(PROJECT, True): {LB, OTHER}, (PROJECT, False): {LB}, (OTHER, False): {OTHER}}


async def test_a_project_that_is_not_ones_own_is_403_in_a_list() -> None:
    got = await ask(an_app(who=READER), "GET", f"{LIST}?project_id={OTHER}")
    assert (got.status, got.body["faultstring"]) == (
        403,
        "Policy does not allow this request to be performed.",
    )
    rows = Rows()
    assert (await ask(an_app(rows, ADMIN), "GET", f"{LIST}?project_id={OTHER}")).status == 200
    assert rows.pages[0].project_id == OTHER


async def test_a_show_is_404_for_what_is_not_there_and_403_for_what_is_not_ones_own() -> None:
    rows = Rows({"load_balancer": [a_load_balancer()]})
    assert (await ask(an_app(rows, STRANGER), "GET", f"{LIST}/{OTHER}")).status == 404
    assert (await ask(an_app(rows, STRANGER), "GET", f"{LIST}/{LB}")).status == 403
    got = await ask(an_app(rows, READER), "GET", f"{LIST}/{LB}?fields=id&fields=created_at&fields=nonsense")
    assert got.body == {"loadbalancer": {"id": LB, "created_at": "2026-01-01T00:00:00"}}


async def test_what_only_administrators_manage_tells_others_nothing() -> None:
    for name in ("flavorprofiles", "availabilityzoneprofiles"):
        assert (await ask(an_app(who=READER), "GET", f"/v2/lbaas/{name}/{LB}")).status == 403
        assert (await ask(an_app(who=ADMIN), "GET", f"/v2/lbaas/{name}/{LB}")).status == 404


async def test_placeholder_rows_are_never_shown() -> None:
    nil = "00000000-0000-0000-0000-000000000000"
    rows = Rows({"flavor": [{"id": nil, "name": "x"}]})
    assert (await ask(an_app(rows), "GET", f"/v2/lbaas/flavors/{nil}")).status == 404


async def test_oc_01_times_have_neither_zone_nor_fraction() -> None:
    rows = Rows({"load_balancer": [a_load_balancer()], "pool": [a_pool()]})
    for path in (LIST, f"{LIST}/{LB}", "/v2/lbaas/pools", f"/v2/lbaas/pools/{POOL}"):
        got = await ask(an_app(rows), "GET", path)
        found = json.dumps(got.body)
        assert '"created_at": "2026-01-01T00:00:00"' in found
        assert '"updated_at": null' in found


# ---------------------------------------------------------------- around


async def test_links_and_versions_begin_with_what_the_operator_says() -> None:
    app = an_app(options={"api_base_uri": "https://api.example.org/load-balancer/"})
    got = await ask(app, "GET", "/")
    assert got.body["versions"][0]["links"][0]["href"] == "https://api.example.org/load-balancer/v2"


async def test_a_prefix_is_taken_off_and_put_before_links() -> None:
    rows = Rows({"load_balancer": [a_load_balancer(), a_load_balancer(OTHER)]})
    app = an_app(rows, prefix="/load-balancer")
    got = await ask(app, "GET", "/load-balancer/v2/lbaas/loadbalancers?limit=1")
    href = got.body["loadbalancers_links"][0]["href"]
    assert href.startswith("http://localhost/load-balancer/v2/lbaas/loadbalancers?limit=1&marker=")
    assert (await ask(app, "GET", LIST)).status == 200  # also without
    assert (await ask(app, "GET", "/load-balancerx/v2")).status == 404
    got = await ask(app, "GET", "/load-balancer")
    assert got.body["versions"][0]["links"][0]["href"] == "http://localhost/load-balancer/v2"


@pytest.mark.parametrize("path", ["/v2", "/v2/", "/v2.0", "/v2/lbaas", "/v2.0/lbaas/", "/v2/octavia"])
async def test_the_versions_roots_tell_their_name(path: str) -> None:
    assert (await ask(an_app(), "GET", path)).body == "v2"
    assert (await ask(an_app(), "POST", path)).status == 405


async def test_options_is_200_and_tells_browsers_of_known_origins_alone() -> None:
    app = an_app(who=Unauthenticated("x"), cors=Cors(("https://ui.example.org",)))
    wish = {"access-control-request-method": "PUT", "access-control-request-headers": "X-Auth-Token"}
    got = await ask(app, "OPTIONS", LIST, {"origin": "https://ui.example.org", **wish})
    assert (got.status, got.raw) == (200, b"")
    assert got.headers["access-control-allow-methods"] == "GET,PUT,POST,DELETE"
    assert got.headers["access-control-allow-origin"] == "https://ui.example.org"
    for headers in (
        {"origin": "https://evil.example.org", **wish},
        {"origin": "https://ui.example.org", **wish, "access-control-request-method": "PATCH"},
        {"origin": "https://ui.example.org", **wish, "access-control-request-headers": "X-Roles"},
        {},
    ):
        got = await ask(app, "OPTIONS", LIST, headers)
        assert (got.status, "access-control-allow-methods" in got.headers) == (200, False)
    got = await ask(
        an_app(cors=Cors(("https://ui.example.org",))), "GET", LIST, {"origin": "https://ui.example.org"}
    )
    assert got.headers["access-control-allow-origin"] == "https://ui.example.org"
    assert got.headers["vary"] == "Origin"


async def test_one_count_a_request_under_a_name_without_ids() -> None:
    meters = Meters()
    app = an_app(Rows({"load_balancer": [a_load_balancer()]}), meters=meters)
    await ask(app, "GET", f"{LIST}/{LB}")
    await ask(app, "GET", f"{LIST}/{OTHER}")
    await ask(app, "GET", "/v2/nonsense")
    counted = {
        (subject, status): meters.value("roadstead_requests_total", subject=subject, outcome=status)
        for subject, status in (
            ("loadbalancer.show", "200"),
            ("loadbalancer.show", "404"),
            ("unrouted", "404"),
        )
    }
    assert set(counted.values()) == {1.0}


async def test_text_that_no_header_can_hold_does_not_break_the_answer() -> None:
    got = await ask(an_app(), "GET", "/v2/lbaas/loadbalancers?limit=%0d%0aSet-Cookie:x")
    assert got.status == 400
    assert "set-cookie" not in got.headers

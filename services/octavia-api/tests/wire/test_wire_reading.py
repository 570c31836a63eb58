"""Texts that clients read when a body is refused, and what a body means when it is not."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from roadstead_octavia.errors import ApiError
from roadstead_octavia.options import Options
from roadstead_octavia.resources.member.wire import read_batch
from roadstead_octavia.wire.read import DEPARTURES, NoBody, put_values, read

from .recorded import RESOURCES

OPTIONS = Options()
ID = "6a0a707c-45ef-4758-b533-e55adddba8ce"
LISTENER = {"protocol": "HTTP", "protocol_port": 80, "loadbalancer_id": ID}
POOL = {"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN", "loadbalancer_id": ID}
MEMBER = {"address": "192.0.2.1", "protocol_port": 80}
MONITOR = {"type": "TCP", "delay": 1, "timeout": 1, "max_retries": 1, "pool_id": ID}
POLICY = {"action": "REJECT", "listener_id": ID}


def sent(name: str, values: Any, method: str = "POST", content_type: str | None = "application/json") -> Any:
    body = json.dumps({RESOURCES[name].one: values}).encode()
    return raw(name, body, method, content_type)


def raw(name: str, body: bytes, method: str = "POST", content_type: str | None = "application/json") -> Any:
    verb: Literal["POST", "PUT"] = "POST" if method == "POST" else "PUT"
    return read(RESOURCES[name], body, content_type, method=verb, options=OPTIONS)


def refusal(name: str, body: Any, method: str = "POST", content_type: str | None = "application/json") -> str:
    """The text of the 400 that the body is refused with."""
    document = body if isinstance(body, bytes) else json.dumps({RESOURCES[name].one: body}).encode()
    with pytest.raises(ApiError) as caught:
        dict(raw(name, document, method, content_type))
    assert caught.value.status == 400
    return caught.value.text


def field(name: str, value: Any, reason: str) -> str:
    return f"Invalid input for field/attribute {name}. Value: '{value}'. {reason}"


def test_a_body_of_a_type_that_is_not_read_is_415_with_the_type_as_sent() -> None:
    with pytest.raises(ApiError) as caught:
        raw("pool", b"<a/>", content_type="application/xml; charset=utf-8")
    assert (caught.value.status, caught.value.text) == (415, "Unknown mimetype: application/xml")


def test_a_put_without_a_type_is_415() -> None:
    with pytest.raises(ApiError) as caught:
        raw("pool", b"{}", "PUT", None)
    assert (caught.value.status, caught.value.text) == (415, "Unknown mimetype: ")


def test_a_post_without_a_type_is_looked_at_as_a_form() -> None:
    assert refusal("pool", b"{}", content_type=None) == 'Unknown argument: "{}"'


def test_no_body_names_the_argument_whatever_the_type() -> None:
    assert refusal("pool", b"", content_type="image/png") == 'Missing argument: "pool_"'


@pytest.mark.parametrize("body", [b'{"a": ', b"", b"\xff\xfe", b"[" * 100_000, b"{'a': 1}"])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    wanted = "Request is not in valid JSON format" if body else 'Missing argument: "pool_"'
    assert refusal("pool", body) == wanted


def test_unknown_attributes_are_named_with_where_they_stand() -> None:
    assert refusal("pool", b'{"name": "x"}') == "Unknown attribute for argument pool_: name"
    assert refusal("pool", {"nonsense": 1}) == "Unknown attribute for argument pool_.pool: nonsense"
    assert refusal("pool", {"a": 1, "b": 2, **POOL}) == "Unknown attributes for argument pool_.pool: a, b"
    pool = {"members": [{**MEMBER, "x": 1}]}
    body = {"listeners": [{"protocol": "HTTP", "protocol_port": 80, "default_pool": pool}]}
    assert (
        refusal("loadbalancer", body)
        == "Unknown attribute for argument load_balancer.loadbalancer.listeners.default_pool.members: x"
    )


def test_a_missing_attribute_is_refused_in_the_order_of_the_description() -> None:
    assert refusal("listener", {}) == field("protocol", None, "Mandatory field missing.")
    assert refusal("listener", {"protocol": "HTTP", "tags": 5}) == field(
        "protocol_port", None, "Mandatory field missing."
    )
    assert refusal("listener", {"name": 5}) == field("name", 5, "Value should be string")


@pytest.mark.parametrize(
    ("name", "values", "wanted"),
    [
        ("listener", {"name": "n" * 256}, ("name", "n" * 256, "Value should have a maximum character requirement of 255")),
        ("member", {"protocol_port": 0}, ("protocol_port", 0, "Value should be greater or equal to 1")),
        ("member", {"protocol_port": "65536"}, ("protocol_port", 65536, "Value should be lower or equal to 65535")),
        ("member", {"subnet_id": "x"}, ("subnet_id", "x", "Value should be UUID format")),
        ("member", {"address": "192.0.2.01"}, ("address", "192.0.2.01", "Value should be IPv4 or IPv6 format")),
        ("member", {"address": "fe80::1%eth0"}, ("address", "fe80::1%eth0", "Value should be IPv4 or IPv6 format")),
        ("listener", {"allowed_cidrs": ["10.0.0.0/33"]}, ("allowed_cidrs", ["10.0.0.0/33"], "Value should be IPv4 or IPv6 CIDR format")),
        ("listener", {"alpn_protocols": ["h2", "h3"]}, ("alpn_protocols", ["h2", "h3"], "Value should be a valid ALPN protocol ID")),
        ("listener", {"insert_headers": {"a": 1}}, ("insert_headers", {"a": 1}, "Value should be string")),
        ("listener", {"protocol": "PROXY"}, ("protocol", "PROXY", "Value should be one of: HTTP, HTTPS, PROMETHEUS, SCTP, TCP, TERMINATED_HTTPS, UDP")),
        ("healthmonitor", {"domain_name": ""}, ("domain_name", "", "Value should have a minimum character requirement of 1")),
        ("healthmonitor", {"expected_codes": "20"}, ("expected_codes", "20", r"Value should match the pattern ^(\d{3}(\s*,\s*\d{3})*)$|^(\d{3}-\d{3})$")),
        ("healthmonitor", {"http_version": 2}, ("http_version", 2.0, "Value should be one of: 1.0, 1.1")),
        ("healthmonitor", {"url_path": "x"}, ("url_path", "x", "Value must be a valid URL Path string")),
        ("l7policy", {"redirect_url": "ftp://a"}, ("redirect_url", "ftp://a", "Value must be a valid URL string")),
        ("l7policy", {"redirect_http_code": 304}, ("redirect_http_code", 304, "Value should be one of: 301, 302, 303, 307, 308")),
        ("quota", {"pool": -2}, ("pool", -2, "Value should be greater or equal to -1")),
        ("pool", {"session_persistence": {"type": "x"}}, ("type", "x", "Value should be one of: APP_COOKIE, HTTP_COOKIE, SOURCE_IP")),
        ("pool", {"tenant_id": "p" * 37}, ("project_id", "p" * 37, "Value should have a maximum character requirement of 36")),
    ],
)  # fmt: skip
def test_a_wrong_value_is_shown_with_the_reason(name: str, values: Any, wanted: tuple[str, Any, str]) -> None:
    whole: dict[str, dict[str, Any]] = {
        "listener": LISTENER,
        "pool": POOL,
        "member": MEMBER,
        "healthmonitor": MONITOR,
        "l7policy": POLICY,
    }
    method = "PUT" if name == "quota" else "POST"
    assert refusal(name, {**whole.get(name, {}), **values}, method) == field(*wanted)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"admin_state_up": "maybe"}, "Value not an unambiguous boolean: maybe"),
        ({"admin_state_up": "TRUE"}, "Value not an unambiguous boolean: TRUE"),
        ({"admin_state_up": 1.0}, "Value not an unambiguous boolean: 1.0"),
        ({"tags": "blue"}, "Value not a valid list: blue"),
        ({"insert_headers": []}, "Value not a valid dict: []"),
        ({"connection_limit": "x"}, "invalid literal for int() with base 10: 'x'"),
        ({"connection_limit": 81.5}, "invalid literal for int() with base 10: '81.5'"),
        ({"connection_limit": True}, "invalid literal for int() with base 10: 'True'"),
        ({"connection_limit": [1]}, "invalid literal for int() with base 10: '[1]'"),
    ],
)
def test_a_value_of_the_wrong_type_is_shown_with_the_whole_body(values: Any, reason: str) -> None:
    body = {"listener": {**LISTENER, **values}}
    assert refusal("listener", body["listener"]) == field("listener_", body, reason)


def test_lenient_numbers_and_booleans_are_read() -> None:
    values = sent(
        "member", {**MEMBER, "protocol_port": "80", "weight": 2.0, "backup": "yes", "admin_state_up": 0}
    )
    assert (values["protocol_port"], values["weight"], values["backup"], values["admin_state_up"]) == (
        80,
        2,
        True,
        False,
    )
    values = sent("healthmonitor", {**MONITOR, "http_version": "1.1"})
    assert values["http_version"] == 1.1


def test_values_are_stored_in_one_form() -> None:
    values = sent(
        "listener",
        {
            **LISTENER,
            "loadbalancer_id": ID.upper().replace("-", ""),
            "allowed_cidrs": ["10.0.0.1/8", "192.0.2.1"],
        },
    )
    assert values["loadbalancer_id"] == ID
    assert values["allowed_cidrs"] == ["10.0.0.0/8", "192.0.2.1/32"]


def test_defaults_are_filled_in_and_absent_attributes_stay_absent() -> None:
    assert sent("member", MEMBER) == {
        **MEMBER,
        "admin_state_up": True,
        "weight": 1,
        "backup": False,
        "monitor_port": None,
        "monitor_address": None,
        "request_sriov": False,
    }
    assert sent("loadbalancer", {}) == {
        "admin_state_up": True,
        "additional_vips": [],
        "listeners": [],
        "pools": [],
    }


def test_defaults_are_not_shared_between_requests() -> None:
    sent("loadbalancer", {})["listeners"].append(1)
    assert sent("loadbalancer", {})["listeners"] == []


def test_the_older_name_of_the_project_counts_over_the_newer() -> None:
    assert sent("pool", {**POOL, "tenant_id": "old"})["project_id"] == "old"
    values = sent("pool", {**POOL, "tenant_id": "old", "project_id": "new"})
    assert values["project_id"] == "old"
    assert "tenant_id" not in values


def test_a_graph_is_read_to_its_leaves() -> None:
    values = sent(
        "loadbalancer",
        {
            "listeners": [
                {
                    "protocol": "HTTP",
                    "protocol_port": "80",
                    "l7policies": [{"action": "REDIRECT_TO_POOL", "redirect_pool": {"name": "p"}}],
                    "default_pool": {
                        "name": "q",
                        "healthmonitor": {**{k: v for k, v in MONITOR.items() if k != "pool_id"}},
                    },
                }
            ]
        },
    )
    [listener] = values["listeners"]
    assert listener["protocol_port"] == 80
    assert listener["default_pool"]["healthmonitor"]["max_retries_down"] == 3
    assert listener["l7policies"][0]["redirect_pool"] == {
        "name": "p",
        "admin_state_up": True,
        "tls_enabled": False,
    }
    assert listener["l7policies"][0]["position"] == 2**31 - 1


# Departures: 4xx where the original failed, and null where it made no sense of it.


@pytest.mark.parametrize("body", [b"{}", b"null", b'{"pool": null}'])
def test_a1_a2_a_body_without_its_root_object_is_400(body: bytes) -> None:
    assert refusal("pool", body) == "Validation failure: No pool object supplied."


def test_a1_a_put_without_its_root_object_is_refused_when_it_is_looked_into() -> None:
    body = raw("listener", b"{}", "PUT")
    assert isinstance(body, NoBody)
    for look in (
        dict,
        len,
        list,
        lambda it: put_values(RESOURCES["listener"], it, OPTIONS),
        lambda it: "name" in it,
    ):
        with pytest.raises(ApiError, match="No listener object supplied"):
            look(body)


def test_an_empty_root_object_is_a_body() -> None:
    assert dict(raw("listener", b'{"listener": {}}', "PUT")) == {}


@pytest.mark.parametrize("value", [[], "x", 5, True])
def test_a3_what_is_no_object_is_400(value: Any) -> None:
    assert refusal("pool", value) == field("pool", value, "Value should be an object")
    assert refusal("pool", json.dumps(value).encode()) == field("pool_", value, "Value should be an object")
    assert refusal("pool", {**POOL, "session_persistence": value}) == field(
        "session_persistence", value, "Value should be an object"
    )


@pytest.mark.parametrize(
    ("name", "method", "whole", "attribute"),
    [
        ("pool", "POST", POOL, "protocol"),
        ("pool", "POST", POOL, "lb_algorithm"),
        ("pool", "PUT", {}, "lb_algorithm"),
        ("pool", "PUT", {}, "tls_enabled"),
        ("member", "POST", MEMBER, "address"),
        ("member", "POST", MEMBER, "protocol_port"),
        ("member", "POST", MEMBER, "backup"),
        ("healthmonitor", "POST", MONITOR, "max_retries_down"),
        ("flavor", "POST", {"name": "f", "flavor_profile_id": ID}, "enabled"),
        ("flavor", "PUT", {}, "enabled"),
        ("flavor", "POST", {"name": "f"}, "flavor_profile_id"),
        ("availability_zone", "POST", {"availability_zone_profile_id": ID}, "name"),
        ("availability_zone", "POST", {"name": "z"}, "availability_zone_profile_id"),
        ("availability_zone", "PUT", {}, "enabled"),
    ],
)
def test_a5_a7_null_for_what_cannot_be_null_is_400(
    name: str, method: str, whole: Any, attribute: str
) -> None:
    assert refusal(name, {**whole, attribute: None}, method) == field(
        attribute, None, "Value should not be null"
    )


def test_a8_null_in_a_list_is_400_and_null_for_a_list_is_empty() -> None:
    assert refusal("loadbalancer", {"vip_sg_ids": [None]}) == field(
        "vip_sg_ids", [None], "Value should not be null"
    )
    assert sent("loadbalancer", {"additional_vips": None, "pools": None})["additional_vips"] == []


@pytest.mark.parametrize(
    ("name", "whole", "attribute", "value"),
    [
        ("pool", POOL, "members", [MEMBER]),
        ("pool", POOL, "healthmonitor", {"type": "HTTP"}),
        ("listener", LISTENER, "default_pool", {"name": "x"}),
        ("listener", LISTENER, "l7policies", [{"action": "REJECT"}]),
        ("l7policy", POLICY, "rules", [{"type": "PATH"}]),
    ],
)
def test_a9_children_are_created_one_by_one_outside_of_graphs(
    name: str, whole: Any, attribute: str, value: Any
) -> None:
    resource = RESOURCES[name]
    assert refusal(name, {**whole, attribute: value}) == (
        f"Unknown attribute for argument {resource.argument}.{resource.one}: {attribute}"
    )
    for nothing in (None, type(value)()):
        assert not sent(name, {**whole, attribute: nothing}).get(attribute)


def test_a12_a_tag_that_is_sent_twice_counts_once() -> None:
    assert sent("pool", {**POOL, "tags": ["b", "a", "b"]})["tags"] == ["b", "a"]


def test_a11_a_cidr_that_is_sent_twice_counts_once() -> None:
    assert sent("listener", {"allowed_cidrs": ["10.0.0.0/8", "10.1.0.0/8"]}, "PUT")["allowed_cidrs"] == [
        "10.0.0.0/8"
    ]


def test_c16_c17_c18_c19_null_for_what_has_a_default_counts_as_not_sent() -> None:
    assert "provider" not in sent("loadbalancer", {"provider": None})
    assert "flavor_id" not in sent("loadbalancer", {"flavor_id": None, "availability_zone": None})
    values = sent("listener", {**LISTENER, "client_authentication": None, "connection_limit": None})
    assert (values["client_authentication"], values["connection_limit"]) == ("NONE", -1)
    assert sent("member", {**MEMBER, "weight": None})["weight"] == 1


def test_numbers_that_no_column_holds_are_refused() -> None:
    body = {**LISTENER, "connection_limit": 2**31}
    assert refusal("listener", body) == field(
        "connection_limit", 2**31, f"Value should be lower or equal to {2**31 - 1}"
    )
    assert "should be lower" in refusal(
        "pool", {**POOL, "session_persistence": {"type": "SOURCE_IP", "persistence_timeout": 1e300}}
    )


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_cannot_be_stored_is_refused_in_a_text_that_can_be_sent(text: str) -> None:
    found = refusal("pool", {**POOL, "name": text})
    assert found.endswith("Value should not contain NUL or unpaired surrogate characters")
    found.encode()


def test_oc_02_a_batch_needs_its_members() -> None:
    for body in (b"{}", b'{"members": null}', b"null"):
        with pytest.raises(ApiError) as caught:
            read_batch(body, "application/json", OPTIONS)
        assert caught.value.status == 400
        assert "field/attribute members" in caught.value.text
    assert read_batch(b'{"members": []}', "application/json", OPTIONS) == {"members": []}
    [member] = read_batch(json.dumps({"members": [MEMBER]}).encode(), "application/json", OPTIONS)["members"]
    assert member["weight"] == 1


def test_every_departure_of_reading_is_a_line_of_the_list() -> None:
    listed = (Path(__file__).resolve().parents[4] / "docs" / "octavia-departures.md").read_text()
    for identifier, text in DEPARTURES.items():
        line = next(line for line in listed.splitlines() if line.startswith(f"| {identifier} |"))
        assert text in line


# Null on PUT.


def test_null_on_put_means_what_the_attribute_says() -> None:
    listener = RESOURCES["listener"]
    body = dict.fromkeys(listener.put.fields if listener.put else (), None)
    values = put_values(listener, body, OPTIONS)
    assert "tags" not in values
    assert values["connection_limit"] == -1
    assert values["admin_state_up"] is False
    assert values["sni_container_refs"] == []
    assert values["timeout_client_data"] == OPTIONS.timeout_client_data
    assert values["tls_versions"] == list(OPTIONS.default_listener_tls_versions)
    assert values["insert_headers"] is None


def test_put_keeps_what_was_sent_and_fills_nothing_in() -> None:
    body = sent("member", {"name": "x", "weight": None}, "PUT")
    assert body == {"name": "x", "weight": None}
    assert put_values(RESOURCES["member"], body, OPTIONS) == {"name": "x", "weight": 1}


def test_a_session_persistence_that_is_set_anew_forgets_the_old_cookie() -> None:
    body = sent("pool", {"session_persistence": {"type": "SOURCE_IP"}}, "PUT")
    assert body["session_persistence"] == {
        "type": "SOURCE_IP",
        "cookie_name": None,
        "persistence_timeout": None,
        "persistence_granularity": None,
    }


# XML and forms.


def test_xml_is_read_as_the_same_request_in_json() -> None:
    body = (
        b"<any><listener><protocol>HTTP</protocol><protocol_port>80</protocol_port>"
        b"<loadbalancer_id>6a0a707c-45ef-4758-b533-e55adddba8ce</loadbalancer_id><admin_state_up>False</admin_state_up>"
        b"<tags><item>a</item><item>b</item></tags><name nil='true'/><unknown/>"
        b"<insert_headers><item><key>X-Forwarded-For</key><value>true</value></item></insert_headers></listener></any>"
    )
    values = raw("listener", body, content_type="text/xml")
    assert values["protocol_port"] == 80
    assert values["admin_state_up"] is False
    assert values["tags"] == ["a", "b"]
    assert values["name"] is None
    assert values["insert_headers"] == {"X-Forwarded-For": "true"}


@pytest.mark.parametrize(
    "body",
    [
        b"<a>",
        b"no",
        b"\xff",
        b'<!DOCTYPE a [<!ENTITY b "c">]><a><pool><name>&b;</name></pool></a>',
        b'<?xml version="1.0" encoding="nonsense"?><a/>',
    ],
)
def test_what_is_no_plain_xml_is_refused(body: bytes) -> None:
    assert refusal("pool", body, content_type="text/xml") == "Request is not in valid XML format"


def test_a_form_is_read_by_dotted_names() -> None:
    body = b"pool_.pool.protocol=HTTP&pool_.pool.lb_algorithm=SOURCE_IP&pool_.pool.tags=a&pool_.pool.tags=b"
    values = raw("pool", body, content_type="application/x-www-form-urlencoded")
    assert (values["protocol"], values["tags"]) == ("HTTP", ["a", "b"])


def test_unknown_names_of_a_form_are_listed() -> None:
    body = b"b=1&a=2&pool_.pool.nonsense=3&pool_.pool.protocol=HTTP"
    assert refusal("pool", body, content_type="application/x-www-form-urlencoded") == (
        'Unknown argument: "a, b, pool_.pool.nonsense"'
    )

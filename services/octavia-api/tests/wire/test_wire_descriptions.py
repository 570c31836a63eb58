"""The descriptions hold every field that the facts of the original name, with its bounds, columns and defaults."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from roadstead_octavia.resources.healthmonitor import wire as healthmonitor
from roadstead_octavia.resources.l7policy import wire as l7policy
from roadstead_octavia.resources.l7rule import wire as l7rule
from roadstead_octavia.resources.listener import wire as listener
from roadstead_octavia.resources.loadbalancer import wire as loadbalancer
from roadstead_octavia.resources.member import wire as member
from roadstead_octavia.resources.pool import wire as pool
from roadstead_octavia.wire.describe import KEEP, NO_COLUMN, NO_DEFAULT, Body, Field, Kind, Resource

from .recorded import NAMES, RESOURCES, ROUTES, TYPES, needs_facts

FORMATS = {
    "uuid": Kind.UUID,
    "ip": Kind.IP,
    "cidr": Kind.CIDR,
    "alpn": Kind.ALPN,
    "url": Kind.URL,
    "url-path": Kind.URL_PATH,
}
KINDS = {
    "string": Kind.STRING,
    "boolean": Kind.BOOLEAN,
    "integer": Kind.INTEGER,
    "number": Kind.FLOAT_ENUM,
    "array": Kind.ARRAY,
}
# Bounds that the tables have and the original does not check.
OUR_LENGTHS = {"expected_codes": 64, "redirect_url": 255, "redirect_prefix": 255, "url_path": 2048}
FORMS: Mapping[tuple[str, str], Body] = {
    ("loadbalancer", "additional_vip"): loadbalancer.ADDITIONAL_VIP,
    ("listener", "single_create"): listener.SINGLE,
    ("pool", "single_create"): pool.SINGLE,
    ("pool", "session_persistence_post"): pool.PERSISTENCE_POST,
    ("pool", "session_persistence_put"): pool.PERSISTENCE_PUT,
    ("member", "single_create"): member.SINGLE,
    ("healthmonitor", "single_create"): healthmonitor.SINGLE,
    ("l7policy", "single_create"): l7policy.SINGLE,
    ("l7rule", "single_create"): l7rule.SINGLE,
}
REFERENCES = {
    "AdditionalVipsType": loadbalancer.ADDITIONAL_VIP,
    "ListenerSingleCreate": listener.SINGLE,
    "PoolSingleCreate": pool.SINGLE,
    "SessionPersistencePOST": pool.PERSISTENCE_POST,
    "SessionPersistencePUT": pool.PERSISTENCE_PUT,
    "HealthMonitorSingleCreate": healthmonitor.SINGLE,
    "MemberSingleCreate": member.SINGLE,
    "L7PolicySingleCreate": l7policy.SINGLE,
    "L7RuleSingleCreate": l7rule.SINGLE,
}
# Names that stand for rows, not for a value: the original fails at them.
RELATIONS = {"loadbalancer": {"vip_sg_ids"}, "listener": {"sni_container_refs"}, "pool": {"healthmonitor"}}
# What null means on PUT, in the words of the facts.
NULLS = {
    'NULL (rendered "")': None,
    "NULL (removes the policy)": None,
    "false": False,
    "-1": -1,
    "1": 1,
    "3": 3,
    "NULL": None,
    "ignored (null tags are dropped; [] empties)": KEEP,
    "no change": KEEP,
}


# Patterns that we hold rules of a graph to as well (C6: no line breaks), where the original leaves them out.
GUARDS = (r"^[^\r\n]*$",)


def facts(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((TYPES / f"{name}.yaml").read_text())
    return found


def form(name: str, which: str) -> Body | None:
    resource = RESOURCES[name]
    return {"post": resource.post, "put": resource.put}.get(which) or FORMS.get((name, which))


def compare(name: str, field: Field, fact: Mapping[str, Any]) -> None:
    """The field is what the fact says."""
    if "ref" in fact:
        assert field.kind is Kind.OBJECT
        assert field.of is REFERENCES[fact["ref"]]
        return
    if fact["type"] == "object":
        assert field.kind is Kind.MAPPING
        assert isinstance(field.of, Field)
        compare(name, field.of, fact["additionalProperties"])
        return
    if fact["type"] == "array":
        assert field.kind is Kind.ARRAY
        assert isinstance(field.of, Field)
        compare(name, field.of, fact["items"])
        return
    if "format" in fact:
        assert field.kind is FORMATS[fact["format"]]
    elif "enum" in fact and fact["type"] != "number":
        assert field.kind is Kind.ENUM
    else:
        assert field.kind is KINDS[fact["type"]]
    assert set(field.choices) == set(fact.get("enum", ()))
    if field.kind is not Kind.ENUM:
        assert field.minimum == fact.get("minimum")
        assert field.maximum == fact.get("maximum")
    assert field.minimum_length == fact.get("minLength")
    assert field.maximum_length == OUR_LENGTHS.get(name, fact.get("maxLength"))
    assert field.pattern == fact.get("pattern") or (fact.get("pattern") is None and field.pattern in GUARDS)


def cases() -> list[Any]:
    if not TYPES.is_dir():
        return []
    found = []
    for name in NAMES:
        for which in facts(name):
            if which in ("post", "put") or (name, which) in FORMS:
                found.append(pytest.param(name, which, id=f"{name}-{which}"))
    return found


@needs_facts
@pytest.mark.parametrize(("name", "which"), cases())
def test_every_attribute_of_a_form_is_described(name: str, which: str) -> None:
    fact, body = facts(name), form(name, which)
    assert body is not None
    assert list(body.fields) == list(fact[which]), "the order of the fields is the order of the checks"
    for attribute, said in fact[which].items():
        field = body.fields[attribute]
        compare(attribute, field, said)
        assert field.required == said["required"], attribute
        assert field.alias_of == said.get("alias_of"), attribute
        default = said.get("default", NO_DEFAULT)
        assert field.default == default, attribute


@needs_facts
@pytest.mark.parametrize(("name", "which"), cases())
def test_every_attribute_is_stored_where_the_original_stores_it(name: str, which: str) -> None:
    fact, body = facts(name), form(name, which)
    assert body is not None
    for attribute, said in fact[which].items():
        column = body.fields[attribute].column
        if column != NO_COLUMN and attribute != "loadbalancer_id":
            assert (column or attribute) == said.get("model_name", attribute), attribute


@needs_facts
@pytest.mark.parametrize("name", [name for name in NAMES if RESOURCES[name].put is not None])
def test_null_means_on_put_what_the_facts_say(name: str) -> None:
    body = RESOURCES[name].put
    assert body is not None
    for attribute, said in facts(name)["put"].items():
        field, meaning = body.fields[attribute], str(said["on_null"])
        if "NOT NULL column" in meaning:
            assert not field.nullable, attribute
        elif meaning in NULLS and not callable(field.on_null):
            assert field.on_null is NULLS[meaning] or field.on_null == NULLS[meaning], attribute
        elif meaning.startswith("config:"):
            assert callable(field.on_null), attribute


@needs_facts
@pytest.mark.parametrize("name", NAMES)
def test_answers_show_every_attribute_of_the_original_in_its_order(name: str) -> None:
    resource, fact = RESOURCES[name], facts(name)
    assert list(resource.shown) == list(fact["response"])
    if "full_response" not in fact:
        assert not resource.full
        return
    full = {**resource.shown, **resource.full}
    ours = {attribute for attribute, get in full.items() if get is not None}
    # The facts list attributes that an object inside of a graph never has: ids of what it lies in.
    assert set(fact["full_response"]) - ours <= {"loadbalancers", "healthmonitor_id", "pools"}
    assert ours <= set(fact["full_response"])


@needs_facts
@pytest.mark.parametrize("name", NAMES)
def test_lists_are_filtered_and_sorted_by_the_original_s_names(name: str) -> None:
    lists = yaml.safe_load(ROUTES.read_text())["list_keys"]
    resource = RESOURCES[name]
    if name not in lists:
        assert not resource.filters
        return
    keys = lists[name]
    relations = RELATIONS.get(name, set())
    wanted = {*keys["filter_names_model"], *keys["filter_names_wire_renamed"]} - relations
    assert set(resource.filters) == wanted
    assert set(resource.sorts) == set(keys["sort_names"]) - relations
    renames = facts(name)["renames_wire_to_model"]
    for wire, column in resource.filters.items():
        assert column == renames.get(wire, wire)


@needs_facts
@pytest.mark.parametrize("name", NAMES)
def test_roots_are_the_original_s(name: str) -> None:
    roots = yaml.safe_load((TYPES / "common.yaml").read_text())["roots"][name]
    resource = RESOURCES[name]
    assert (resource.one or None, resource.many, resource.links or None) == (
        roots.get("one"),
        roots["many"],
        roots.get("links"),
    )


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=NAMES)
def test_booleans_and_optional_attributes_are_named_as_they_are_elsewhere(resource: Resource) -> None:
    assert resource.booleans <= set(resource.filters.values())
    assert resource.optional <= set(resource.shown)
    assert set(resource.full) - set(resource.shown) <= {"healthmonitor"}

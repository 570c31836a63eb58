"""Who may do what: every rule for every kind of person in every mode, and that remembering decisions changes none of them."""

import os
from pathlib import Path
from typing import Any

import pytest

from roadstead_octavia.call import Call, Caller
from roadstead_octavia.errors import ApiError
from roadstead_octavia.options import Options
from roadstead_octavia.policy_engine import BadPolicy, PolicyEngine
from roadstead_octavia.policy_rules import PREFIX, RULES

from .client import ROOT, Rows, parts
from .facts import facts_of, needs_facts

FILES = ROOT / "deploy" / "octavia" / "policies"
OWNER, OTHER = "p1", "p2"
PARTS = parts(Rows())

Person = tuple[tuple[str, ...], str | None, str | None]

# Roles, project, system scope; and which of the columns below they may, in the default mode.
PEOPLE: dict[str, Person] = {
    "project admin": (("admin", "member", "reader"), OWNER, None),
    "project member": (("member", "reader"), OWNER, None),
    "project reader": (("reader",), OWNER, None),
    "member elsewhere": (("member", "reader"), OTHER, None),
    "admin elsewhere": (("admin", "member", "reader"), OTHER, None),
    "system admin": (("admin", "member", "reader"), None, "all"),
    "system reader": (("reader",), None, "all"),
    "service": (("service",), OTHER, None),
    "lb member": (("load-balancer_member",), OWNER, None),
    "nobody": ((), OWNER, None),
}
COLUMNS = (
    "loadbalancer:get_one",
    "loadbalancer:post",
    "loadbalancer:get_all-global",
    "member:get_all",
    "quota:put",
)
OWN_TABLE = {
    "project admin": "YYYYY",
    "project member": "YY-Y-",
    "project reader": "Y--Y-",
    "member elsewhere": "-----",
    "admin elsewhere": "YYYYY",
    "system admin": "YYYYY",
    "system reader": "-----",
    "service": "---Y-",
    "lb member": "-----",
    "nobody": "-----",
}


def caller(
    roles: Any, project: str | None, scope: str | None, engine: PolicyEngine, options: Options
) -> Caller:
    values = {"user_id": "u", "project_id": project, "roles": list(roles), "system_scope": scope}
    is_admin = engine.is_admin(
        values, enforce_scope=options.enforce_scope, enforce_new_defaults=options.enforce_new_defaults
    )
    return Caller("u", project, tuple(roles), is_admin, scope, None, {**values, "is_admin": is_admin})


def may(
    engine: PolicyEngine, who: Any, rule: str, options: Options | None = None, target: str = OWNER
) -> bool:
    options = options or Options()
    roles, project, scope = who
    call = Call(caller(roles, project, scope, engine, options), options, PARTS)
    return engine.allows(call, rule, target)


def test_the_default_rules_for_every_kind_of_person() -> None:
    engine = PolicyEngine()
    found = {
        name: "".join("Y" if may(engine, who, rule) else "-" for rule in COLUMNS)
        for name, who in PEOPLE.items()
    }
    assert found == OWN_TABLE


def test_older_roles_count_while_the_new_defaults_are_not_enforced() -> None:
    engine = PolicyEngine()
    old = Options(enforce_new_defaults=False)
    assert may(engine, PEOPLE["lb member"], "loadbalancer:post", old)
    assert not may(engine, PEOPLE["lb member"], "loadbalancer:post", old, target=OTHER)
    assert not may(engine, PEOPLE["lb member"], "loadbalancer:post")


def test_what_is_denied_is_403_in_the_originals_words() -> None:
    engine = PolicyEngine()
    call = Call(caller((), OWNER, None, engine, Options()), Options(), PARTS)
    with pytest.raises(ApiError) as caught:
        engine.enforce(call, "loadbalancer:post", OWNER)
    assert caught.value.status == 403
    assert caught.value.text == "Policy does not allow this request to be performed."


def test_a_rule_that_there_is_not_denies_everybody() -> None:
    assert not may(PolicyEngine(), PEOPLE["project admin"], "loadbalancer:nonsense")


@needs_facts
def test_all_97_rules_are_the_originals() -> None:
    facts = facts_of("policies")["rules"]
    wanted = {
        r["name"]: (r["check"], r["scope_types"], (r.get("deprecated") or {}).get("check")) for r in facts
    }
    ours = {r.name: (r.check, ["project"] if r.scoped else None, r.before) for r in RULES}
    assert ours == wanted
    assert len(ours) == 97


@needs_facts
def test_the_whole_matrix_of_81_operations_14_personas_and_8_modes() -> None:
    facts = facts_of("policies")
    projects = {"owner": OWNER, "other": OTHER, None: None}
    wrong, cells = [], 0
    for mode, rows in facts["matrix"].items():
        file = FILES / mode.split()[1] if mode.startswith("file ") else None
        engine = PolicyEngine(file)
        options = Options(
            enforce_scope="scope on" in mode, enforce_new_defaults="new_defaults off" not in mode
        )
        people = [
            caller(p["roles"], projects[p["project"]], p["system_scope"], engine, options)
            for p in (facts["personas"][name] for name in facts["persona_order"])
        ]
        for rule, row in rows.items():
            for name, who, cell in zip(facts["persona_order"], people, row, strict=True):
                call = Call(who, options, PARTS)
                if engine.allows(call, rule.removeprefix(PREFIX), OWNER) != (cell == "Y"):
                    wrong.append((mode, rule, name, cell))
                cells += 1
    assert wrong == []
    assert cells == 8 * 81 * 14


# ---------------------------------------------------------------- files


def test_every_policy_file_that_is_shipped_can_be_used() -> None:
    names = sorted(f.name for f in FILES.glob("*.yaml"))
    assert len(names) == 4
    for name in names:
        assert f"`{name}`" in (FILES / "README.md").read_text()
        PolicyEngine(FILES / name)


def test_the_four_files_differ_in_what_they_are_for() -> None:
    def who_reads(file: str) -> set[str]:
        engine = PolicyEngine(FILES / file)
        return {name for name, who in PEOPLE.items() if may(engine, who, "loadbalancer:get_one")}

    admins = {"project admin", "admin elsewhere", "system admin"}
    assert who_reads("admin_or_owner-policy.yaml") == {
        *("project admin", "project member", "project reader", "lb member", "nobody"),
        "admin elsewhere",
    }
    assert who_reads("keystone_default_roles-policy.yaml") == admins | {"project member", "project reader"}
    assert who_reads("keystone_default_roles_scoped-policy.yaml") == {
        *("project admin", "project member", "project reader"),
        *("system admin", "system reader"),
    }
    assert who_reads("octavia-advanced-rbac-policy.yaml") == admins | {"lb member"}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('"load-balancer:read": "rule:nonsense"', "names one that there is not"),
        ('"a": "rule:b"\n"b": "rule:a"', "names one that there is not"),
        ("{not yaml", "policy.yaml"),
        ("- a\n- b", "one rule a line"),
        ('"a": 5', "the rule a has no expression"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, part: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(BadPolicy, match=part):
        PolicyEngine(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadPolicy, match="no such file"):
        PolicyEngine(tmp_path / "policy.yaml")


def test_a_change_of_the_file_is_seen_by_a_reload_and_a_bad_one_leaves_the_rules(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"

    def write(text: str, at: int) -> None:
        file.write_text(text)
        os.utime(file, (at, at))

    write(f'"{PREFIX}loadbalancer:get_one": "!"', 1)
    engine = PolicyEngine(file)
    reader = PEOPLE["project reader"]
    assert not may(engine, reader, "loadbalancer:get_one")
    assert not engine.reload()
    write(f'"{PREFIX}loadbalancer:get_one": "@"', 2)
    assert engine.reload()
    assert may(engine, PEOPLE["nobody"], "loadbalancer:get_one")
    write("{nonsense", 3)
    assert not engine.reload()
    assert may(engine, PEOPLE["nobody"], "loadbalancer:get_one")


# ---------------------------------------------------------------- remembering


def test_rules_of_operators_that_look_at_more_are_decided_by_it(tmp_path: Path) -> None:
    """What is remembered is kept under everything that the expression names."""
    file = tmp_path / "policy.yaml"
    file.write_text(
        f'"{PREFIX}loadbalancer:get_one": "user_id:u1 or project_id:chosen"\n'
        f'"{PREFIX}loadbalancer:put": "role:keeper_%(project_id)s"\n'
        f'"{PREFIX}loadbalancer:delete": "not (role:reader or user_id:u2)"\n'
    )
    engine = PolicyEngine(file)

    def allowed(rule: str, user: str, project: str, target: str, *roles: str) -> bool:
        values = {"user_id": user, "project_id": project, "roles": list(roles), "is_admin": False}
        call = Call(Caller(user, project, roles, credentials=values), Options(), PARTS)
        return engine.allows(call, f"loadbalancer:{rule}", target)

    for _ in range(2):
        assert allowed("get_one", "u1", "a", "b")
        assert not allowed("get_one", "u2", "a", "b")
        assert allowed("get_one", "u2", "chosen", "b")
        assert allowed("put", "u", "a", "b", "keeper_b")
        assert not allowed("put", "u", "a", "c", "keeper_b")
        assert allowed("delete", "u1", "a", "b", "member")
        assert not allowed("delete", "u2", "a", "b", "member")
        assert not allowed("delete", "u1", "a", "b", "reader")


def test_a_decision_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from oslo_policy import policy

    engine = PolicyEngine()
    options = Options()
    call = Call(caller(("member",), OWNER, None, engine, options), options, PARTS)
    assert engine.allows(call, "loadbalancer:post", OWNER)
    monkeypatch.setattr(policy.Enforcer, "enforce", None)
    assert engine.allows(call, "loadbalancer:post", OWNER)


def test_the_files_of_decisions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from roadstead_octavia import policy_engine

    monkeypatch.setattr(policy_engine, "MOST_DECISIONS", 10)
    engine = PolicyEngine()
    for n in range(50):
        assert not may(engine, ((f"role-{n}",), OWNER, None), "loadbalancer:post")
    mode = engine._mode((True, True))
    assert len(mode._decided) <= 10

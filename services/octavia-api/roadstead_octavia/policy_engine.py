"""oslo.policy behind the `Policy` protocol, with its decisions remembered.

Evaluating a rule takes a few hundred microseconds, so a decision is kept under exactly what the rule looks at: which of the caller's
attributes its expression names is read from the expression itself.  An expression that asks somebody else (`http:`) is never kept.
Files are read at the start and by `reload`, never while a request is answered.
"""

import re
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import yaml
from oslo_config import cfg
from oslo_policy import _checks, policy

from roadstead_octavia.call import Call, Caller
from roadstead_octavia.errors import refuse
from roadstead_octavia.policy_rules import PREFIX, RULES, WAS

log = structlog.get_logger("roadstead.octavia.policy")

MOST_DECISIONS = 20_000
ADMIN_RULE = "context_is_admin"
NO_FILE = "/nonexistent/policy.yaml"

# What an expression looks at; EVERYTHING: any attribute, OUTSIDE: not a function of the request.
ROLES, IS_ADMIN, OWNERSHIP, EVERYTHING, OUTSIDE = "roles", "is_admin", "ownership", "everything", "outside"
_INTERPOLATION = re.compile(r"%\(")

Mode = tuple[bool, bool]


class BadPolicy(ValueError):
    """The operators' file cannot be used; the text names it and says why."""


class PolicyEngine:
    """One for the process.  file: the operators' policy file; an empty path means the defaults alone.  BadPolicy for one that cannot be."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._modes: dict[Mode, _Mode] = {}
        self._stamp = self._stamped()
        self._mode((True, True))

    # ------------------------------------------------------------ the protocol

    def allows(self, call: Call, rule: str, project_id: str | None) -> bool:
        options = call.options
        mode = self._mode((options.enforce_scope, options.enforce_new_defaults))
        return mode.decide(PREFIX + rule, credentials(call.caller), project_id)

    def enforce(self, call: Call, rule: str, project_id: str | None) -> None:
        if not self.allows(call, rule, project_id):
            raise refuse("PolicyForbidden")

    # ------------------------------------------------------------ for the identity layer

    def is_admin(
        self,
        values: Mapping[str, Any],
        *,
        enforce_scope: bool = True,
        enforce_new_defaults: bool = True,
    ) -> bool:
        """Whether these credentials are an administrator's; a token of the wrong scope is not."""
        return self._mode((enforce_scope, enforce_new_defaults)).decide(ADMIN_RULE, values, None)

    # ------------------------------------------------------------ files

    def reload(self) -> bool:
        """Read the file again when it changed; blocks.  A file that cannot be used leaves the rules as they were."""
        stamp = self._stamped()
        if stamp == self._stamp:
            return False
        try:
            fresh = {mode: _Mode(mode, self._file) for mode in self._modes}
        except BadPolicy as error:
            log.warning("the policy file was not taken", reason=str(error))
            self._stamp = stamp
            return False
        self._stamp, self._modes = stamp, fresh
        log.info("the policy file was read again", file=str(self._file))
        return True

    def _stamped(self) -> tuple[int, int] | None:
        if self._file is None:
            return None
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def _mode(self, mode: Mode) -> "_Mode":
        found = self._modes.get(mode)
        if found is None:
            found = self._modes[mode] = _Mode(mode, self._file)
        return found


class _Mode:
    """The rules under one setting of (enforce_scope, enforce_new_defaults), and what they decided."""

    def __init__(self, mode: Mode, file: Path | None) -> None:
        self._enforcer = _enforcer(mode, file)
        self._looks_at: dict[str, frozenset[str]] = {}
        self._decided: dict[tuple[Any, ...], bool] = {}

    def decide(self, rule: str, values: Mapping[str, Any], project_id: str | None) -> bool:
        key = self._key(rule, values, project_id)
        if key is None:
            return self._ask(rule, values, project_id)
        decision = self._decided.get(key)
        if decision is None:
            if len(self._decided) >= MOST_DECISIONS:
                self._decided.clear()
            decision = self._decided[key] = self._ask(rule, values, project_id)
        return decision

    def _ask(self, rule: str, values: Mapping[str, Any], project_id: str | None) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(self._enforcer.enforce(rule, {"project_id": project_id}, dict(values)))

    def _key(self, rule: str, values: Mapping[str, Any], project_id: str | None) -> tuple[Any, ...] | None:
        looks_at = self._looks_at.get(rule)
        if looks_at is None:
            looks_at = self._looks_at[rule] = _looks_at(self._enforcer.rules, rule)
        if OUTSIDE in looks_at:
            return None
        if EVERYTHING in looks_at:
            return (rule, project_id, repr(sorted(values.items(), key=str)))
        return (
            rule,
            tuple(values.get("roles") or ()),
            values.get("is_admin"),
            "project_id" in values and str(values["project_id"]) == str(project_id),
            bool(values.get("system_scope") or values.get("system")),
            bool(values.get("domain_id")),
        )


def credentials(caller: Caller) -> Mapping[str, Any]:
    """What the engine is given about a caller."""
    if caller.credentials:
        if caller.is_admin and not caller.credentials.get("is_admin"):
            return {**caller.credentials, "is_admin": True}
        return caller.credentials
    return {
        "user_id": caller.user_id,
        "project_id": caller.project_id,
        "roles": list(caller.roles),
        "system_scope": caller.system_scope,
        "is_admin": caller.is_admin,
    }


def _enforcer(mode: Mode, file: Path | None) -> policy.Enforcer:
    scope, new_defaults = mode
    conf = cfg.ConfigOpts()
    conf([], project="octavia", default_config_files=[], default_config_dirs=[])
    made = policy.Enforcer(conf, policy_file=str(file.absolute()) if file else NO_FILE)
    conf.set_override("enforce_scope", scope, "oslo_policy")
    conf.set_override("enforce_new_defaults", new_defaults, "oslo_policy")
    conf.set_override("policy_dirs", [], "oslo_policy")
    made.suppress_default_change_warnings = made.suppress_deprecation_warnings = True
    made.register_defaults([_default(rule) for rule in RULES])
    if file is not None:
        _look_at(file)
    try:
        made.load_rules(force_reload=True)
        made.check_rules(raise_on_violation=True)
    except policy.InvalidDefinitionError as error:
        raise BadPolicy(f"{file}: a rule names one that there is not, or itself: {error}") from None
    except (ValueError, OSError, cfg.ConfigFilesPermissionDeniedError) as error:
        raise BadPolicy(f"{file}: {error}") from None
    made.use_conf = False  # from here on only `reload` looks at files
    return made


def _look_at(file: Path) -> None:
    """BadPolicy for what is no list of rules; the library would fail on it in its own ways."""
    if not file.is_file():
        raise BadPolicy(f"{file}: there is no such file; unset the setting for the default rules")
    try:
        content = yaml.safe_load(file.read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise BadPolicy(f"{file}: {error}") from None
    if content is not None and not isinstance(content, dict):
        raise BadPolicy(f"{file}: give one rule a line, NAME: EXPRESSION")
    for name, check in (content or {}).items():
        if not isinstance(name, str) or not isinstance(check, str | list):
            raise BadPolicy(f"{file}: the rule {name} has no expression; put it into quotes")


def _default(rule: Any) -> policy.RuleDefault:
    return policy.RuleDefault(
        rule.name,
        rule.check,
        scope_types=["project"] if rule.scoped else None,
        deprecated_rule=policy.DeprecatedRule(
            rule.name, rule.before, deprecated_reason=WAS, deprecated_since="W"
        )
        if rule.before
        else None,
    )


def _looks_at(rules: Mapping[str, Any], name: str) -> frozenset[str]:
    """The attributes of a request that decide that rule."""
    found: set[str] = set()
    seen: set[str] = set()
    visit = partial(_visit, rules=rules, found=found, seen=seen)
    if name in rules:
        visit(rules[name])
    return frozenset(found)


def _visit(check: Any, *, rules: Mapping[str, Any], found: set[str], seen: set[str]) -> None:
    if isinstance(check, (_checks.AndCheck, _checks.OrCheck)):
        for part in check.rules:
            _visit(part, rules=rules, found=found, seen=seen)
    elif isinstance(check, _checks.NotCheck):
        _visit(check.rule, rules=rules, found=found, seen=seen)
    elif isinstance(check, _checks.RuleCheck):
        if check.match not in seen:
            seen.add(check.match)
            if check.match in rules:
                _visit(rules[check.match], rules=rules, found=found, seen=seen)
    elif isinstance(check, (_checks.TrueCheck, _checks.FalseCheck)):
        pass
    elif isinstance(check, _checks.RoleCheck):
        found.add(EVERYTHING if _INTERPOLATION.search(check.match) else ROLES)
    elif isinstance(check, _checks.GenericCheck):
        if (check.kind, check.match) == ("project_id", "%(project_id)s"):
            found.add(OWNERSHIP)
        elif check.kind == "is_admin" and not _INTERPOLATION.search(check.match):
            found.add(IS_ADMIN)
        else:
            found.add(EVERYTHING)
    else:
        found.add(OUTSIDE)

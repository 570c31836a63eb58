"""What goes wrong on purpose: per call (`Fault`) and per object (`Outcome`).

A fault is matched when a call arrives, an outcome when an asynchronous change ends.
Both count down and vanish when used up.
"""

from __future__ import annotations

import random
import re
from dataclasses import asdict, dataclass, field
from typing import Any

from .tokens import Token
from .wire import Request, Response

FAULT_KINDS = (
    "status",  # answer `status` without any effect
    "status_after",  # the effect happens, the answer is `status`
    "no_answer_before",  # connection cut, no effect
    "no_answer_after",  # connection cut after the effect
    "empty_list",  # the call runs, its list comes back empty
    "partial_list",  # the call runs, only the first `keep` rows come back
    "slow",  # the answer is held back `delay` seconds
    "wrong_cloud",  # an empty other cloud answers
)
OUTCOME_KINDS = (
    "server_build", "server_rebuild", "server_reboot", "server_delete", "server_snapshot",
    "volume_create", "volume_delete", "volume_attach", "image_import",
    "lb_build", "lb_update", "lb_delete", "listener_build", "pool_build", "member_build", "monitor_build",
)  # fmt: skip


@dataclass
class Fault:
    """One rule; every criterion that is set must match. `times` None means for ever.

    `service` is a service's log name (identity, compute, network, image, volume, load-balancer,
    placement), `path` and `body` are regular expressions found anywhere, `user` a name or id,
    `scope` a token scope, `skip` lets that many matching calls through first.
    """

    kind: str
    service: str | None = None
    method: str | None = None
    path: str | None = None
    body: str | None = None
    user: str | None = None
    scope: str | None = None
    project_id: str | None = None
    times: int | None = 1
    skip: int = 0
    probability: float = 1.0
    status: int = 503
    answer: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    keep: int = 1
    delay: float = 0.0
    id: str = ""
    hits: int = 0

    def __post_init__(self) -> None:
        if self.kind not in FAULT_KINDS:
            raise ValueError(f"fault kind {self.kind!r} is unknown; use one of {', '.join(FAULT_KINDS)}")
        try:
            self._path = re.compile(self.path) if self.path else None
            self._body = re.compile(self.body) if self.body else None
        except re.error as error:
            raise ValueError(f"fault expression is no regular expression: {error}") from None

    def matches(self, service: str, request: Request, token: Token | None) -> bool:
        """True when the call meets every criterion, counters aside."""
        return (
            (self.service is None or self.service == service)
            and (self.method is None or self.method == request.method)
            and (self._path is None or self._path.search(request.path) is not None)
            and (self._body is None or self._body.search(request.body.decode("utf-8", "replace")) is not None)
            and (self.user is None or (token is not None and self.user in (token.user_name, token.user_id)))
            and (self.scope is None or (token is not None and self.scope == token.scope))
            and (self.project_id is None or (token is not None and self.project_id == token.project_id))
        )

    def response(self) -> Response:
        """The answer of the kinds status and status_after."""
        body = self.answer
        if body is None and self.status >= 400:
            body = {"error": {"code": self.status, "message": "simulated fault"}}
        return Response(self.status, dict(self.headers), body)


@dataclass
class Outcome:
    """How the next asynchronous changes of objects end: they fail, with `message`.

    `name` is a regular expression found anywhere in the object's name.
    """

    kind: str
    name: str = ""
    times: int | None = 1
    message: str = ""
    code: int = 500
    detail: str = ""
    id: str = ""
    hits: int = 0

    def __post_init__(self) -> None:
        if self.kind not in OUTCOME_KINDS:
            raise ValueError(f"outcome kind {self.kind!r} is unknown; use one of {', '.join(OUTCOME_KINDS)}")
        try:
            self._name = re.compile(self.name)
        except re.error as error:
            raise ValueError(f"outcome name is no regular expression: {error}") from None

    def matches(self, kind: str, name: str) -> bool:
        return self.kind == kind and self._name.search(name) is not None


class Faults:
    """The faults and outcomes in force, first added first."""

    def __init__(self, generator: random.Random) -> None:
        self.rules: list[Fault] = []
        self.outcomes: list[Outcome] = []
        self._random = generator
        self._next = 1

    def add(self, fault: Fault) -> str:
        """Put a fault in force; returns its id."""
        fault.id = f"fault-{self._next}"
        self._next += 1
        self.rules.append(fault)
        return fault.id

    def add_outcome(self, outcome: Outcome) -> str:
        """Put an outcome in force; returns its id."""
        outcome.id = f"outcome-{self._next}"
        self._next += 1
        self.outcomes.append(outcome)
        return outcome.id

    def remove(self, rule_id: str) -> bool:
        """Take one fault or outcome out of force; False when it is not there (any more)."""
        before = len(self.rules) + len(self.outcomes)
        self.rules = [rule for rule in self.rules if rule.id != rule_id]
        self.outcomes = [rule for rule in self.outcomes if rule.id != rule_id]
        return len(self.rules) + len(self.outcomes) < before

    def clear(self) -> None:
        """Take everything out of force."""
        self.rules.clear()
        self.outcomes.clear()

    def take(self, service: str, request: Request, token: Token | None) -> Fault | None:
        """The first fault for this call, counted down; None when the call goes its normal way."""
        for fault in self.rules:
            if not fault.matches(service, request, token):
                continue
            if fault.skip > 0:
                fault.skip -= 1
                continue
            if fault.probability < 1.0 and self._random.random() >= fault.probability:
                continue
            fault.hits += 1
            if fault.times is not None:
                fault.times -= 1
                if fault.times <= 0:
                    self.rules.remove(fault)
            return fault
        return None

    def outcome(self, kind: str, name: str) -> Outcome | None:
        """The outcome that decides this change of an object of that name, counted down."""
        for outcome in self.outcomes:
            if outcome.matches(kind, name):
                outcome.hits += 1
                if outcome.times is not None:
                    outcome.times -= 1
                    if outcome.times <= 0:
                        self.outcomes.remove(outcome)
                return outcome
        return None

    def as_json(self) -> dict[str, Any]:
        """What is in force, for /admin/faults."""
        return {
            "faults": [asdict(rule) for rule in self.rules],
            "outcomes": [asdict(o) for o in self.outcomes],
        }


def shortened(body: Any, keep: int) -> Any:
    """A list answer with the first `keep` rows of its list; other answers are left as they are.

    The next-page links go too: the cloud claims that there is nothing more.
    """
    if not isinstance(body, dict):
        return body
    lists = [key for key, value in body.items() if isinstance(value, list) and not key.endswith("_links")]
    if len(lists) != 1:
        return body
    kept = {key: value for key, value in body.items() if not key.endswith("_links") and key != "next"}
    kept[lists[0]] = body[lists[0]][:keep]
    return kept

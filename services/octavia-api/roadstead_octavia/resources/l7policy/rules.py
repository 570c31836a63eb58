"""Rules of L7 policies: pure, for single creations, graphs and updates alike.

A policy has one target, and its action says which.  `settled` is where the two are made to agree: a target that is given decides the
action, and whatever belongs to other actions is cleared.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from roadstead_octavia.db.port import Insert, Row, Update, Write
from roadstead_octavia.errors import refuse
from roadstead_octavia.resources.below import CREATING
from roadstead_octavia.resources.l7policy.wire import SINGLE
from roadstead_octavia.wire.columns import new_row

Values = Mapping[str, Any]
# What each action needs, and what the text calls it.
TARGETS = {
    "REDIRECT_TO_URL": ("redirect_url", "redirect_url"),
    "REDIRECT_TO_POOL": ("redirect_pool_id", "redirect_pool_id or redirect_pool"),
    "REDIRECT_PREFIX": ("redirect_prefix", "redirect_prefix"),
}
REDIRECT_CODE = 302
MOST_RULES = 50


def wrong(text: str) -> Exception:
    return refuse("InvalidL7PolicyArgs", msg=text)


def settled(values: Values, *, creating: bool) -> dict[str, Any]:
    """The values with action and target in agreement; 400.  `redirect_pool_id` may be any name of the pool in a graph."""
    whole = dict(values)
    if "action" in whole or creating:
        _check_action(whole)
    pool, url, prefix = (whole.get(name) for name in ("redirect_pool_id", "redirect_url", "redirect_prefix"))
    if pool and (url or prefix):
        raise wrong("Cannot specify redirect_pool_id and redirect_url or redirect_prefix at the same time")
    if pool:
        whole.update(
            action="REDIRECT_TO_POOL", redirect_url=None, redirect_prefix=None, redirect_http_code=None
        )
    if url:
        whole.update(action="REDIRECT_TO_URL", redirect_pool_id=None, redirect_prefix=None)
    elif prefix:
        whole.update(action="REDIRECT_PREFIX", redirect_pool_id=None, redirect_url=None)
    if (url or prefix) and not whole.get("redirect_http_code"):
        whole["redirect_http_code"] = REDIRECT_CODE
    return whole


def check_given(body: Values) -> None:
    """400 for an update that says nothing."""
    if not body:
        raise wrong("Invalid update options")


def _check_action(whole: dict[str, Any]) -> None:
    """400 for no action and for one without its target; clears what the action does not use."""
    action = whole.get("action")
    if action == "REJECT":
        whole.update(redirect_url=None, redirect_pool_id=None)
        return
    if action not in TARGETS:
        raise refuse("InvalidL7PolicyAction", action=action)
    name, shown = TARGETS[action]
    if not whole.get(name):
        raise wrong(f"{shown} must not be None")
    if action == "REDIRECT_TO_URL":
        whole["redirect_pool_id"] = None
    elif action == "REDIRECT_TO_POOL":
        whole["redirect_url"] = None


def inserted(policies: Sequence[str], identifier: str, position: int) -> list[str]:
    """The ids in their new order: counting from 1, and behind the last at most."""
    others = [one for one in policies if one != identifier]
    place = min(max(position, 1) - 1, len(others))
    return [*others[:place], identifier, *others[place:]]


def position_writes(policies: Sequence[Row], order: Sequence[str], *, besides: str) -> list[Write]:
    """Updates of those whose position differs from their place in the order, but for the one that is written anyway."""
    places = {identifier: number for number, identifier in enumerate(order, start=1)}
    return [
        Update("l7policy", {"id": row["id"]}, {"position": places[row["id"]]})
        for row in policies
        if row["id"] != besides and row["position"] != places[row["id"]]
    ]


def rows(values: Values, *, identifier: str, listener_id: str, project_id: str, position: int) -> list[Write]:
    """The rows of a new policy (its values settled) without its rules."""
    row = {
        **new_row(SINGLE, values),
        "redirect_pool_id": values.get("redirect_pool_id"),
        "id": identifier,
        "listener_id": listener_id,
        "project_id": project_id,
        "position": position,
        **CREATING,
    }
    return [
        Insert("l7policy", row),
        *(Insert("tags", {"resource_id": identifier, "tag": tag}) for tag in values.get("tags") or ()),
    ]

"""Rules of L7 rules: pure, for single creations, graphs and updates alike."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from roadstead_octavia.db.port import Insert, Write
from roadstead_octavia.errors import ApiError, refuse
from roadstead_octavia.resources.below import CREATING
from roadstead_octavia.resources.l7rule.wire import COMPARE_TYPES, SINGLE
from roadstead_octavia.wire.columns import new_row

Values = Mapping[str, Any]
KEYLESS = ("HOST_NAME", "PATH", "FILE_TYPE")
KEYED = ("HEADER", "COOKIE")
OF_CONNECTIONS = ("SSL_CONN_HAS_CERT", "SSL_VERIFY_RESULT")
# The ranges `+-.` (with `,` in it), `*-.` and `+-/` are those of the original's patterns.
HEADER_NAME = re.compile(r"[a-zA-Z0-9!#$%&'*+-.^_`|~]+")
COOKIE_VALUE = re.compile(r"[a-zA-Z0-9!#$%&'()*+-./:<=>?@[\]^_`{|}~]+")
HEADER_VALUE = re.compile(r"[a-zA-Z0-9!\"#$%&'()*+,-./:;<=>?@[\]^_`{|}~\\]+")
QUOTED_VALUE = re.compile(r"\"[a-zA-Z0-9 \t!\"#$%&'()*+,-./:;<=>?@[\]^_`{|}~\\]*\"")
NAME_FIELD = re.compile(r"[a-zA-Z][A-Za-z0-9-]*\n?")
LONGEST_NUMBER = 40


def unfit(text: str) -> ApiError:
    return refuse("L7RuleValidation", error=text)


def invalid_rule(text: str) -> ApiError:
    return unfit(f"Invalid L7 Rule: {text}")


def check(values: Values) -> None:
    """400 unless type, comparison, key and value go together.  values: the whole rule as it will be."""
    kind = values.get("type")
    if not values.get("value"):
        raise invalid_rule("L7 rule type requires a value")
    if kind in KEYED:
        _check_keyed(values)
    elif kind in KEYLESS:
        _check_compared(values)
    elif kind in OF_CONNECTIONS:
        _check_connection(values)
    elif kind == "SSL_DN_FIELD":
        _check_name(values)
    else:
        raise invalid_rule("invalid rule type")


def _check_keyed(values: Values) -> None:
    kind, key, value = values["type"], values.get("key"), values["value"]
    if not key:
        raise invalid_rule("L7 rule type requires a key")
    if not HEADER_NAME.fullmatch(key):
        raise unfit("Invalid characters in key")
    if _is_regex(values, COMPARE_TYPES):
        _check_regex(value)
    elif kind == "HEADER":
        if not HEADER_VALUE.fullmatch(value) and not QUOTED_VALUE.fullmatch(value):
            raise unfit("Invalid characters in header value")
    elif not COOKIE_VALUE.fullmatch(value):
        raise unfit("Invalid characters in cookie value")


def _check_compared(values: Values) -> None:
    value = values["value"]
    if _is_regex(values, ("REGEX", "EQUAL_TO") if values["type"] == "FILE_TYPE" else COMPARE_TYPES):
        _check_regex(value)
    elif not HEADER_VALUE.fullmatch(value) and not QUOTED_VALUE.fullmatch(value):
        raise unfit("Invalid characters in comparison value")


def _is_regex(values: Values, allowed: Sequence[str]) -> bool:
    """400 for a comparison that the type does not have."""
    compared = values.get("compare_type")
    if compared not in allowed:
        raise invalid_rule("invalid comparison type for rule type")
    return compared == "REGEX"


def _check_connection(values: Values) -> None:
    kind, value = values["type"], values["value"]
    if values.get("key"):
        raise invalid_rule(f'L7rule type {kind} does not use the "key" field.')
    if kind == "SSL_CONN_HAS_CERT":
        if value.lower() != "true":
            raise invalid_rule(f"L7rule value {value} is not a boolean True string.")
    elif not _is_number(value):
        raise invalid_rule(f"L7rule type {kind} needs a int value, which is >= 0")
    if values.get("compare_type") != "EQUAL_TO":
        raise invalid_rule(f"L7rule type {kind} only supports the EQUAL_TO compare type.")


def _is_number(text: str) -> bool:
    try:
        return len(text) <= LONGEST_NUMBER and int(text) >= 0
    except ValueError:
        return False


def _check_name(values: Values) -> None:
    key = values.get("key")
    if values.get("compare_type") == "REGEX":
        _check_regex(values["value"])
    if not key:
        raise invalid_rule("L7rule type SSL_DN_FIELD needs to specify a key and a value.")
    if not NAME_FIELD.fullmatch(key):
        raise invalid_rule("Invalid L7rule distinguished name field.")


def _check_regex(text: str) -> None:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise unfit(f"Unable to parse regular expression: {error}") from None


def without_key(values: Values) -> dict[str, Any]:
    """The values with the key cleared where the type has none."""
    return {**values, "key": None} if values.get("type") in KEYLESS else dict(values)


def rows(values: Values, *, identifier: str, policy_id: str, project_id: str) -> list[Write]:
    """The rows of a new rule."""
    row: dict[str, Any] = {
        **new_row(SINGLE, values),
        "id": identifier,
        "l7policy_id": policy_id,
        "project_id": project_id,
        **CREATING,
    }
    row["invert"] = bool(row["invert"])
    return [
        Insert("l7rule", row),
        *(Insert("tags", {"resource_id": identifier, "tag": tag}) for tag in values.get("tags") or ()),
    ]

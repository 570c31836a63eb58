"""Rules of health monitors: pure, for single creations, graphs and updates alike."""

from collections.abc import Mapping
from typing import Any

from roadstead_octavia.db.port import Insert, Row, Write
from roadstead_octavia.errors import invalid, refuse
from roadstead_octavia.options import Options
from roadstead_octavia.resources.below import CREATING
from roadstead_octavia.resources.healthmonitor.wire import SINGLE
from roadstead_octavia.resources.pool.rules import DATAGRAMS
from roadstead_octavia.wire.columns import new_row

Values = Mapping[str, Any]
ASKING = ("HTTP", "HTTPS")  # types that send requests
OF_DATAGRAMS = ("UDP-CONNECT", "SCTP")
ALLOWED_FOR_DATAGRAMS = ("UDP-CONNECT", "SCTP", "TCP", "HTTP")
REQUEST = {"http_method": "GET", "url_path": "/", "expected_codes": "200"}
DOMAINS_FROM = 1.1  # the version of HTTP that knows domain names


def check_type(kind: str | None, options: Options) -> None:
    """400 for a type that the deployment does not allow."""
    if kind == "PING" and not options.allow_ping_health_monitors:
        raise refuse("DisabledOption", option="type", value="PING")


def check_pool(kind: str | None, delay: int | None, protocol: str, options: Options) -> None:
    """400 for a type that pools of the protocol cannot have, and for one that asks too often."""
    if protocol in DATAGRAMS:
        if kind not in ALLOWED_FOR_DATAGRAMS:
            raise invalid(
                f"The associated pool protocol is {protocol}, so only a {'/'.join(ALLOWED_FOR_DATAGRAMS)} health monitor is"
                " supported."
            )
        least = options.udp_connect_min_interval_health_monitor
        if kind == "UDP-CONNECT" and delay is not None and delay < least:
            raise invalid(
                f"The request delay value {delay} should be larger than {least} for UDP-CONNECT health monitor type."
            )
    elif kind in OF_DATAGRAMS:
        raise invalid(f"The {kind} type is only supported for pools of type UDP/SCTP.")


def check_new(values: Values, *, with_pool: bool = True) -> None:
    """400 for what is null and must not be, for attributes of requests that are not sent, for a domain without its version.

    with_pool: whether the body names its pool (in a graph it stands in it).
    """
    names = ("type", "delay", "timeout", *(("pool_id",) if with_pool else ()), "max_retries")
    for name in names:
        if values.get(name) is None:
            raise refuse("InvalidOption", value=None, option=name)
    kind = values["type"]
    if kind not in ASKING:
        for name in REQUEST:
            if values.get(name):
                raise refuse("InvalidOption", value=name, option=f"health monitors of type {kind}")
    check_domain(values.get("http_version"), values.get("domain_name"))


def check_domain(version: float | None, domain: str | None) -> None:
    """400 for a domain name with a version of HTTP that has none."""
    if not domain:
        return
    if not version:
        raise invalid("'http_version' must be specified when 'domain_name' is provided.")
    if version < DOMAINS_FROM:
        raise refuse(
            "InvalidOption",
            value=f"http_version {version}",
            option="health monitors HTTP 1.1 domain name health check",
        )


def check_changed(before: Row, body: Values) -> None:
    """The same for an update.  body: as it was sent, with nulls."""
    kind = before["type"]
    if kind not in ASKING:
        for name in REQUEST:
            if name in body:
                raise refuse("InvalidOption", value=name, option=f"health monitors of type {kind}")
    for name in ("delay", "max_retries", "timeout"):
        if name in body and body[name] is None:
            raise refuse("InvalidOption", value=None, option=name)
    check_domain(
        body.get("http_version") or before["http_version"], body.get("domain_name") or before["domain_name"]
    )


def rows(values: Values, *, identifier: str, pool_id: str, project_id: str) -> list[Write]:
    """The rows of a new monitor."""
    row = {
        **new_row(SINGLE, values),
        "id": identifier,
        "pool_id": pool_id,
        "project_id": project_id,
        **CREATING,
    }
    if values["type"] in ASKING:
        row.update((name, standard) for name, standard in REQUEST.items() if not row[name])
    return [
        Insert("health_monitor", row),
        *(Insert("tags", {"resource_id": identifier, "tag": tag}) for tag in values.get("tags") or ()),
    ]

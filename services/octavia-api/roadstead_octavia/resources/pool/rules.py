"""Rules of pools: pure, for single creations, graphs and updates alike."""

import re
from collections.abc import Mapping
from typing import Any

from roadstead_octavia.db.port import Insert, Row, Write
from roadstead_octavia.errors import invalid, refuse
from roadstead_octavia.options import Options
from roadstead_octavia.resources.below import CREATING
from roadstead_octavia.resources.pool.wire import PERSISTENCE_POST, POST
from roadstead_octavia.resources.tls import check_alpn, check_ciphers, check_versions
from roadstead_octavia.wire.columns import new_row

Values = Mapping[str, Any]
DATAGRAMS = ("UDP", "SCTP")
# Which pools a listener may send to, by the listener's protocol.
FITTING: Mapping[str, tuple[str, ...]] = {
    "TCP": ("HTTP", "HTTPS", "PROXY", "PROXYV2", "TCP"),
    "HTTP": ("HTTP", "PROXY", "PROXYV2"),
    "HTTPS": ("HTTPS", "PROXY", "PROXYV2", "TCP"),
    "TERMINATED_HTTPS": ("HTTP", "PROXY", "PROXYV2"),
    "UDP": ("UDP",),
    "SCTP": ("SCTP",),
    "PROMETHEUS": (),
}
# What a cookie name is made of: at least one Latin-1 character, and none that separates things in headers.
COOKIE_LATIN = re.compile(r"[\x00-\xff]")
COOKIE_SEPARATOR = re.compile(r"[\x00-\x20\x22\x28-\x29\x2c\x2f\x3a-\x40\x5b-\x5d\x7b\x7d\x7f]")


def check_children(listener_protocol: str) -> None:
    """400 for a listener that shows metrics: it has no pools and no policies."""
    if listener_protocol == "PROMETHEUS":
        raise refuse("ListenerNoChildren", protocol=listener_protocol)


def check_fit(pool_protocol: str, listener_protocol: str) -> None:
    """400 unless a listener of that protocol may send to such a pool."""
    if pool_protocol not in FITTING[listener_protocol]:
        raise invalid(
            f"The pool protocol '{pool_protocol}' is invalid while the listener protocol is '{listener_protocol}'."
        )


def check_persistence(protocol: str, wanted: Values | None, *, datagrams: str = "UDP and SCTP") -> None:
    """400 for a session persistence that pools of the protocol do not have.  datagrams: what one text calls UDP and SCTP."""
    if wanted is None:
        return
    kind, cookie = wanted.get("type"), wanted.get("cookie_name")
    if protocol in DATAGRAMS:
        if kind == "SOURCE_IP" and cookie:
            raise invalid(
                "session_persistence SOURCE_IP type for UDP and SCTP protocols only accepts: type, persistence_timeout,"
                " persistence_granularity."
            )
        if cookie:
            raise invalid("Cookie names are not supported for UDP/SCTP pools.")
        if kind in ("HTTP_COOKIE", "APP_COOKIE"):
            raise invalid(f"Session persistence of type {kind} is not supported for UDP/SCTP protocol pools.")
    elif wanted.get("persistence_timeout") or wanted.get("persistence_granularity"):
        raise invalid(
            f"persistence_timeout and persistence_granularity is only for {datagrams} protocol pools."
        )
    _check_cookie(kind, cookie)


def _check_cookie(kind: str | None, cookie: str | None) -> None:
    if kind is None and not cookie:
        raise invalid("Invalid session_persistence provided.")
    if cookie:
        if kind != "APP_COOKIE":
            raise invalid(
                'Field "cookie_name" can only be specified with session persistence of type "APP_COOKIE".'
            )
        if COOKIE_SEPARATOR.search(cookie) or not COOKIE_LATIN.search(cookie):
            raise invalid('Supplied "cookie_name" is invalid.')
    elif kind == "APP_COOKIE":
        raise invalid(
            'Field "cookie_name" must be specified when using the "APP_COOKIE" session persistence type.'
        )


def check_references(values: Values) -> None:
    """400 for a revocation list of no CA."""
    if values.get("crl_container_ref") and not values.get("ca_tls_container_ref"):
        raise invalid("A CA certificate reference is required to specify a revocation list.")


def check_tls(values: Values, options: Options) -> None:
    """400 for ciphers, versions or protocols that are none, whether TLS is on or not."""
    check_ciphers(values.get("tls_ciphers"), options)
    check_versions(values.get("tls_versions"), options)
    check_alpn(values.get("alpn_protocols"))


def check_changed_references(before: Row, values: Values) -> None:
    """400 when the change would leave a revocation list without its CA."""
    authority = values.get("ca_tls_container_ref", before["ca_tls_certificate_id"])
    revocations = values.get("crl_container_ref", before["crl_container_id"])
    if authority or not revocations:
        return
    if "ca_tls_container_ref" in values and not values.get("crl_container_ref"):
        raise invalid("A CA reference cannot be removed when a certificate revocation list is present.")
    raise invalid("A CA reference is required to specify a certificate revocation list.")


def defaults(values: Values, options: Options) -> dict[str, Any]:
    """The values with the deployment's TLS settings where TLS is on and they were left open."""
    whole = dict(values)
    if whole.get("tls_enabled"):
        for name, standard in (
            ("tls_ciphers", options.default_pool_ciphers),
            ("tls_versions", list(options.default_pool_tls_versions)),
            ("alpn_protocols", list(options.default_pool_alpn_protocols)),
        ):
            if whole.get(name) is None:
                whole[name] = standard
    return whole


def rows(
    values: Values, *, identifier: str, load_balancer_id: str, project_id: str, options: Options
) -> list[Write]:
    """The rows of a new pool without its members and its monitor: the pool, its session persistence, its tags."""
    row: dict[str, Any] = {
        **new_row(POST, defaults(values, options)),
        "id": identifier,
        "load_balancer_id": load_balancer_id,
        "project_id": project_id,
        **CREATING,
    }
    row["tls_enabled"] = bool(row["tls_enabled"])
    writes: list[Write] = [Insert("pool", row)]
    if (persistence := values.get("session_persistence")) is not None:
        writes.append(Insert("session_persistence", {"pool_id": identifier, **persistence_row(persistence)}))
    return writes + [
        Insert("tags", {"resource_id": identifier, "tag": tag}) for tag in values.get("tags") or ()
    ]


def persistence_row(wanted: Values) -> dict[str, Any]:
    """The columns of a session persistence; what was not sent is empty."""
    return {name: wanted.get(name) for name in PERSISTENCE_POST.fields}

"""Rules of listeners: pure, for single creations, graphs and updates alike.

A creation is checked in three steps, since some checks need the outside: `check_new` before references to certificates are followed,
`check_place` after it, against the load balancer that the listener is to stand on; `rows` says what is written.
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from roadstead_octavia.db.port import Insert, Row, Tree, Write
from roadstead_octavia.errors import invalid, refuse
from roadstead_octavia.options import Options
from roadstead_octavia.resources.below import CREATING
from roadstead_octavia.resources.listener.wire import SINGLE
from roadstead_octavia.resources.pool.rules import DATAGRAMS
from roadstead_octavia.resources.tls import check_alpn, check_ciphers, check_versions
from roadstead_octavia.wire.columns import new_row

Values = Mapping[str, Any]
OFFLOADING = "TERMINATED_HTTPS"
METRICS = "PROMETHEUS"
HTTP_HEADERS = (
    "X-Forwarded-For",
    "X-Forwarded-Port",
    "X-Forwarded-Proto",
    "X-Forwarded-IP",
    "X-Client-IP",
    "X-Real-IP",
)
SSL_HEADERS = (
    "X-SSL-Client-Verify",
    "X-SSL-Client-Has-Cert",
    "X-SSL-Client-DN",
    "X-SSL-Client-CN",
    "X-SSL-Issuer",
    "X-SSL-Client-SHA1",
    "X-SSL-Client-Not-Before",
    "X-SSL-Client-Not-After",
)
FIRST_PEER_PORT = 1025
TIMEOUTS = ("timeout_client_data", "timeout_member_connect", "timeout_member_data", "timeout_tcp_inspect")


def refers(values: Values) -> bool:
    """Whether there is any reference to a certificate (a revocation list alone is none)."""
    names = ("default_tls_container_ref", "client_ca_tls_container_ref", "sni_container_refs")
    return any(values.get(name) for name in names)


def offloads(protocol: str, values: Values) -> bool:
    """Whether TLS ends at the listener."""
    return protocol == OFFLOADING or (protocol == METRICS and refers(values))


def check_protocol(values: Values) -> None:
    """400 for a null protocol or port, which pass as attributes."""
    for name in ("protocol", "protocol_port"):
        if values.get(name) is None:
            raise refuse("InvalidOption", value=None, option=name)


def check_headers(protocol: str, headers: Sequence[str], shown: str) -> None:
    """400 for headers that nobody inserts, or not on listeners of the protocol.  shown: the headers in a text."""
    if protocol not in ("HTTP", OFFLOADING):
        raise refuse("InvalidOption", value="insert-headers", option=f"a {protocol} protocol listener.")
    if any(header not in HTTP_HEADERS and header not in SSL_HEADERS for header in headers):
        raise refuse("InvalidOption", value=shown, option="insert_headers")
    if protocol != OFFLOADING and (secure := [header for header in headers if header in SSL_HEADERS]):
        raise refuse("InvalidOption", value=secure, option=f"{protocol} protocol listener.")


def check_new(values: Values, options: Options) -> None:
    """What a new listener says of itself, up to where references to certificates are followed; 400."""
    protocol = values["protocol"]
    headers = list(values.get("insert_headers") or ())
    if headers:
        check_headers(protocol, headers, f"dict_keys({headers})")
    if protocol in DATAGRAMS and refers(values):
        raise invalid(f"{protocol} protocol listener does not support TLS.")
    is_offloading = offloads(protocol, values)
    if is_offloading and not options.allow_tls_terminated_listeners:
        shown = protocol if protocol == OFFLOADING else f"{protocol} with TLS"
        raise refuse("DisabledOption", option="protocol", value=shown)
    if protocol == METRICS and not options.allow_prometheus_listeners:
        raise refuse("DisabledOption", option="protocol", value=protocol)
    _check_references(values, protocol, is_offloading=is_offloading)
    check_ciphers(values.get("tls_ciphers"), options)


def _check_references(values: Values, protocol: str, *, is_offloading: bool) -> None:
    authority = values.get("client_ca_tls_container_ref")
    certified = values.get("default_tls_container_ref") or values.get("sni_container_refs")
    if not is_offloading and refers(values):
        raise invalid(f"Certificate container references are not allowed on {protocol} protocol listeners.")
    if authority and not certified:
        raise invalid(
            "An SNI or default certificate container reference must be provided with a client CA container reference."
        )
    if is_offloading and not certified:
        raise invalid(
            f"An SNI or default certificate container reference must be provided for {protocol} protocol listeners."
        )
    check_client_authentication(values.get("client_authentication"), authority)
    check_revocations(values.get("client_crl_container_ref"), authority)


def check_client_authentication(wanted: str | None, authority: str | None) -> None:
    """400 for clients that are to show certificates of no CA."""
    if wanted not in (None, "NONE") and not authority:
        raise invalid(f"Client authentication setting {wanted} requires a client CA container reference.")


def check_revocations(revocations: str | None, authority: str | None) -> None:
    """400 for a revocation list of no CA."""
    if revocations and not authority:
        raise invalid(
            "A client authentication CA reference is required to specify a client authentication revocation list."
        )


def check_place(
    values: Values, *, listeners: Iterable[Row], vips: Sequence[str], groups: bool, options: Options
) -> None:
    """The rest of what a new listener says, against what there is; 409 for a port in use, 400.

    listeners: of the load balancer.  vips: its addresses.  groups: whether its VIP has security groups of the user.
    """
    check_port(values["protocol"], values["protocol_port"], listeners)
    check_networks(values.get("allowed_cidrs"), vips, groups=groups)
    whole = defaults(values, options)
    check_versions(whole.get("tls_versions"), options)
    check_alpn(whole.get("alpn_protocols"))
    if (values.get("hsts_include_subdomains") or values.get("hsts_preload")) and values.get(
        "hsts_max_age"
    ) is None:
        raise invalid(
            "HSTS configuration options hsts_include_subdomains and hsts_preload only make sense if hsts_max_age is set as"
            " well."
        )
    check_hsts(values["protocol"], values.get("hsts_max_age"))


def check_hsts(protocol: str, age: int | None) -> None:
    if age is not None and protocol != OFFLOADING:
        raise invalid("The HSTS feature can only be used for listeners using the TERMINATED_HTTPS protocol.")


def check_port(protocol: str, port: int, listeners: Iterable[Row]) -> None:
    """409 when a listener of the same transport has the port."""
    for other in listeners:
        if other["protocol_port"] == port and _transport(other["protocol"]) == _transport(protocol):
            raise refuse("DuplicateListenerEntry", protocol=other["protocol"], port=port)


def _transport(protocol: str) -> str:
    return protocol if protocol in DATAGRAMS else "TCP"


def check_networks(networks: Sequence[str] | None, vips: Sequence[str], *, groups: bool) -> None:
    """400 for allowed networks beside security groups of the user, and for those of a family that no VIP has."""
    if not networks:
        return
    if groups:
        raise invalid("Allowed CIDRs are not allowed when using custom VIP Security Groups.")
    families = {ipaddress.ip_address(vip).version for vip in vips}
    for network in networks:
        if ipaddress.ip_network(network).version not in families:
            raise invalid(f"CIDR {network} IP version incompatible with all VIPs {list(vips)} IP version.")


def addresses(tree: Tree) -> list[str]:
    """The VIP's address, then the additional ones; those that are not known yet are left out."""
    rows = (*tree.of("vip"), *tree.of("additional_vip"))
    return [row["ip_address"] for row in rows if row["ip_address"]]


def defaults(values: Values, options: Options) -> dict[str, Any]:
    """The values with the deployment's settings where they were left open: time-outs, and TLS where it ends at the listener."""
    whole = dict(values)
    for name in TIMEOUTS:
        if whole.get(name) is None:
            whole[name] = getattr(options, name)
    standard = {
        "tls_ciphers": options.default_listener_ciphers,
        "tls_versions": list(options.default_listener_tls_versions),
        "alpn_protocols": list(options.default_listener_alpn_protocols),
    }
    if offloads(whole["protocol"], whole):
        whole.update((name, value) for name, value in standard.items() if whole.get(name) is None)
    return whole


def peer_port(listeners: Iterable[Row]) -> int:
    """The next one behind those in use on the load balancer."""
    used = [row["peer_port"] for row in listeners if row["peer_port"] is not None]
    return max(used, default=FIRST_PEER_PORT - 1) + 1


def rows(
    values: Values,
    *,
    identifier: str,
    load_balancer_id: str,
    project_id: str,
    peer: int,
    options: Options,
) -> list[Write]:
    """The rows of a new listener without its policies; `values["default_pool_id"]` names its pool."""
    row: dict[str, Any] = {
        **new_row(SINGLE, defaults(values, options)),
        "id": identifier,
        "load_balancer_id": load_balancer_id,
        "project_id": project_id,
        "peer_port": peer,
        **CREATING,
    }
    for name in ("hsts_include_subdomains", "hsts_preload"):
        row[name] = bool(row[name])
    own = {"listener_id": identifier}
    writes: list[Write] = [Insert("listener", row)]
    for reference in values.get("sni_container_refs") or ():
        writes.append(Insert("sni", {**own, "tls_container_id": reference, "position": None}))
    for network in values.get("allowed_cidrs") or ():
        writes.append(Insert("listener_cidr", {**own, "cidr": network}))
    for tag in values.get("tags") or ():
        writes.append(Insert("tags", {"resource_id": identifier, "tag": tag}))
    return writes


# ---------------------------------------------------------------- updates


def check_changed(before: Row, body: Values) -> None:
    """What an update says, up to where references to certificates are followed; 400.  body: as it was sent."""
    protocol = before["protocol"]
    headers = list(body.get("insert_headers") or ())
    if protocol in DATAGRAMS and (refers(body) or headers):
        raise invalid(f"{protocol} protocol listener does not support TLS or header insertion.")
    if protocol not in (OFFLOADING, METRICS) and refers(body):
        raise invalid(f"Certificate container references are not allowed on {protocol} protocol listeners.")
    authority = body.get("client_ca_tls_container_ref") or before["client_ca_tls_certificate_id"]
    check_client_authentication(body.get("client_authentication"), authority)
    if headers:
        check_headers(protocol, headers, str(headers))


def check_rest(
    before: Row, body: Values, values: Values, *, vips: Sequence[str], groups: bool, options: Options
) -> None:
    """The rest of what an update says; 400.  values: with null replaced by what it means."""
    check_networks(body.get("allowed_cidrs"), vips, groups=groups)
    check_ciphers(values.get("tls_ciphers"), options)
    check_versions(values.get("tls_versions"), options)
    check_alpn(values.get("alpn_protocols"))
    flags = body.get("hsts_include_subdomains") or body.get("hsts_preload")
    if flags and values.get("hsts_max_age", before["hsts_max_age"]) is None:
        raise invalid(
            "Cannot enable hsts_include_subdomains or hsts_preload if hsts_max_age was not set as well."
        )
    check_hsts(before["protocol"], values.get("hsts_max_age"))

"""What a provider is told of an object: octavia-lib's data models as plain dicts, made from the rows of a tree.

Every dict names its model under `$type` and leaves out what is not set.  There are two forms.  The *whole* object (creates, deletes, the
old side of updates) always has its relations, whatever the request happened to touch; lists that a model leaves out when empty
(`listeners`, `pools`, `additional_vips` of a load balancer, `sni_container_refs`) stay out.  The *changed* object (the new side of
updates) has the id and the fields that the request set.

Key material comes from outside as `Secrets`; without it an object has references only.  `without_secrets` takes it out again, before
anything is stored or published.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from roadstead_octavia.db.port import Row, Tree

Model = dict[str, Any]
DATA_FIELDS = frozenset(
    {
        "default_tls_container_data",
        "sni_container_data",
        "client_ca_tls_container_data",
        "client_crl_container_data",
        "tls_container_data",
        "ca_tls_container_data",
        "crl_container_data",
    }
)


@dataclass(frozen=True)
class Secrets:
    """What was read for references.

    certificates: container reference -> id, certificate, private_key, passphrase, intermediates, primary_cn.
    texts: secret reference -> its text (a CA, a revocation list).
    """

    certificates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


NO_SECRETS = Secrets()

# Fields of each model as (field, column), in the model's own order; relations are added by the functions below.
LOAD_BALANCER_FIELDS = (
    ("admin_state_up", "enabled"),
    ("description", "description"),
    ("loadbalancer_id", "id"),
    ("name", "name"),
    ("project_id", "project_id"),
    ("availability_zone", "availability_zone"),
)
VIP_FIELDS = (
    ("vip_address", "ip_address"),
    ("vip_network_id", "network_id"),
    ("vip_port_id", "port_id"),
    ("vip_subnet_id", "subnet_id"),
    ("vip_qos_policy_id", "qos_policy_id"),
)
LISTENER_FIELDS = (
    ("admin_state_up", "enabled"),
    ("connection_limit", "connection_limit"),
    ("default_pool_id", "default_pool_id"),
    ("default_tls_container_ref", "tls_certificate_id"),
    ("description", "description"),
    ("insert_headers", "insert_headers"),
    ("listener_id", "id"),
    ("loadbalancer_id", "load_balancer_id"),
    ("name", "name"),
    ("protocol", "protocol"),
    ("protocol_port", "protocol_port"),
    ("timeout_client_data", "timeout_client_data"),
    ("timeout_member_connect", "timeout_member_connect"),
    ("timeout_member_data", "timeout_member_data"),
    ("timeout_tcp_inspect", "timeout_tcp_inspect"),
    ("client_ca_tls_container_ref", "client_ca_tls_certificate_id"),
    ("client_authentication", "client_authentication"),
    ("client_crl_container_ref", "client_crl_container_id"),
    ("project_id", "project_id"),
    ("tls_versions", "tls_versions"),
    ("tls_ciphers", "tls_ciphers"),
    ("alpn_protocols", "alpn_protocols"),
    ("hsts_max_age", "hsts_max_age"),
    ("hsts_include_subdomains", "hsts_include_subdomains"),
    ("hsts_preload", "hsts_preload"),
)
POOL_FIELDS = (
    ("admin_state_up", "enabled"),
    ("description", "description"),
    ("lb_algorithm", "lb_algorithm"),
    ("loadbalancer_id", "load_balancer_id"),
    ("name", "name"),
    ("pool_id", "id"),
    ("protocol", "protocol"),
    ("tls_container_ref", "tls_certificate_id"),
    ("ca_tls_container_ref", "ca_tls_certificate_id"),
    ("crl_container_ref", "crl_container_id"),
    ("tls_enabled", "tls_enabled"),
    ("project_id", "project_id"),
    ("tls_versions", "tls_versions"),
    ("tls_ciphers", "tls_ciphers"),
    ("alpn_protocols", "alpn_protocols"),
)
MEMBER_FIELDS = (
    ("address", "ip_address"),
    ("admin_state_up", "enabled"),
    ("member_id", "id"),
    ("monitor_address", "monitor_address"),
    ("monitor_port", "monitor_port"),
    ("name", "name"),
    ("pool_id", "pool_id"),
    ("protocol_port", "protocol_port"),
    ("subnet_id", "subnet_id"),
    ("weight", "weight"),
    ("backup", "backup"),
    ("project_id", "project_id"),
    ("vnic_type", "vnic_type"),
)
HEALTH_MONITOR_FIELDS = (
    ("admin_state_up", "enabled"),
    ("delay", "delay"),
    ("expected_codes", "expected_codes"),
    ("healthmonitor_id", "id"),
    ("http_method", "http_method"),
    ("max_retries", "rise_threshold"),
    ("max_retries_down", "fall_threshold"),
    ("name", "name"),
    ("pool_id", "pool_id"),
    ("timeout", "timeout"),
    ("type", "type"),
    ("url_path", "url_path"),
    ("http_version", "http_version"),
    ("domain_name", "domain_name"),
    ("project_id", "project_id"),
)
L7POLICY_FIELDS = (
    ("action", "action"),
    ("admin_state_up", "enabled"),
    ("description", "description"),
    ("l7policy_id", "id"),
    ("listener_id", "listener_id"),
    ("name", "name"),
    ("position", "position"),
    ("redirect_pool_id", "redirect_pool_id"),
    ("redirect_url", "redirect_url"),
    ("redirect_prefix", "redirect_prefix"),
    ("redirect_http_code", "redirect_http_code"),
    ("project_id", "project_id"),
)
L7RULE_FIELDS = (
    ("admin_state_up", "enabled"),
    ("compare_type", "compare_type"),
    ("invert", "invert"),
    ("key", "key"),
    ("l7policy_id", "l7policy_id"),
    ("l7rule_id", "id"),
    ("type", "type"),
    ("value", "value"),
    ("project_id", "project_id"),
)

# By table: the model's name, its fields, and what an update may carry beside columns.
_MODELS: dict[str, tuple[str, tuple[tuple[str, str], ...], frozenset[str]]] = {
    "load_balancer": ("LoadBalancer", LOAD_BALANCER_FIELDS, frozenset({"vip_qos_policy_id", "vip_sg_ids"})),
    "listener": ("Listener", LISTENER_FIELDS, frozenset({"allowed_cidrs", "sni_container_refs"})),
    "pool": ("Pool", POOL_FIELDS, frozenset({"session_persistence"})),
    "member": ("Member", MEMBER_FIELDS, frozenset()),
    "health_monitor": ("HealthMonitor", HEALTH_MONITOR_FIELDS, frozenset()),
    "l7policy": ("L7Policy", L7POLICY_FIELDS, frozenset()),
    "l7rule": ("L7Rule", L7RULE_FIELDS, frozenset()),
}
_ID_FIELDS = {table: next(f for f, c in fields if c == "id") for table, (_, fields, _) in _MODELS.items()}
_LISTS = frozenset({"tls_versions", "alpn_protocols"})  # stored as text with commas


def _value(column: str, value: Any) -> Any:
    if column in _LISTS and isinstance(value, str):
        return value.split(",") if value else []
    return value


def _plain(table: str, row: Row) -> Model:
    name, fields, _ = _MODELS[table]
    model: Model = {"$type": name}
    for model_field, column in fields:
        model[model_field] = _value(column, row.get(column))
    return model


def _row(tree: Tree, table: str, identifier: str) -> Row:
    row = tree.get(table, identifier)
    if row is None:
        raise KeyError(f"no {table} {identifier} in the tree")
    return row


# ------------------------------------------------------------ whole objects


def load_balancer(
    tree: Tree, *, flavor: Mapping[str, Any] | None = None, secrets: Secrets = NO_SECRETS
) -> Model:
    """The load balancer as it stands, for updates and deletes.  flavor: its profile's data, unless the tree holds the profile."""
    model = _load_balancer(tree, secrets)
    data = flavor_of(tree) if flavor is None else flavor
    if data is not None:
        model["flavor"] = dict(data)
    return model


def flavor_of(tree: Tree) -> dict[str, Any] | None:
    """The data of the load balancer's flavor, None without one."""
    return _profile(tree, "flavor", "flavor_data", {"id": tree.load_balancer.get("flavor_id")})


def zone_of(tree: Tree) -> dict[str, Any] | None:
    """The data of the load balancer's availability zone, None without one."""
    name = tree.load_balancer.get("availability_zone")
    return _profile(tree, "availability_zone", "availability_zone_data", {"name": name})


def _profile(tree: Tree, table: str, column: str, key: Row) -> dict[str, Any] | None:
    for row in tree.of(table):
        if all(row[name] == value for name, value in key.items()):
            profile = tree.get(f"{table}_profile", row[f"{table}_profile_id"])
            data = orjson.loads(profile[column]) if profile is not None else None
            return data if isinstance(data, dict) else {}
    return None


def new_load_balancer(
    tree: Tree,
    *,
    flavor: Mapping[str, Any] | None = None,
    zone: Mapping[str, Any] | None = None,
    given: Collection[str] = (),
    secrets: Secrets = NO_SECRETS,
) -> Model:
    """A load balancer that is being made, with all its children.

    flavor, zone: the data of their profiles, unless the tree holds the profiles.  given: names of the request's body; name and description that were neither given nor
    set are left out.
    """
    model = _load_balancer(tree, secrets, new=True)
    for name in ("name", "description"):
        if model[name] is None and name not in given:
            del model[name]
    model["flavor"] = dict((flavor_of(tree) if flavor is None else flavor) or {})
    model["availability_zone"] = dict((zone_of(tree) if zone is None else zone) or {})
    return model


def _load_balancer(tree: Tree, secrets: Secrets, *, new: bool = False) -> Model:
    model = _plain("load_balancer", tree.load_balancer)
    vip: Row = next(iter(tree.of("vip")), {})
    for model_field, column in VIP_FIELDS:
        model[model_field] = vip.get(column)
    model["vip_sg_ids"] = [row["sg_id"] for row in tree.of("vip_security_group")]
    if additional := tree.of("additional_vip"):
        model["additional_vips"] = [
            {name: row.get(name) for name in ("ip_address", "network_id", "port_id", "subnet_id")}
            for row in additional
        ]
    if listeners := tree.of("listener"):
        model["listeners"] = [_listener(tree, row, secrets, new=new) for row in listeners]
    if pools := tree.of("pool"):
        model["pools"] = [_pool(tree, row, secrets) for row in pools]
    return model


def listener(tree: Tree, identifier: str, *, secrets: Secrets = NO_SECRETS, new: bool = False) -> Model:
    """new: it is being made (its absent insert_headers are then an empty mapping)."""
    return _listener(tree, _row(tree, "listener", identifier), secrets, new=new)


def _listener(tree: Tree, row: Row, secrets: Secrets, *, new: bool = False) -> Model:
    model = _plain("listener", row)
    default = tree.get("pool", row["default_pool_id"]) if row.get("default_pool_id") else None
    model["default_pool"] = None if default is None else _pool(tree, default, secrets)
    model["l7policies"] = [
        _l7policy(tree, policy) for policy in tree.of("l7policy") if policy["listener_id"] == row["id"]
    ]
    model["allowed_cidrs"] = [
        cidr["cidr"] for cidr in tree.of("listener_cidr") if cidr["listener_id"] == row["id"]
    ]
    if sni := [s["tls_container_id"] for s in tree.of("sni") if s["listener_id"] == row["id"]]:
        model["sni_container_refs"] = sni
    elif new and model["insert_headers"] is None:
        model["insert_headers"] = {}
    _add_listener_data(model, secrets)
    return model


def _add_listener_data(model: Model, secrets: Secrets) -> None:
    _certificate(model, "default_tls_container_ref", "default_tls_container_data", secrets)
    references = model.get("sni_container_refs") or ()
    if found := [dict(secrets.certificates[ref]) for ref in references if ref in secrets.certificates]:
        model["sni_container_data"] = found
    _text(model, "client_ca_tls_container_ref", "client_ca_tls_container_data", secrets)
    _text(model, "client_crl_container_ref", "client_crl_container_data", secrets)


def _certificate(model: Model, reference: str, data: str, secrets: Secrets) -> None:
    if (held := secrets.certificates.get(model.get(reference) or "")) is not None:
        model[data] = dict(held)


def _text(model: Model, reference: str, data: str, secrets: Secrets) -> None:
    if (held := secrets.texts.get(model.get(reference) or "")) is not None:
        model[data] = held


def pool(tree: Tree, identifier: str, *, secrets: Secrets = NO_SECRETS) -> Model:
    return _pool(tree, _row(tree, "pool", identifier), secrets)


def _pool(tree: Tree, row: Row, secrets: Secrets) -> Model:
    model = _plain("pool", row)
    identifier = row["id"]
    monitor = next((m for m in tree.of("health_monitor") if m["pool_id"] == identifier), None)
    model["healthmonitor"] = None if monitor is None else _plain("health_monitor", monitor)
    model["members"] = [_plain("member", m) for m in tree.of("member") if m["pool_id"] == identifier]
    kept = next((s for s in tree.of("session_persistence") if s["pool_id"] == identifier), None)
    model["session_persistence"] = None if kept is None else session_persistence(kept)
    if users := listeners_of(tree, identifier):
        model["listener_id"] = users[0]
    _add_pool_data(model, secrets)
    return model


def _add_pool_data(model: Model, secrets: Secrets) -> None:
    _certificate(model, "tls_container_ref", "tls_container_data", secrets)
    _text(model, "ca_tls_container_ref", "ca_tls_container_data", secrets)
    _text(model, "crl_container_ref", "crl_container_data", secrets)


def session_persistence(row: Row) -> dict[str, Any]:
    return {
        name: row.get(name)
        for name in ("type", "cookie_name", "persistence_timeout", "persistence_granularity")
    }


def listeners_of(tree: Tree, pool_id: str) -> list[str]:
    """Ids of the listeners that use the pool: as their default, or by an enabled policy that has rules."""
    ruled = {rule["l7policy_id"] for rule in tree.of("l7rule")}
    redirecting = {
        policy["listener_id"]
        for policy in tree.of("l7policy")
        if policy.get("redirect_pool_id") == pool_id and policy["enabled"] and policy["id"] in ruled
    }
    default = [row["id"] for row in tree.of("listener") if row.get("default_pool_id") == pool_id]
    return default + [
        row["id"] for row in tree.of("listener") if row["id"] in redirecting and row["id"] not in default
    ]


def member(tree: Tree, identifier: str) -> Model:
    return _plain("member", _row(tree, "member", identifier))


def member_of(row: Row) -> Model:
    """The same from a row that is in no tree yet."""
    return _plain("member", row)


def health_monitor(tree: Tree, identifier: str) -> Model:
    return _plain("health_monitor", _row(tree, "health_monitor", identifier))


def l7policy(tree: Tree, identifier: str) -> Model:
    return _l7policy(tree, _row(tree, "l7policy", identifier))


def _l7policy(tree: Tree, row: Row) -> Model:
    model = _plain("l7policy", row)
    model["rules"] = [_plain("l7rule", r) for r in tree.of("l7rule") if r["l7policy_id"] == row["id"]]
    return model


def l7rule(tree: Tree, identifier: str) -> Model:
    return _plain("l7rule", _row(tree, "l7rule", identifier))


def batch_member(row: Row, given: Collection[str] | None = None) -> Model:
    """One entry of `member_batch_update`.

    given: wire names that the request had for a member that was there before; its name and subnet are left out unless given.  None: a
    new member, or one that the request did not mention.
    """
    model = _plain("member", row)
    if given is not None:
        for name in ("name", "subnet_id"):
            if name not in given:
                del model[name]
    return model


# ------------------------------------------------------------ changed objects


def changed(
    table: str, identifier: str, values: Mapping[str, Any], *, secrets: Secrets = NO_SECRETS
) -> Model:
    """The new side of an update: the id and what `values` sets.

    values: by column or by the model's own field names; relations as `allowed_cidrs`, `sni_container_refs` (None is not sent),
    `session_persistence`, `vip_qos_policy_id`, `vip_sg_ids`.  Other names (statuses, times, tags) are left out.
    """
    name, fields, extra = _MODELS[table]
    model: Model = {"$type": name}
    for model_field, column in fields:
        if column == "id":
            model[model_field] = identifier
        elif column in values:
            model[model_field] = _value(column, values[column])
        elif model_field in values:
            model[model_field] = _value(column, values[model_field])
    for relation in extra:
        if relation in values and not (relation == "sni_container_refs" and values[relation] is None):
            value = values[relation]
            model[relation] = (
                list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
            )
    if table == "listener":
        _add_listener_data(model, secrets)
    elif table == "pool":
        _add_pool_data(model, secrets)
    return model


# ------------------------------------------------------------ secrets


def without_secrets(value: Any) -> Any:
    """The same arguments without key material: references stay."""
    if isinstance(value, Mapping):
        return {key: without_secrets(item) for key, item in value.items() if key not in DATA_FIELDS}
    if isinstance(value, list | tuple):
        return [without_secrets(item) for item in value]
    return value


def vip_port_arguments(
    load_balancer_id: str, project_id: str, vip: Row, additional: Iterable[Row], groups: Sequence[str]
) -> list[Any]:
    """Arguments of `create_vip_port` from rows as they will be written."""
    wanted: dict[str, Any] = {"vip_network_id": vip.get("network_id"), "vip_subnet_id": vip.get("subnet_id")}
    for name, column in (
        ("vip_address", "ip_address"),
        ("vip_port_id", "port_id"),
        ("vip_qos_policy_id", "qos_policy_id"),
    ):
        if vip.get(column) is not None:
            wanted[name] = vip[column]
    if groups:
        wanted["vip_sg_ids"] = list(groups)
    more = [
        {
            "network_id": row.get("network_id"),
            "port_id": row.get("port_id"),
            "subnet_id": row.get("subnet_id"),
            **({"ip_address": row["ip_address"]} if row.get("ip_address") is not None else {}),
        }
        for row in additional
    ]
    return [load_balancer_id, project_id, wanted, more]

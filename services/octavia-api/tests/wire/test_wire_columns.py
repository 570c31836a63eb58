"""From wire names and forms to columns."""

from roadstead_octavia.resources.listener import wire as listener
from roadstead_octavia.resources.loadbalancer import wire as loadbalancer
from roadstead_octavia.resources.pool import wire as pool
from roadstead_octavia.resources.quota import wire as quota
from roadstead_octavia.wire.columns import VIP, new_row, to_row, to_vip


def test_names_and_lists_take_the_form_of_their_columns() -> None:
    values = {
        "admin_state_up": False,
        "default_tls_container_ref": "ref",
        "loadbalancer_id": "lb",
        "tls_versions": ["TLSv1.2", "TLSv1.3"],
        "alpn_protocols": None,
        "insert_headers": {"a": "b"},
    }
    assert to_row(listener.RESOURCE, values) == {
        "enabled": False,
        "tls_certificate_id": "ref",
        "load_balancer_id": "lb",
        "tls_versions": "TLSv1.2,TLSv1.3",
        "alpn_protocols": None,
        "insert_headers": {"a": "b"},
    }


def test_rows_of_other_tables_are_no_columns() -> None:
    values = {
        "tags": ["a"],
        "allowed_cidrs": [],
        "sni_container_refs": [],
        "l7policies": [],
        "tenant_id": "x",
    }
    assert to_row(listener.RESOURCE, values) == {}
    assert to_row(pool.RESOURCE, {"listener_id": "l", "session_persistence": {}, "members": []}) == {}


def test_the_vip_has_a_row_of_its_own() -> None:
    values = {"name": "n", "vip_address": "192.0.2.1", "vip_sg_ids": ["g"], "vip_qos_policy_id": None}
    assert to_row(loadbalancer.RESOURCE, values) == {"name": "n"}
    assert to_vip(loadbalancer.RESOURCE, values) == {"ip_address": "192.0.2.1", "qos_policy_id": None}


def test_a_new_row_has_every_column_that_the_body_can_set() -> None:
    row = new_row(pool.POST, {"protocol": "HTTP"})
    assert row["protocol"] == "HTTP"
    assert row["tls_ciphers"] is None
    assert set(row) == {
        "name",
        "description",
        "enabled",
        "load_balancer_id",
        "protocol",
        "lb_algorithm",
        "project_id",
        "tls_certificate_id",
        "ca_tls_certificate_id",
        "crl_container_id",
        "tls_enabled",
        "tls_ciphers",
        "tls_versions",
        "alpn_protocols",
    }
    vip = new_row(loadbalancer.POST, {"vip_port_id": "p"}, VIP)
    assert vip == {
        "ip_address": None,
        "port_id": "p",
        "subnet_id": None,
        "network_id": None,
        "qos_policy_id": None,
    }


def test_of_two_names_for_a_quota_the_one_without_underscore_counts() -> None:
    for values in ({"loadbalancer": 1, "load_balancer": 2}, {"load_balancer": 2, "loadbalancer": 1}):
        assert to_row(quota.RESOURCE, values) == {"load_balancer": 1}

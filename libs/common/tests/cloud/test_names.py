"""Names, tags and metadata: golden values that must never change."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.cloud import names

ID = "6f1f3f30-6d0b-4f1f-9d3e-6a2c1a5f0c11"


def test_inv_137_inv_129_inv_130_inv_131_inv_132_names_are_the_golden_ones() -> None:
    assert names.identity_name(ID) == "unikorn-identity-6f1f3f30-6d0b-4f1f-9d3e-6a2c1a5f0c11"
    assert names.KEYPAIR_NAME == "unikorn-openstack-provider"
    assert names.network_name(ID) == "network-6f1f3f30-6d0b-4f1f-9d3e-6a2c1a5f0c11"
    assert names.security_group_name(ID) == "securitygroup-6f1f3f30-6d0b-4f1f-9d3e-6a2c1a5f0c11"
    assert names.server_name("web-1") == "web-1"
    assert names.port_name(ID) == "server-6f1f3f30-6d0b-4f1f-9d3e-6a2c1a5f0c11"
    assert names.volume_name(ID) == "volume-6f1f3f30-6d0b-4f1f-9d3e-6a2c1a5f0c11"
    assert names.loadbalancer_name(ID) == "lb-6f1f3f30-6d0b-4f1f-9d3e-6a2c1a5f0c11"
    assert names.loadbalancer_prefix(ID) == "lb-6f1f3f30-6d0b-4f1f-9d3e-6a2c1a5f0c11-"
    assert names.listener_name(ID, "http") == "lb-6f1f3f30-6d0b-4f1f-9d3e-6a2c1a5f0c11-http-listener"
    assert names.pool_name(ID, "http") == "lb-6f1f3f30-6d0b-4f1f-9d3e-6a2c1a5f0c11-http-pool"
    assert names.monitor_name(ID, "http") == "lb-6f1f3f30-6d0b-4f1f-9d3e-6a2c1a5f0c11-http-monitor"


def test_inv_137_inv_005_project_tags_are_the_golden_ones() -> None:
    assert names.project_tags("org", "proj") == ["organization=org", "project=proj"]


def test_inv_137_inv_134_server_metadata_is_the_golden_one() -> None:
    tags = [{"name": "kubernetes.unikorn-cloud.org/cluster-id", "value": "c1"}]
    found = names.server_metadata(tags, server_id="s", region_id="r", organization_id="o", project_id="p")
    assert list(found.items()) == [
        ("kubernetes:cluster_id", "c1"),
        ("region:server_id", "s"),
        ("region:region_id", "r"),
        ("identity:organization_id", "o"),
        ("identity:project_id", "p"),
        ("serverID", "s"),
        ("organizationID", "o"),
        ("projectID", "p"),
        ("regionID", "r"),
    ]


def test_inv_136_system_keys_win_over_user_tags() -> None:
    tags = [{"name": "region.example.com/server-id", "value": "mine"}]
    found = names.server_metadata(tags, server_id="s", region_id="r", organization_id="o", project_id="p")
    assert found["region:server_id"] == "s"


def test_inv_137_inv_152_inv_153_inv_154_volume_metadata_is_the_golden_one() -> None:
    tags = [
        {"name": "backup.example.com/keep-days", "value": "7"},
        *(
            {"name": f"region.example.com/{local}", "value": "mine"}
            for local in ("volume-id", "network-id", "region-id")
        ),
        {"name": "region.example.com/identity-id", "value": "mine"},
        {"name": "identity.example.com/organization-id", "value": "mine"},
        {"name": "identity.example.com/project-id", "value": "mine"},
    ]
    found = names.volume_metadata(
        tags,
        volume_id="v",
        network_id="n",
        region_id="r",
        identity_id="i",
        organization_id="o",
        project_id="p",
    )
    assert found == {
        "backup:keep_days": "7",
        "identity:organization_id": "o",
        "identity:project_id": "p",
        "region:identity_id": "i",
        "region:region_id": "r",
        "region:network_id": "n",
        "region:volume_id": "v",
    }


@pytest.mark.parametrize(
    ("tag", "key"),
    [
        ("kubernetes.unikorn-cloud.org/cluster-id", "kubernetes:cluster_id"),
        ("a-b.example/c", "a-b:c"),
        ("a.x.y/c-d-e", "a:c_d_e"),
        ("Bare", None),
        ("bare", None),
        ("no-domain/local", None),
        ("a.example.com/Upper", None),
        ("Upper.example.com/local", None),
        ("a.example.com/two/parts", None),
        ("a.example.com/", None),
        ("a.example.com/under_score", None),
        (".example.com/local", None),
        ("a./local", None),
        ("a.example.com/local\n", None),
    ],
)
def test_ref_053_tag_names_of_another_shape_are_left_out(tag: Any, key: Any) -> None:
    assert names.metadata_key(tag) == key
    expected = {} if key is None else {key: "v"}
    assert names.user_metadata([{"name": tag, "value": "v"}]) == expected


def test_no_tags_at_all_is_no_metadata() -> None:
    assert names.user_metadata(None) == {}


@given(st.text(max_size=600), st.text(max_size=600))
def test_long_texts_are_cut_to_the_limit_and_stay_different(one: Any, other: Any) -> None:
    assert len(names.fit(one)) <= names.NAME_LIMIT
    assert names.fit(one) == one or len(one) > names.NAME_LIMIT
    assert (names.fit(one) == names.fit(other)) == (one == other)


def test_long_texts_differ_by_their_end_too() -> None:
    stem = "x" * 300
    assert names.fit(stem + "a") != names.fit(stem + "b")
    assert names.fit(stem + "a")[:238] == "x" * 238


def test_a_load_balancers_prefix_is_no_other_ones() -> None:
    other = ID[:-1] + "2"
    assert not names.listener_name(other, "http").startswith(names.loadbalancer_prefix(ID))
    assert names.pool_name(ID, "http").startswith(names.loadbalancer_prefix(ID))


@pytest.mark.parametrize(
    ("server", "ours"),
    [
        ({"name": "web", "metadata": {"serverID": "s"}}, True),
        ({"name": "web", "metadata": {"serverID": "S"}}, False),
        ({"name": "web", "metadata": {}}, False),
        ({"name": "web", "metadata": None}, False),
        ({"name": "web"}, False),
    ],
)
def test_a_server_is_known_by_its_metadata_only(server: Any, ours: Any) -> None:
    assert names.bears_server("s")(server) is ours

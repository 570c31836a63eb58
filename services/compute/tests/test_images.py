"""Images: which are valid, and what they say in neutral words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.region import RegionSpec
from roadstead_compute.images import Image, ImageGpu, Os, convert, export, is_valid, query, reply

GIB = 1 << 30
KEY = "-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----"


def glance(**changes: Any) -> dict[str, Any]:
    """A valid public image; a value of ... takes the property away."""
    base: dict[str, Any] = {
        "id": "i-1",
        "name": "ubuntu",
        "status": "active",
        "visibility": "public",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-02T00:00:00Z",
        "min_disk": 0,
        "virtual_size": None,
        "unikorn:os:kernel": "linux",
        "unikorn:os:family": "debian",
        "unikorn:os:distro": "ubuntu",
        "unikorn:os:version": "24.04",
        "unikorn:virtualization": "any",
    }
    return {k: v for k, v in {**base, **changes}.items() if v is not ...}


def region(key: str | None = None, **openstack: Any) -> RegionSpec:
    part: dict[str, Any] = {
        "endpoint": "http://cloud.invalid",
        "serviceAccountSecret": {"name": "x"},
        **openstack,
    }
    if key is not None:
        part["image"] = {"selector": {"signingKey": key}}
    return RegionSpec.model_validate({"provider": "openstack", "openstack": part})


def exported(*listed: dict[str, Any], **openstack: Any) -> list[str]:
    return [image.id for image in export(listed, region(**openstack)).images]


# ---------------------------------------------------------------- validity

REQUIRED = [
    "unikorn:os:kernel",
    "unikorn:os:family",
    "unikorn:os:distro",
    "unikorn:os:version",
    "unikorn:virtualization",
]


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("value", [..., None, "", 3])
def test_inv_209_inv_219_an_image_that_lacks_a_required_property_is_absent(name: str, value: Any) -> None:
    assert exported(glance(**{name: value})) == []


@pytest.mark.parametrize(
    "properties",
    [
        {"unikorn:os:kernel": "windows"},
        {"unikorn:virtualization": "paravirtual"},
        {"unikorn:os:variant": 1},
        {"unikorn:os:codename": ["noble"]},
        {"unikorn:digest": 1},
        {"unikorn:tag:team": 7},
        {"unikorn:package:kubernetes": "1.30.0"},
        {"unikorn:package:kubernetes": "v1.30"},
        {"unikorn:package:slurmd": "v1.2.3-rc1"},
        {"unikorn:package:slurmd": "v1.2.3\n"},
        {"unikorn:gpu_vendor": "Intel"},
        {"unikorn:gpu_vendor": "AMD"},
        {"unikorn:gpu_vendor": "AMD", "unikorn:gpu_models": "MI300"},
        {"unikorn:gpu_vendor": "AMD", "unikorn:gpu_driver_version": "1"},
        {"unikorn:gpu_vendor": "AMD", "unikorn:gpu_models": "a,,b", "unikorn:gpu_driver_version": "1"},
    ],
)
def test_inv_209_inv_219_an_image_with_a_wrong_property_is_absent(properties: dict[str, Any]) -> None:
    listed = [glance(**properties), glance(id="good")]
    found = export(listed, region())
    assert [image.id for image in found.images] == ["good"]
    assert found.invalid == 1


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"unikorn:package:kubernetes": "v1.30.12", "unikorn:package:other": "anything"},
        {"unikorn:gpu_models": "no vendor, so it is not looked at"},
        {
            "unikorn:gpu_vendor": "NVIDIA",
            "unikorn:gpu_models": "H100,A100 80GB",
            "unikorn:gpu_driver_version": "1",
        },
    ],
)
def test_what_fulfils_the_schema_is_present(properties: dict[str, Any]) -> None:
    assert exported(glance(**properties)) == ["i-1"]


@pytest.mark.parametrize("visibility", ["private", "shared", "community", None])
def test_only_public_images_are_listed_whatever_the_filter_did(visibility: str | None) -> None:
    assert exported(glance(visibility=visibility)) == []


def test_images_are_listed_by_creation_time() -> None:
    listed = [
        glance(id="c", created_at="2026-03"),
        glance(id="a", created_at="2026-01"),
        glance(id="b", created_at="2026-02"),
    ]
    assert exported(*listed) == ["a", "b", "c"]


def test_inv_212_without_a_signing_key_signatures_are_not_looked_at() -> None:
    assert exported(glance(**{"unikorn:digest": "nonsense"})) == ["i-1"]


def test_inv_210_inv_211_a_signing_key_shuts_out_what_cannot_be_checked_yet() -> None:
    owned = glance(id="owned", **{"unikorn:organization:id": "acme"})
    found = export([glance(**{"unikorn:digest": "c2ln"}), owned], region(KEY))
    assert [image.id for image in found.images] == ["owned"]
    assert found.unsigned == 1


def test_a_region_of_another_kind_has_no_images() -> None:
    assert export([glance()], RegionSpec(provider="simulated")).images == ()


# ---------------------------------------------------------------- conversion


def test_inv_213_the_full_set_of_properties_becomes_neutral() -> None:
    found = convert(
        glance(
            min_disk=20,
            **{
                "architecture": "aarch64",
                "unikorn:os:variant": "server",
                "unikorn:os:codename": "noble",
                "unikorn:virtualization": "baremetal",
                "unikorn:package:kubernetes": "v1.30.0",
                "unikorn:package:slurmd": "v24.5.1",
                "unikorn:gpu_vendor": "NVIDIA",
                "unikorn:gpu_models": "H100,A100",
                "unikorn:gpu_driver_version": "550",
                "unikorn:organization:id": "acme",
                "unikorn:identity_id": "identity",
                "unikorn:tag:team": "blue",
            },
        ),
        "x86_64",
    )
    assert found == Image(
        id="i-1",
        name="ubuntu",
        created="2026-01-01T00:00:00Z",
        modified="2026-01-02T00:00:00Z",
        status="ready",
        architecture="aarch64",
        sizeGiB=20,
        virtualization="baremetal",
        os=Os("linux", "debian", "ubuntu", "24.04", "server", "noble"),
        packages={"kubernetes": "v1.30.0", "slurmd": "v24.5.1"},
        gpu=ImageGpu("NVIDIA", ("H100", "A100"), "550"),
        organizationID="acme",
        identityID="identity",
        tags={"team": "blue"},
    )
    assert reply([found]) == [
        {
            "id": "i-1",
            "name": "ubuntu",
            "created": "2026-01-01T00:00:00Z",
            "modified": "2026-01-02T00:00:00Z",
            "status": "ready",
            "architecture": "aarch64",
            "sizeGiB": 20,
            "virtualization": "baremetal",
            "os": {
                "kernel": "linux",
                "family": "debian",
                "distro": "ubuntu",
                "version": "24.04",
                "variant": "server",
                "codename": "noble",
            },
            "packages": {"kubernetes": "v1.30.0", "slurmd": "v24.5.1"},
            "gpu": {"vendor": "NVIDIA", "models": ["H100", "A100"], "driver": "550"},
            "organizationId": "acme",
            "identityId": "identity",
            "tags": {"team": "blue"},
        }
    ]


@pytest.mark.parametrize(
    ("own", "default", "expected"),
    [
        pytest.param("aarch64", "x86_64", "aarch64", id="inv_214"),
        pytest.param(..., "aarch64", "aarch64", id="inv_215"),
        pytest.param("", "aarch64", "aarch64", id="inv_215 empty"),
        pytest.param(..., None, "x86_64", id="inv_216"),
    ],
)
def test_inv_214_inv_215_inv_216_the_architecture_has_three_sources(
    own: Any, default: Any, expected: str
) -> None:
    assert convert(glance(architecture=own), default).architecture == expected


@pytest.mark.parametrize(
    ("least", "virtual", "gib"),
    [(0, None, 0), (7, 99 * GIB, 7), (0, GIB, 1), (0, GIB + 1, 2), (None, 3 * GIB - 1, 3)],
)
def test_the_size_is_min_disk_or_the_virtual_size_rounded_up(least: Any, virtual: Any, gib: int) -> None:
    assert convert(glance(min_disk=least, virtual_size=virtual), None).sizeGiB == gib


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("queued", "pending"),
        ("saving", "creating"),
        ("importing", "creating"),
        ("uploading", "creating"),
        ("active", "ready"),
        ("killed", "failed"),
        ("deleted", "failed"),
        ("pending_delete", "failed"),
        ("deactivated", "failed"),
        ("something new", "failed"),
        (None, "failed"),
    ],
)
def test_statuses_have_four_words_and_nothing_unknown_is_ready(status: Any, expected: str) -> None:
    assert convert(glance(status=status), None).status == expected


def test_a_failed_import_does_not_stay_pending_for_ever() -> None:
    failed = glance(status="queued", os_glance_failed_import="local")
    assert convert(failed, None).status == "failed"
    assert convert(glance(status="queued", os_glance_failed_import=""), None).status == "pending"


def test_the_old_kubernetes_property_fills_a_gap_only() -> None:
    old = {"unikorn:kubernetes_version": "v1.1.1"}
    assert convert(glance(**old), None).packages == {"kubernetes": "v1.1.1"}
    both = {**old, "unikorn:package:kubernetes": "v2.2.2"}
    assert convert(glance(**both), None).packages == {"kubernetes": "v2.2.2"}


def test_no_tags_are_null_and_left_out() -> None:
    found = convert(glance(), None)
    assert found.tags is None
    assert not {"tags", "gpu", "packages", "organizationId", "identityId"} & reply([found])[0].keys()


# ---------------------------------------------------------------- who sees what

NOBODYS = convert(glance(id="n", name="b"), None)
OURS = convert(glance(id="o", name="c", **{"unikorn:organization:id": "acme"}), None)
THEIRS = convert(glance(id="t", name="a", status="queued", **{"unikorn:organization:id": "other"}), None)
ALL = [NOBODYS, OURS, THEIRS]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"organization": "acme"}, ["n", "o"]),
        ({"organization": "acme", "owned": True}, ["o"]),
        ({"organization": "other"}, ["t", "n"]),
        ({"organization": None}, ["t", "n", "o"]),
        ({"organization": None, "owned": True}, ["t", "o"]),
        ({"organization": None, "status": "pending"}, ["t"]),
        ({"organization": "acme", "status": "pending"}, []),
    ],
)
def test_an_organization_sees_its_own_and_what_is_for_all(asked: dict[str, Any], expected: list[str]) -> None:
    assert [image.id for image in query(ALL, **asked)] == expected


VALUES = st.one_of(
    st.none(), st.text(max_size=6), st.integers(), st.just("linux"), st.just("any"), st.just("v1.2.3")
)
NAMES = st.sampled_from(
    [
        *REQUIRED,
        "unikorn:package:slurmd",
        "unikorn:gpu_vendor",
        "unikorn:gpu_models",
        "unikorn:tag:x",
        "status",
    ]
)


@given(st.dictionaries(NAMES, VALUES))
def test_what_is_valid_can_be_converted_and_told(properties: dict[str, Any]) -> None:
    found = glance(**properties)
    if is_valid(found):
        (told,) = reply([convert(found, None)])
        assert told["os"]["kernel"] == "linux"
        assert told["virtualization"] in ("any", "baremetal", "virtualized")

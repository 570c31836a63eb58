"""Static rules, inventory rules, ids (resources.md section 5)."""

import base64
from typing import Any
from uuid import UUID, uuid5

import pytest
from pydantic import ValidationError

from roadstead.reconcile.kind import Problem
from roadstead_compute.server import KIND, needs
from roadstead_compute.server.model import ServerSpec
from roadstead_compute.server.offer import FlavorFacts, ImageFacts, Offer, offer_of
from roadstead_compute.server.validate import check_groups, check_inventory, validate

FLAVOR = FlavorFacts(disk=20, architecture="x86_64")
IMAGE = ImageFacts(status="ready", size=10, architecture="x86_64", virtualization="any")


def codes(problems: list[Problem]) -> list[str]:
    return [p.code for p in problems]


def check(build: Any, spec: dict[str, Any], stored: Any = None, **metadata: Any) -> list[str]:
    return codes(validate(build.spec(**spec), build.metadata(**metadata), stored, build.key()))


def test_a_plain_spec_is_accepted(build: Any) -> None:
    assert check(build, {}) == []


def test_ref_037_one_name_on_a_network_is_one_id(build: Any) -> None:
    expected = str(uuid5(UUID(build.network), "web-1"))
    assert KIND.id_of(build.metadata(), build.spec()) == expected
    other = build.spec(networks=[{"id": build.image}])
    assert KIND.id_of(build.metadata(), other) != expected
    assert KIND.id_of(build.metadata(name="web-2"), build.spec()) != expected


def test_every_problem_is_told_at_once(build: Any) -> None:
    pair = {"cidr": "192.0.2.0/28"}
    spec = {
        "image": None,
        "networks": [{"id": build.network, "allowedAddressPairs": [pair, pair]}, {"id": build.network}],
        "securityGroups": [{"id": build.group}] * 2,
        "volumes": [{"id": build.volume_id}] * 2,
        "sshInjection": "ca",
        "userData": "%%%",
    }
    found = check(build, spec, name=" web ", networkId=build.image)
    assert found.count("REPEATED") == 3
    assert {
        "NAME_INVALID",
        "IMAGE_MISSING",
        "ONE_NETWORK",
        "NETWORK_MISMATCH",
        "SSH_CA_MISSING",
        "USERDATA_INVALID",
    } <= set(found)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"sshInjection": "none"}, []),
        ({"sshInjection": "identityKeypair"}, []),
        ({"sshInjection": "ca"}, ["SSH_CA_MISSING"]),
        ({"sshInjection": "none", "sshCertificateAuthorityID": "x"}, ["SSH_CA_UNUSED", "NOT_OFFERED"]),
        ({"sshCertificateAuthorityID": "x"}, ["NOT_OFFERED"]),
        ({"infrastructureRef": "host", "sshInjection": "none"}, ["NOT_OFFERED"]),
    ],
)
def test_ssh_rules_and_what_is_not_offered_yet(build: Any, spec: dict[str, Any], expected: list[str]) -> None:
    if "sshCertificateAuthorityID" in spec:
        spec = {**spec, "sshCertificateAuthorityID": build.image}
    assert check(build, spec) == expected


def test_ref_042_pinned_with_identity_keypair_is_refused(build: Any) -> None:
    assert "SSH_PINNED_KEYPAIR" in check(build, {"infrastructureRef": "host"})


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"flavorID": "f-2"}, "FLAVOR_IMMUTABLE"),
        ({"networks": [{"id": "33333333-3333-4333-8333-333333333333"}]}, "NETWORK_IMMUTABLE"),
        ({"sshInjection": "none"}, "SSH_IMMUTABLE"),
        ({"infrastructureRef": "host", "sshInjection": "none"}, "PIN_IMMUTABLE"),
    ],
)
def test_ref_038_inv_050_fixed_parts_are_refused_with_422(
    build: Any, spec: dict[str, Any], code: str
) -> None:
    found = validate(build.spec(**spec), build.metadata(), build.resource(), build.key())
    problem = next(p for p in found if p.code == code)
    assert problem.status == 422


def test_ref_038_a_rename_is_refused(build: Any) -> None:
    assert check(build, {}, build.resource(), name="web-2") == ["NAME_IMMUTABLE"]


def test_the_resolved_mode_counts_not_its_spelling(build: Any) -> None:
    assert check(build, {"sshInjection": "identityKeypair"}, build.resource()) == []


def test_what_may_change_may_change(build: Any) -> None:
    pairs = [{"cidr": "192.0.2.0/28", "macAddress": "FA-16-3E-00-00-02"}]
    spec = {
        "image": {"id": build.other_image},
        "networks": [{"id": build.network, "allowedAddressPairs": pairs}],
        "securityGroups": [],
        "publicIPAllocation": {"enabled": True},
        "volumes": [{"id": build.volume_id}],
        "userData": base64.b64encode(b"#!/bin/sh\n").decode(),
    }
    assert check(build, spec, build.resource()) == []


def test_ref_046_bytes_that_were_accepted_once_pass_unchanged(build: Any) -> None:
    stored = build.resource({"userData": "%%%"})
    assert check(build, {"userData": "%%%"}, stored) == []
    assert check(build, {"userData": "%%"}, stored) == ["USERDATA_INVALID"]


def test_user_data_has_a_bound(build: Any) -> None:
    assert check(build, {"userData": "QUFB" * 20000}) == ["USERDATA_INVALID"]


@pytest.mark.parametrize(
    "spec",
    [
        {"image": {"id": "not-a-uuid"}},
        {"networks": []},
        {
            "networks": [
                {
                    "id": "22222222-2222-4222-8222-222222222222",
                    "allowedAddressPairs": [{"cidr": "10.0.0.1/8"}],
                }
            ]
        },
        {
            "networks": [
                {
                    "id": "22222222-2222-4222-8222-222222222222",
                    "allowedAddressPairs": [{"cidr": "10.0.0.0/8", "macAddress": "fa:16"}],
                }
            ]
        },
        {"sshInjection": "password"},
        {"flavorID": ""},
    ],
)
def test_shapes_that_the_model_refuses(build: Any, spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        build.spec(**spec)


def test_ids_and_addresses_take_their_canonical_form(build: Any) -> None:
    pair = {"cidr": "192.0.2.7", "macAddress": "FA-16-3E-00-00-02"}
    spec = build.spec(
        image={"id": build.image.upper()}, networks=[{"id": build.network, "allowedAddressPairs": [pair]}]
    )
    assert spec.image.id == build.image
    assert spec.nic.allowedAddressPairs[0].cidr == "192.0.2.7/32"
    assert spec.nic.allowedAddressPairs[0].macAddress == "fa:16:3e:00:00:02"


def test_needs_are_identity_network_and_groups(build: Any) -> None:
    found = {(n.kind, n.id) for n in needs(build.resource())}
    assert found == {("network", build.network), ("securitygroup", build.group)}


# ---------------------------------------------------------------- inventory


def offered(
    build: Any, offer: Offer, spec: dict[str, Any] | None = None, old: ServerSpec | None = None
) -> list[str]:
    return codes(check_inventory(build.spec(**(spec or {})), old, offer, "org"))


def with_image(**changes: Any) -> Offer:
    return Offer(FLAVOR, ImageFacts(**{**IMAGE.__dict__, **changes}))


def test_ref_043_what_fits_is_accepted(build: Any) -> None:
    assert offered(build, Offer(FLAVOR, IMAGE)) == []
    assert offered(build, with_image(architecture="", virtualization="", size=20)) == []
    assert offered(build, Offer(FlavorFacts(disk=0), with_image(size=500).image)) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"status": "creating"}, "IMAGE_NOT_READY"),
        ({"architecture": "aarch64"}, "IMAGE_ARCH"),
        ({"size": 21}, "IMAGE_DISK"),
        ({"virtualization": "baremetal"}, "IMAGE_VIRT"),
        ({"virtualization": "quantum"}, "IMAGE_VIRT_UNKNOWN"),
    ],
)
def test_ref_043_images_that_do_not_fit_are_422(build: Any, changes: dict[str, Any], code: str) -> None:
    found = check_inventory(build.spec(), None, with_image(**changes), "org")
    assert [(p.code, p.status) for p in found] == [(code, 422)]


def test_ref_043_a_virtualized_image_needs_a_flavor_that_is_not_bare_metal(build: Any) -> None:
    metal = FlavorFacts(disk=20, baremetal=True)
    assert offered(build, Offer(metal, with_image(virtualization="virtualized").image)) == ["IMAGE_VIRT"]
    assert offered(build, Offer(metal, with_image(virtualization="baremetal").image)) == []
    assert offered(build, Offer(metal, with_image(virtualization="any").image)) == []


def test_an_image_that_is_not_there_or_another_organizations_is_404(build: Any) -> None:
    for image in (None, ImageFacts(**{**IMAGE.__dict__, "organization": "else"})):
        found = check_inventory(build.spec(), None, Offer(FLAVOR, image), "org")
        assert [(p.code, p.status) for p in found] == [("IMAGE_NOT_FOUND", 404)]
    assert offered(build, with_image(organization="org")) == []


def test_ref_041_a_pinned_flavor_needs_a_pin(build: Any) -> None:
    offer = Offer(FlavorFacts(disk=20, pinned_only=True), IMAGE)
    assert offered(build, offer) == ["FLAVOR_PINNED"]
    assert offered(build, offer, {"infrastructureRef": "host", "sshInjection": "none"}) == []


def test_a_flavor_that_is_not_offered(build: Any) -> None:
    assert offered(build, Offer(None, IMAGE)) == ["FLAVOR_GONE"]


def test_ref_044_an_update_checks_only_a_changed_image_and_forgives_a_withdrawn_flavor(build: Any) -> None:
    old = build.spec()
    new = {"image": {"id": build.other_image}}
    assert offered(build, Offer(None, None), {}, old) == []
    assert offered(build, Offer(None, with_image(architecture="aarch64").image), new, old) == []
    assert offered(build, Offer(None, with_image(status="failed").image), new, old) == ["IMAGE_NOT_READY"]
    assert offered(build, Offer(FLAVOR, with_image(architecture="aarch64").image), new, old) == ["IMAGE_ARCH"]


def test_ref_039_groups_of_another_network(build: Any) -> None:
    assert codes(check_groups(build.spec(), {build.group: build.image})) == ["GROUP_NETWORK"]
    assert check_groups(build.spec(), {build.group: build.network}) == []
    assert check_groups(build.spec(), {}) == []


def test_an_inventory_that_is_not_loaded_offers_nothing_yet(build: Any) -> None:
    class Empty:
        def loaded(self, region: str) -> bool:
            return False

        def flavor(self, region: str, ident: str) -> None:
            raise AssertionError("asked before it was loaded")

        image = flavor

    assert offer_of(Empty(), build.region, "f", None) is None
    assert offer_of(None, build.region, "f", None) is None

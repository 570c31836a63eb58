"""configure and register against the simulated cloud."""

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from roadstead.clock import SystemClock
from roadstead.cloud.administration import read_openrc
from roadstead.cloud.configure import (
    Configured,
    ConfigureError,
    Wanted,
    configure,
    read_shell_text,
    shell_text,
    write_file,
)
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.engine import CloudEngine
from roadstead.cloud.port import Call, RegionDomain, RegionProject
from roadstead.cloud.register import register, secret_of
from roadstead.cloud.sdk import SdkAdministrator
from roadstead.region import RegionSpec
from roadstead.testing.cloudsim import Cloud
from roadstead.testing.cloudsim.http import Front
from roadstead.testing.direct import DirectAdministrator, DirectSender


@pytest.fixture
def sim() -> Cloud:
    return Cloud(seed=3)


def writes(sim: Cloud) -> list[tuple[str, str]]:
    return [(c.method, c.path) for c in sim.log.writes() if not c.path.endswith("/auth/tokens")]


async def test_inv_015_an_empty_cloud_becomes_a_region_whose_provider_works(sim: Cloud) -> None:
    done = await configure(DirectAdministrator(sim), Wanted())
    assert done.values["DOMAIN_NAME"] == "unikorn-openstack"
    assert done.values["PROJECT_NAME"] == done.values["USER_NAME"] == "unikorn-openstack-provider"
    assert done.values["EXTERNAL_NETWORK"]
    made = register(
        name="one",
        namespace="roadstead",
        endpoint=done.values["AUTH_URL"],
        create_secret=True,
        values=done.values,
    )
    assert made.credential is not None
    spec = RegionSpec.model_validate(made.envelope["spec"])
    assert spec.openstack is not None
    keyring = Keyring()
    keyring.put_endpoint("r", spec.openstack.endpoint, spec.openstack.regionName)
    keyring.put_region_secret("r", made.credential["secret"], 1)
    engine = CloudEngine(DirectSender(sim, SystemClock()), keyring, SystemClock())
    access = await engine.access(RegionDomain("r"))
    assert access.roles >= {"manager", "member", "load-balancer_member"}
    assert (await engine.call(Call(RegionProject("r"), "compute", "flavor.detail"))).value


async def test_inv_016_a_second_run_changes_nothing(sim: Cloud) -> None:
    admin = DirectAdministrator(sim)
    first = await configure(admin, Wanted())
    sim.log.clear()
    by_password = await configure(admin, Wanted(password=first.values["PASSWORD"]))
    by_file = await configure(admin, Wanted(), previous=read_shell_text(shell_text(first.values)))
    assert by_password.values == by_file.values == first.values
    assert by_password.steps == by_file.steps == ()
    assert {method for method, _ in writes(sim)} == {"PUT"}, "only grants, which are the same when repeated"
    one, two = (
        register(name="one", namespace="n", endpoint="http://k", create_secret=True, values=each.values)
        for each in (first, by_file)
    )
    assert one == two


async def test_inv_017_without_create_secret_no_credential_is_carried(sim: Cloud) -> None:
    done = await configure(DirectAdministrator(sim), Wanted())
    made = register(
        name="one", namespace="roadstead", endpoint="http://k", secret_name="mine", values=done.values
    )
    assert made.credential is None
    assert made.envelope["spec"]["openstack"]["serviceAccountSecret"] == {
        "namespace": "roadstead",
        "name": "mine",
    }
    assert done.values["PASSWORD"] not in repr(made)


async def test_inv_018_an_existing_user_without_password_stops_before_any_change(sim: Cloud) -> None:
    admin = DirectAdministrator(sim)
    await configure(admin, Wanted())
    sim.log.clear()
    with pytest.raises(ConfigureError, match="supply it, or ask for a rotation"):
        await configure(admin, Wanted(domain_roles=("member", "manager", "brand-new")))
    assert writes(sim) == []


async def test_inv_018_a_wrong_password_stops_before_any_change(sim: Cloud) -> None:
    admin = DirectAdministrator(sim)
    await configure(admin, Wanted())
    sim.log.clear()
    with pytest.raises(ConfigureError, match="not the one of user"):
        await configure(admin, Wanted(password="guess"))
    assert writes(sim) == []


async def test_a_rotation_changes_the_password(sim: Cloud) -> None:
    admin = DirectAdministrator(sim)
    first = await configure(admin, Wanted())
    rotated = await configure(admin, Wanted(rotate=True))
    assert rotated.values["PASSWORD"] != first.values["PASSWORD"]
    assert rotated.values["USER_ID"] == first.values["USER_ID"]
    given = await configure(admin, Wanted(rotate=True, password="given-password"))
    assert given.values["PASSWORD"] == "given-password"


async def test_inv_004_two_deployments_live_in_different_domains(sim: Cloud) -> None:
    admin = DirectAdministrator(sim)
    one = await configure(admin, Wanted(prefix="one"))
    two = await configure(admin, Wanted(prefix="two"))
    for name in ("DOMAIN_ID", "PROJECT_ID", "USER_ID"):
        assert one.values[name] != two.values[name]


async def test_missing_roles_are_made_or_named(sim: Cloud) -> None:
    admin = DirectAdministrator(sim)
    wanted = Wanted(legacy_member_role=True, create_missing_roles=False)
    sim.log.clear()
    with pytest.raises(ConfigureError, match="_member_"):
        await configure(admin, wanted)
    assert writes(sim) == []
    done = await configure(admin, Wanted(legacy_member_role=True))
    assert "role _member_ created" in done.steps


async def test_a_given_domain_is_used_and_a_wrong_one_named(sim: Cloud) -> None:
    admin = DirectAdministrator(sim)
    done = await configure(admin, Wanted(domain_id="default"))
    assert done.values["DOMAIN_ID"] == "default"
    with pytest.raises(ConfigureError, match="no domain nowhere"):
        await configure(admin, Wanted(prefix="x", domain_id="nowhere"))


async def test_wrong_administrator_is_one_clear_line(sim: Cloud) -> None:
    with pytest.raises(ConfigureError, match="unauthorized") as caught:
        await configure(DirectAdministrator(sim, password="wrong"), Wanted())
    assert "\n" not in str(caught.value)


async def test_existing_mode_only_repeats_what_it_is_given(sim: Cloud) -> None:
    admin = DirectAdministrator(sim)
    with pytest.raises(ConfigureError, match="domain-id, project-id, user-id, password"):
        await configure(admin, Wanted(mode="existing"))
    wanted = Wanted(mode="existing", domain_id="d", project_id="p", user_id="u", password="w", flavor="f")
    done = await configure(admin, wanted)
    assert {
        "DOMAIN_ID": "d",
        "PROJECT_ID": "p",
        "USER_ID": "u",
        "PASSWORD": "w",
        "FLAVOR": "f",
    }.items() <= done.values.items()
    assert sim.log.calls() == []


@pytest.mark.integration
async def test_configure_over_openstacksdk(sim: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    with Front(sim) as front:
        openrc = {
            "OS_AUTH_URL": f"{front.url}/identity/v3",
            "OS_USERNAME": "admin",
            "OS_PASSWORD": "admin",
            "OS_PROJECT_NAME": "admin",
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_NAME": "Default",
            "OS_REGION_NAME": "RegionOne",
            "OS_IDENTITY_API_VERSION": "3",
        }
        done = await configure(SdkAdministrator(openrc=openrc), Wanted())
        for name, value in openrc.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HOME", "/nonexistent")
        again = await configure(SdkAdministrator(), Wanted(password=done.values["PASSWORD"]))
    assert again.values == done.values
    assert done.values["AUTH_URL"] == f"{front.url}/identity/v3"
    assert done.values["REGION_NAME"] == "RegionOne"


def test_an_unknown_cloud_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"clouds\.yaml"):
        SdkAdministrator("no-such-cloud")


# ---------------------------------------------------------------- files


def test_variables_survive_a_shell(tmp_path: Path) -> None:
    values = {"PASSWORD": 'a\'b "c" $HOME `x` \\ é', "USER_ID": "u"}
    path = tmp_path / "region.env"
    write_file(path, shell_text(values))
    script = f'. {path} && printf %s "$ROADSTEAD_CLOUD_PASSWORD"'
    shown = subprocess.run(["sh", "-c", script], capture_output=True, check=True, timeout=10)
    assert shown.stdout.decode() == values["PASSWORD"]
    assert read_shell_text(path.read_text()) == values
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "region.env"
    write_file(path, "old")

    def full(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_file(path, "new")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["region.env"]


def test_openrc_is_read_and_never_executed() -> None:
    text = "#!/bin/sh\nexport OS_AUTH_URL=http://k/v3\nOS_PASSWORD='p w#1'  # mine\nexport OS_X=\nOTHER=1\n"
    assert read_openrc(text) == {"OS_AUTH_URL": "http://k/v3", "OS_PASSWORD": "p w#1", "OS_X": ""}
    for bad in ("export OS_PASSWORD=$(cat x)", "export OS_PASSWORD=$OS_PASSWORD_INPUT", "OS_PASSWORD='x"):
        with pytest.raises(ValueError, match="line 1"):
            read_openrc(bad)
    with pytest.raises(ValueError, match="sets no OS_ variable"):
        read_openrc("A=1")


# ---------------------------------------------------------------- register


def test_register_takes_every_option() -> None:
    made = register(
        name="one", namespace="n", endpoint="http://k/identity/", region_id="rid", region_name="RegionOne",
        organizations=("o1",), volume_classes=("t1", "t2"), algorithm="SOURCE_IP_PORT", flavor="f", external_network="x",
    )  # fmt: skip
    assert made.region_id == "rid"
    assert made.variables == {"ROADSTEAD_REGION": "rid", "ROADSTEAD_PROVIDER": "openstack"}
    spec = RegionSpec.model_validate(made.envelope["spec"])
    assert spec.openstack is not None
    assert spec.openstack.endpoint == "http://k/identity/v3"
    assert spec.openstack.regionName == "RegionOne"
    assert spec.openstack.loadBalancer.algorithm == "SOURCE_IP_PORT"
    assert spec.openstack.identity.roles == ["member", "load-balancer_member"]
    assert made.envelope["spec"]["openstack"]["network"] == {"externalNetworks": {"selector": {"ids": ["x"]}}}
    assert made.envelope["spec"]["security"] == {"organizations": [{"id": "o1"}]}


def test_registering_again_names_the_same_region() -> None:
    one = register(name="one", namespace="n", endpoint="http://k")
    assert one.region_id == register(name="one", namespace="n", endpoint="http://k/v3/").region_id
    assert one.region_id != register(name="two", namespace="n", endpoint="http://k").region_id


@pytest.mark.parametrize("missing", ["DOMAIN_ID", "USER_ID", "PASSWORD", "PROJECT_ID"])
def test_inv_029_a_secret_needs_all_four_keys(missing: str) -> None:
    values: dict[str, Any] = {"DOMAIN_ID": "d", "USER_ID": "u", "PASSWORD": "p", "PROJECT_ID": "r"}
    assert secret_of(values) == {"domain-id": "d", "user-id": "u", "password": "p", "project-id": "r"}
    del values[missing]
    with pytest.raises(ValueError, match=missing.lower().replace("_", "-")):
        register(name="one", namespace="n", endpoint="http://k", create_secret=True, values=values)


def test_values_do_not_print_the_password() -> None:
    assert "hidden" not in repr(Configured({"PASSWORD": "hidden"}))
    assert "hidden" not in repr(Wanted(password="hidden"))


FULL: dict[str, Any] = {
    "organizations": ("o1",), "volume_classes": ("t1", "t2"), "algorithm": "SOURCE_IP_PORT", "flavor": "f",
    "external_network": "x", "region_name": "RegionOne", "namespace": "n", "secret_name": "s",
}  # fmt: skip


def held(**options: Any) -> dict[str, Any]:
    """A registered Region's document, with parts that only an apply puts there."""
    envelope = register(name="one", endpoint="http://k", **{**FULL, **options}).envelope
    envelope["metadata"].update(description="ours", generation=4, creationTime="x")
    openstack = envelope["spec"]["openstack"]
    openstack.setdefault("network", {})["providerNetworks"] = {"physicalNetwork": "physnet1"}
    openstack.setdefault("compute", {}).setdefault("flavors", {})["metadata"] = [{"id": "f"}]
    return envelope


def test_inv_016_what_is_not_given_again_stays_as_the_region_has_it() -> None:
    known = held()
    again = register(name="one", endpoint="http://k", held=known)
    assert again.envelope["spec"] == known["spec"]
    assert again.envelope["metadata"] == {
        "id": known["metadata"]["id"], "name": "one", "regionId": known["metadata"]["id"], "description": "ours",
    }  # fmt: skip
    assert register(name="one", held=known, region_id="rid").envelope["spec"] == known["spec"], (
        "the address too"
    )


@pytest.mark.parametrize(
    ("option", "value", "path"),
    [
        ("volume_classes", ("t3",), ("openstack", "blockStorage", "volumeClasses", "selector", "ids")),
        ("flavor", "g", ("openstack", "compute", "flavors", "selector", "ids")),
        ("external_network", "y", ("openstack", "network", "externalNetworks", "selector", "ids")),
        ("algorithm", "ROUND_ROBIN", ("openstack", "loadBalancer", "algorithm")),
        ("region_name", "Two", ("openstack", "regionName")),
        ("secret_name", "t", ("openstack", "serviceAccountSecret", "name")),
        ("namespace", "m", ("openstack", "serviceAccountSecret", "namespace")),
        ("organizations", ("o2",), ("security", "organizations")),
    ],
)
def test_what_is_given_replaces_its_own_part_and_nothing_else(
    option: str, value: Any, path: tuple[str, ...]
) -> None:
    known = held()
    again = register(name="one", endpoint="http://k", held=known, **{option: value}).envelope["spec"]
    wanted = known["spec"]
    assert again != wanted
    *parents, last = path
    for name in parents:
        again, wanted = again[name], wanted[name]
    assert again.pop(last) != wanted.pop(last)
    assert again == wanted


@pytest.mark.parametrize(
    "word", ["volume-class", "flavor", "external-network", "algorithm", "only-organization"]
)
def test_what_is_removed_goes_and_everything_else_stays(word: str) -> None:
    known = held()
    less = register(name="one", endpoint="http://k", held=known, remove=(word,)).envelope["spec"]
    option = {"only-organization": "organizations", "volume-class": "volume_classes"}.get(
        word, word.replace("-", "_")
    )
    assert less == held(**{option: FULL[option][:0] if isinstance(FULL[option], tuple) else None})["spec"]
    with pytest.raises(ValueError, match=f"{word} cannot be given and removed at once"):
        register(name="one", endpoint="http://k", held=known, remove=(word,), **{option: FULL[option]})


async def test_configure_again_keeps_what_the_file_says(sim: Cloud) -> None:
    admin = DirectAdministrator(sim)
    networks = await admin.request("network", "GET", "/networks", None, None)
    assert networks.status == 200
    wanted = Wanted(
        prefix="dep", domain_name="mine", user_name="robot", external_network="ext-9", flavor="f", image="i"
    )
    first = await configure(admin, wanted)
    before = writes(sim)
    again = await configure(admin, Wanted(), first.values)
    assert again.values == first.values
    assert [w for w in writes(sim)[len(before) :] if w[0] == "POST"] == [], "no second domain"
    assert (await configure(admin, Wanted(prefix="dep"), first.values)).values == first.values


async def test_configure_forgets_what_it_is_told_to_and_ids_of_another_cloud(sim: Cloud) -> None:
    admin = DirectAdministrator(sim)
    first = await configure(admin, Wanted(external_network="ext-9", flavor="f", image="i"))
    less = await configure(admin, Wanted(remove=("flavor", "external-network")), first.values)
    assert "FLAVOR" not in less.values
    assert less.values["IMAGE"] == "i"
    assert less.values["EXTERNAL_NETWORK"] not in ("", "ext-9"), "the first one of the cloud again"
    moved = {**first.values, "AUTH_URL": "http://another/v3"}
    assert "IMAGE" not in (await configure(admin, Wanted(), moved)).values
    with pytest.raises(ConfigureError, match="flavor cannot be given and removed at once"):
        await configure(admin, Wanted(flavor="f", remove=("flavor",)), first.values)


async def test_another_prefix_is_another_deployment_whatever_the_file_says(sim: Cloud) -> None:
    admin = DirectAdministrator(sim)
    first = await configure(admin, Wanted(prefix="one", domain_name="mine"))
    other = await configure(admin, Wanted(prefix="two"), first.values)
    assert (other.values["DOMAIN_NAME"], other.values["USER_NAME"]) == ("two", "two-provider")


async def test_existing_mode_keeps_the_ids_of_the_file(sim: Cloud) -> None:
    admin = DirectAdministrator(sim)
    first = await configure(
        admin, Wanted(mode="existing", domain_id="d", project_id="p", user_id="u", password="w", flavor="f")
    )
    again = await configure(admin, Wanted(mode="existing", project_id="q"), first.values)
    assert again.values == {**first.values, "PROJECT_ID": "q"}
    with pytest.raises(ConfigureError, match="needs password"):
        await configure(admin, Wanted(mode="existing", user_id="v"), first.values)

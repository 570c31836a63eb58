"""Flavors: what is exported of Nova's, and in which words."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.region import RegionSpec
from roadstead_compute.flavors import Flavor, GpuFacts, export, reply


def nova(ident: str, ram: int = 2048, vcpus: int = 2, public: bool = True, **more: Any) -> dict[str, Any]:
    base = {"id": ident, "name": f"name-{ident}", "ram": ram, "vcpus": vcpus, "disk": 20}
    return {**base, "os-flavor-access:is_public": public, **more}


def region(metadata: list[dict[str, Any]] | None = None, ids: Any = None, **openstack: Any) -> RegionSpec:
    flavors: dict[str, Any] = {"metadata": metadata}
    if ids is not None:
        flavors["selector"] = {"ids": ids}
    part = {
        "endpoint": "http://cloud.invalid",
        "serviceAccountSecret": {"name": "x"},
        "compute": {"flavors": flavors},
        **openstack,
    }
    return RegionSpec.model_validate({"provider": "openstack", "openstack": part})


def ids(flavors: tuple[Flavor, ...]) -> list[str]:
    return [f.id for f in flavors]


def test_inv_163_inv_164_the_list_is_novas_and_metadata_makes_no_entry() -> None:
    found = export([nova("a")], region([{"id": "a", "cpu": {"family": "x"}}, {"id": "ghost"}]))
    assert found == (Flavor("a", "name-a", "x86_64", 2, 2048, 20, cpuFamily="x"),)


def test_inv_163_metadata_overrides_and_enriches() -> None:
    about = {
        "id": "a",
        "baremetal": True,
        "pinnedOnly": True,
        "cpu": {"count": 64, "family": "Xeon"},
        "memory": "512Gi",
        "gpu": {"vendor": "NVIDIA", "model": "H100", "physicalCount": 4, "logicalCount": 8, "memory": "40Gi"},
    }
    (found,) = export([nova("a")], region([about]))
    assert (found.cpus, found.memory, found.disk) == (64, 512 * 1024, 20)
    assert (found.baremetal, found.pinnedOnly) == (True, True)
    assert found.gpu == GpuFacts("NVIDIA", "H100", 4, 8, 40 * 1024)


def test_inv_165_a_flavors_own_architecture_wins() -> None:
    about = [{"id": "a", "cpu": {"architecture": "x86_64"}}]
    (found,) = export([nova("a")], region(about, defaultArchitecture="aarch64"))
    assert found.architecture == "x86_64"


def test_inv_166_else_the_regions_default_is_exported() -> None:
    (found,) = export([nova("a")], region([{"id": "a", "cpu": {}}], defaultArchitecture="aarch64"))
    assert found.architecture == "aarch64"


def test_inv_167_else_x86_64() -> None:
    (found,) = export([nova("a")], region())
    assert found.architecture == "x86_64"


def test_only_public_flavors_are_exported() -> None:
    bare = {k: v for k, v in nova("c").items() if "is_public" not in k}
    assert ids(export([nova("a"), nova("b", public=False), bare], region(ids=["a", "b", "c"]))) == ["a"]


@pytest.mark.parametrize("selected", [None, [], ["a", "b"]])
def test_an_absent_or_empty_selector_takes_every_public_one(selected: list[str] | None) -> None:
    assert ids(export([nova("a"), nova("b")], region(ids=selected))) == ["a", "b"]


def test_a_selector_is_a_list_of_what_is_allowed() -> None:
    assert ids(export([nova("a"), nova("b")], region(ids=["b", "ghost"]))) == ["b"]


def test_the_order_is_gpus_then_cpus_then_memory_after_the_overrides() -> None:
    listed = [
        nova("gpu", 1, 1),
        nova("many", 1, 8),
        nova("big", 9, 2),
        nova("small", 3, 2),
        nova("grown", 1, 1),
    ]
    about = [
        {"id": "gpu", "gpu": {"vendor": "AMD", "model": "MI300", "logicalCount": 1}},
        {"id": "grown", "cpu": {"count": 2}, "memory": "5Mi"},
    ]
    assert ids(export(listed, region(about))) == ["small", "grown", "big", "many", "gpu"]


@pytest.mark.parametrize(
    "about", [{"memory": "much"}, {"gpu": {"vendor": "AMD", "model": "m", "memory": "0"}}]
)
def test_a_flavor_with_an_unreadable_override_is_not_offered(about: dict[str, Any]) -> None:
    assert ids(export([nova("a"), nova("b")], region([{"id": "a", **about}]))) == ["b"]


def test_a_region_of_another_kind_offers_none() -> None:
    assert export([nova("a")], RegionSpec(provider="simulated")) == ()


def test_replies_are_neutral_and_leave_out_what_is_not_told() -> None:
    gpu = {"vendor": "AMD", "model": "MI300"}
    (plain, rich) = export(
        [nova("a"), nova("b")], region([{"id": "b", "gpu": gpu, "cpu": {"family": "Epyc"}}])
    )
    assert reply([plain]) == [
        {
            "id": "a",
            "name": "name-a",
            "architecture": "x86_64",
            "cpus": 2,
            "memory": "2048Mi",
            "disk": 20,
            "baremetal": False,
            "pinnedOnly": False,
        }
    ]
    (told,) = reply([rich])
    assert told["gpu"] == {"vendor": "AMD", "model": "MI300", "physicalCount": 1, "logicalCount": 1}
    assert told["cpuFamily"] == "Epyc"


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.booleans()), max_size=8))
def test_export_is_sorted_public_and_a_part_of_novas_list(rows: list[tuple[int, int, bool]]) -> None:
    listed = [nova(str(n), ram, cpus, public) for n, (ram, cpus, public) in enumerate(rows)]
    found = export(listed, region())
    assert sorted(ids(found)) == sorted(str(n) for n, row in enumerate(rows) if row[2])
    assert [(f.cpus, f.memory) for f in found] == sorted((f.cpus, f.memory) for f in found)

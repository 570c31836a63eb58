"""What a request for a server is refused by: what the region offers, and whose security groups it names."""

from dataclasses import dataclass
from typing import Any

from roadstead.reconcile.views import Directory
from roadstead.testing.passbench import view
from roadstead_compute.server.validate import at_apply


@dataclass
class Offering:
    """An inventory with one image and any flavor."""

    status: str = "ready"
    ready: bool = True

    def loaded(self, region: str) -> bool:
        return self.ready

    def flavor(self, region: str, ident: str) -> Any:
        return _Flavor()

    def image(self, region: str, ident: str) -> Any:
        return _Image(self.status)


@dataclass
class _Flavor:
    disk: int = 0
    architecture: str = "x86_64"
    baremetal: bool = False
    pinnedOnly: bool = False


@dataclass
class _Image:
    status: str
    sizeGiB: int = 1
    architecture: str = "x86_64"
    virtualization: str = "any"
    organizationID: str | None = None


def codes(build: Any, inventory: Any, *, stored: Any = None, group_network: str | None = None) -> list[str]:
    directory = Directory()
    if group_network is not None:
        metadata = {"networkId": group_network}
        directory.put(view("securitygroup", build.group, build.region, build.project, metadata=metadata))
    extras = {"inventory": inventory}
    found = at_apply(build.key(), build.metadata(), build.spec(), stored, directory, extras)
    return [p.code for p in found]


def test_ref_043_an_image_that_does_not_fit_is_refused_by_request(build: Any) -> None:
    assert codes(build, Offering()) == []
    assert codes(build, Offering(status="creating")) == ["IMAGE_NOT_READY"]


def test_an_inventory_that_is_not_loaded_is_left_to_the_first_pass(build: Any) -> None:
    assert codes(build, Offering(status="creating", ready=False)) == []
    assert codes(build, None) == []


def test_ref_044_an_unchanged_image_is_not_judged_again(build: Any) -> None:
    assert codes(build, Offering(status="failed"), stored=build.resource()) == []


def test_ref_039_a_group_of_another_network_is_refused_by_request(build: Any) -> None:
    assert codes(build, Offering(), group_network=build.network) == []
    assert codes(build, Offering(), group_network=build.image) == ["GROUP_NETWORK"]

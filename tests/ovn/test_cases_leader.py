"""A case from fault reports: the leader of the Northbound cluster moves, and its members go (OC-17)."""

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from roadstead.testing.private_ovn import PrivateOvn

from .building import built
from .machines import within
from .stack import Stack

ROUNDS = 20
SOON = 40.0


@pytest.fixture
def cluster() -> Iterator[PrivateOvn]:
    with PrivateOvn(members=3, northd=False) as made:
        yield made


def is_healthy(stack: Stack) -> bool:
    try:
        with urllib.request.urlopen(f"{stack.workers[0].url}/readyz", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


@pytest.mark.timeout(240)
def test_oc_17_a_leader_that_changes_in_the_middle_of_a_write_loses_and_doubles_nothing(
    make_stack: Callable[..., Stack], cluster: PrivateOvn
) -> None:
    stack = make_stack(cluster)
    made = built(stack, "steady", [])
    for number in range(ROUNDS):
        cluster.ask("transfer", "--at-write")
        address = f"10.50.1.{100 + number}"
        stack.user.member(
            made.id, made.pool, address=address, protocol_port=80, subnet_id=stack.scene.front.subnet
        )
        rows = stack.rows_of(made.id)
        assert len(rows) == 1
        backends = rows[0]["vips"][f"{made.lb['vip_address']}:80"].split(",")
        assert sorted(backends) == sorted(f"10.50.1.{100 + n}:80" for n in range(number + 1))
    assert stack.differences() == {}
    assert "already exists" not in stack.workers[0].words()
    leader = cluster.ask("leader")
    cluster.ask("stop", leader, "--hard")
    other = built(stack, "later", [("10.50.1.150", 80)])
    assert stack.vips_of(other.id) == {f"{other.lb['vip_address']}:80": {"10.50.1.150:80"}}
    # Without a majority nothing is answered from what the worker remembers: it says that it is not ready.
    assert within(SOON, lambda: is_healthy(stack)) is not None
    second = cluster.ask("leader")
    cluster.ask("stop", second, "--hard")
    assert within(60.0, lambda: not is_healthy(stack)) is not None
    cluster.ask("start", second)
    cluster.ask("start", leader)
    assert within(SOON, lambda: is_healthy(stack)) is not None
    stack.user.change(other.id, f"loadbalancers/{other.id}", "loadbalancer", admin_state_up=False)
    assert stack.vips_of(other.id) == {}
    assert stack.differences() == {}

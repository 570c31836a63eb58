"""A case from fault reports: the Northbound database comes back empty, or with yesterday's content (OC-18)."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from roadstead.testing.private_ovn import PrivateOvn

from .building import Built, built
from .machines import within
from .stack import Stack

SOON = 40.0


@pytest.fixture
def plain_ovn() -> Iterator[PrivateOvn]:
    with PrivateOvn() as made:
        yield made


def ten(stack: Stack) -> list[Built]:
    """Ten load balancers; two have a monitor, one of them and another one a floating IP."""
    found = [built(stack, f"lb{n}", [(f"10.50.1.{200 + n}", 80)], monitor=n < 2) for n in range(10)]
    for number in (1, 2):
        stack.scene.floating_ip(found[number].lb["vip_port_id"])
    assert within(SOON, lambda: stack.differences() == {}) is not None
    assert within(SOON, lambda: len(stack.vips_of(found[2].id)) == 2) is not None
    return found


def database_of(ovn: PrivateOvn) -> Path:
    return ovn.home / "db/nb.db"


@pytest.mark.timeout(240)
def test_oc_18_a_database_that_comes_back_empty_or_old_is_put_right_without_anybody(
    make_stack: Callable[..., Stack], plain_ovn: PrivateOvn, tmp_path: Path
) -> None:
    stack = make_stack(plain_ovn, ovn_spread=2)
    user, made = stack.user, ten(stack)
    wanted = {one.id: stack.vips_of(one.id) for one in made}
    statuses = {one.id: user.operating(one.id) for one in made}

    # (a) switches and routers are there again, load balancers are not
    plain_ovn.ask("stop", "nb", "--hard")
    database_of(plain_ovn).unlink()
    plain_ovn.ask("start", "nb")
    stack.scene.mirror.session.close()
    stack.scene.mirror.lay()
    assert within(SOON, lambda: {i: stack.vips_of(i) for i in wanted} == wanted) is not None
    assert within(SOON, lambda: stack.differences() == {}) is not None
    assert {i: user.operating(i) for i in statuses} == statuses
    assert stack.pending() == []

    # (b) yesterday's content
    shutil.copy(database_of(plain_ovn), tmp_path / "yesterday.db")
    user.destroy(made[9].id)
    user.member(
        made[0].id, made[0].pool, address="10.50.1.99", protocol_port=80, subnet_id=stack.scene.front.subnet
    )
    user.change(made[3].id, f"loadbalancers/{made[3].id}", "loadbalancer", admin_state_up=False)
    left = made[:9]
    wanted = {one.id: stack.vips_of(one.id) for one in left}
    statuses = {one.id: user.operating(one.id) for one in left}
    plain_ovn.ask("stop", "nb", "--hard")
    shutil.copy(tmp_path / "yesterday.db", database_of(plain_ovn))
    plain_ovn.ask("start", "nb")
    stack.scene.mirror.session.close()
    stack.scene.mirror.lay()
    assert within(SOON, lambda: stack.rows_of(made[9].id) == []) is not None
    assert within(SOON, lambda: {i: stack.vips_of(i) for i in wanted} == wanted) is not None
    assert within(SOON, lambda: stack.differences() == {}) is not None
    assert {i: user.operating(i) for i in statuses} == statuses
    before = stack.versions()
    stack.restart_worker()
    user.change(made[4].id, f"loadbalancers/{made[4].id}", "loadbalancer", description="at work")
    after = stack.versions()
    assert len({row for row in after if after[row] != before.get(row)}) <= 1
    assert set(after) == set(before)

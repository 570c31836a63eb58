"""Orders to fail or to be slow, as the pretended drivers read them."""

import time

import pytest

from drivers.orders import LONGEST_PAUSE_SECONDS, Order, Orders, parse


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("fail", Order(fails=True)),
        ("fail:2", Order(fails=True, times=2)),
        ("slow:1.5", Order(pause_seconds=1.5)),
        ("slow:2,fail", Order(pause_seconds=2, fails=True)),
        ("fail:1, slow:2", Order(pause_seconds=2, fails=True, times=1)),
        ("slow:99999", Order(pause_seconds=LONGEST_PAUSE_SECONDS)),
        ("slow:-1", Order()),
    ],
)
def test_orders_are_read(text: str, order: Order) -> None:
    assert parse(text) == order


@pytest.mark.parametrize("text", ["", "fial", "fail:x", "slow", "slow:", "slow:nan", "slow:inf"])
def test_what_is_no_order_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not"):
        parse(text)


def test_a_misspelt_order_fails_rather_than_being_ignored() -> None:
    assert Orders().obey("a", ["spawn"], [{"lab:spawn": "fial"}])


def test_nothing_is_said_without_an_order() -> None:
    assert Orders().obey("a", ["spawn"], [{}, {"lab:destroy": "fail", "spawn": "fail"}]) is None


def test_the_first_place_counts() -> None:
    places = [{}, {"lab:spawn": "slow:0"}, {"lab:spawn": "fail"}]
    assert Orders().obey("a", ["spawn"], places) is None


def test_a_bounded_failure_is_counted_for_each_thing() -> None:
    orders = Orders()
    places = [{"lab:create": "fail:2"}]
    assert [bool(orders.obey("a", ["create"], places)) for _ in range(3)] == [True, True, False]
    assert orders.obey("b", ["create"], places) == "told to fail by lab:create=fail:2"


def test_a_slow_order_pauses_for_its_time() -> None:
    begun = time.monotonic()
    assert Orders().obey("a", ["spawn"], [{"lab:spawn": "slow:0.2"}]) is None
    assert time.monotonic() - begun >= 0.2

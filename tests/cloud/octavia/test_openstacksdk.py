"""openstacksdk as against the simulated cloud: the same tests."""

from tests.octavia.test_openstacksdk import (
    mine,
    operator,
    pytestmark,
    test_a_second_page_is_fetched,
    test_objects_are_made_found_changed_and_deleted,
    test_what_operators_keep,
)

__all__ = [
    "mine",
    "operator",
    "pytestmark",
    "test_a_second_page_is_fetched",
    "test_objects_are_made_found_changed_and_deleted",
    "test_what_operators_keep",
]

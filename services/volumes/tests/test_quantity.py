"""Sizes: whole GiB or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead_volumes.quantity import whole_gib


@pytest.mark.parametrize(
    ("size", "gib"),
    [
        ("10Gi", 10),
        (" 1Ti ", 1024),
        ("10240Mi", 10),
        ("1.5Ti", 1536),
        ("1073741824", 1),
        (1 << 30, 1),
        ("134217.728M", 125),
        ("134217.729M", None),
        ("1073.741824M", 1),
    ],
)
def test_sizes_are_read_exactly(size: str | int, gib: int | None) -> None:
    if gib is None:
        with pytest.raises(ValueError, match="10Gi"):
            whole_gib(size)
    else:
        assert whole_gib(size) == gib


@pytest.mark.parametrize(
    "size",
    ["0", "0Gi", "-1Gi", "1.5Gi", "10G", "10", 10, "", "Gi", "ten", "10 Gi", "1e3Gi", "１0Gi", "10Gib"],
)
def test_inv_178_what_is_no_positive_whole_gib_is_refused_with_the_remedy(size: str | int) -> None:
    with pytest.raises(ValueError, match="write one like 10Gi"):
        whole_gib(size)


@given(st.integers(1, 1 << 31))
def test_every_spelling_of_a_size_is_the_same(gib: int) -> None:
    assert whole_gib(f"{gib}Gi") == whole_gib(gib << 30) == whole_gib(f"{gib << 10}Mi") == gib


@given(st.text(max_size=12))
def test_reading_is_total(text: str) -> None:
    try:
        assert whole_gib(text) > 0
    except ValueError as error:
        assert "write one like 10Gi" in str(error)  # noqa: PT017 - total: either a size or this text

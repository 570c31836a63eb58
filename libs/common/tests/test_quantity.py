"""Quantities: exact, and whole where they have to be."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.quantity import amount, whole_gib, whole_mib


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


@pytest.mark.parametrize(
    ("quantity", "mib"),
    [
        ("16Gi", 16384),
        ("1.5Gi", 1536),
        (1 << 20, 1),
        ("1000M", 953),
        (" 2Mi ", 2),
        ("1Ti", 1 << 20),
        ("1e9", 953),
    ],
)
def test_memory_is_read_in_whole_mib(quantity: str | int, mib: int) -> None:
    assert whole_mib(quantity) == mib


@pytest.mark.parametrize("quantity", ["", "x", "-1Gi", "1Ki", "1", "1e5", "5Zi"])
def test_what_is_no_memory_is_refused_with_the_remedy(quantity: str) -> None:
    with pytest.raises(ValueError, match=r"write one like 1[06]Gi"):
        whole_mib(quantity)


def test_quantities_are_exact() -> None:
    assert whole_gib("1024Mi") == 1
    assert whole_gib("1.5Ti") == 1536
    assert whole_gib(2**30) == 1
    assert amount("1e3") == amount("1k") == 1000
    assert amount("500m") * 2 == 1


@given(st.text(max_size=12))
def test_no_text_breaks_the_reading_of_quantities(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert amount(text) == amount(f" {text} ")

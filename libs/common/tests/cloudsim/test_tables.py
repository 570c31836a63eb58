"""Indexed tables: the indexes agree with the rows after any sequence of changes."""

from hypothesis import given
from hypothesis import strategies as st

from roadstead.testing.cloudsim.tables import Table

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "change", "remove"]),
        st.integers(0, 4),
        st.sampled_from(["a", "A", "b", None]),
    ),
    max_size=30,
)


@given(STEPS)
def test_an_indexed_lookup_equals_a_scan(steps: list[tuple[str, int, str | None]]) -> None:
    table = Table("name", "project_id")
    for verb, number, value in steps:
        row = table.get(str(number))
        if verb == "add" and row is None:
            table.add({"id": str(number), "name": value, "project_id": value})
        elif verb == "change" and row is not None:
            table.change(row, name=value)
        elif verb == "remove":
            table.remove(str(number))
    for value in ("a", "b", None):
        found = {row["id"] for row in table.where("name", value)}
        lower = [(row["name"] or "").lower() if row["name"] is not None else None for row in table]
        assert found == {row["id"] for row, name in zip(table, lower, strict=True) if name == value}
        assert table.narrowest([("name", value or "zzz")]) == table.where("name", value or "zzz")


def test_narrowest_takes_the_smallest_index_and_all_rows_without_one() -> None:
    table = Table("name", "project_id")
    for number in range(3):
        table.add({"id": str(number), "name": f"n{number}", "project_id": "p"})
    assert [row["id"] for row in table.narrowest([("project_id", "p"), ("name", "N1")])] == ["1"]
    assert len(table.narrowest([("size", "9")])) == 3
    assert table.narrowest([("name", "nope")]) == []

"""Rows of a simulated service by id, with indexes over the fields its lists filter by.

A row is the JSON object a client may see (plus hidden keys); `name` is indexed without
regard to case, as the services compare it. Rows keep the order in which they were made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Row = dict[str, Any]


class Table:
    """Rows by `id`; change indexed fields only through `change`."""

    def __init__(self, *indexed: str) -> None:
        self._rows: dict[str, Row] = {}
        self._order: dict[str, int] = {}
        self._made = 0
        self._indexes: dict[str, dict[Any, dict[str, Row]]] = {field: {} for field in indexed}
        # Ids of rows that came, went or changed, for whoever set it and takes them out again.
        self.touched: set[str] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def __contains__(self, row_id: object) -> bool:
        return row_id in self._rows

    def get(self, row_id: Any) -> Row | None:
        """Return the row of that id, None when there is none."""
        return self._rows.get(row_id)

    def add(self, row: Row) -> Row:
        """Store a new row and return it."""
        self._rows[row["id"]] = row
        self._order[row["id"]] = self._made
        self._made += 1
        for field in self._indexes:
            self._enter(field, row)
        self.touch(row["id"])
        return row

    def remove(self, row_id: str) -> Row | None:
        """Take the row out; None when it is already gone."""
        row = self._rows.pop(row_id, None)
        if row is not None:
            del self._order[row_id]
            for field in self._indexes:
                self._leave(field, row)
            self.touch(row_id)
        return row

    def touch(self, row_id: str) -> None:
        """Note that the row is not what it was; `change` does so by itself."""
        if self.touched is not None:
            self.touched.add(row_id)

    def change(self, row: Row, **values: Any) -> Row:
        """Write fields of a stored row and keep the indexes in step."""
        for field, value in values.items():
            if field in self._indexes and row["id"] in self._rows:
                self._leave(field, row)
                row[field] = value
                self._enter(field, row)
            else:
                row[field] = value
        self.touch(row["id"])
        return row

    def where(self, field: str, value: Any) -> list[Row]:
        """Return the rows whose field equals the value (names without regard to case)."""
        index = self._indexes.get(field)
        if index is None:
            return [row for row in self._rows.values() if _key(field, row.get(field)) == _key(field, value)]
        return self._in_order(index.get(_key(field, value), {}))

    def narrowest(self, wanted: Iterable[tuple[str, str]]) -> list[Row]:
        """Return the smallest indexed candidate set for equality filters, all rows when none helps."""
        best: dict[str, Row] = self._rows
        for field, value in wanted:
            index = self._indexes.get(field)
            if index is not None:
                found = index.get(_key(field, value), {})
                if len(found) < len(best):
                    best = found
        return list(best.values()) if best is self._rows else self._in_order(best)

    def _in_order(self, bucket: dict[str, Row]) -> list[Row]:
        # A changed row enters its bucket anew; lists still come in the order of making.
        return sorted(bucket.values(), key=lambda row: self._order[row["id"]])

    def _enter(self, field: str, row: Row) -> None:
        self._indexes[field].setdefault(_key(field, row.get(field)), {})[row["id"]] = row

    def _leave(self, field: str, row: Row) -> None:
        key = _key(field, row.get(field))
        bucket = self._indexes[field].get(key)
        if bucket is not None:
            bucket.pop(row["id"], None)
            if not bucket:
                del self._indexes[field][key]


def _key(field: str, value: Any) -> Any:
    return value.lower() if field == "name" and isinstance(value, str) else value

"""One spelling of a time out, many in, all of them UTC."""

from datetime import UTC, datetime

import pytest

from roadstead.clock import iso, parse_time


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00.250+02:00", datetime(2026, 1, 31, 10, 0, 0, 250_000, tzinfo=UTC)),
        ("2026-01-31T12:00:00.000000", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_as_utc(text: str, moment: datetime) -> None:
    read = parse_time(text)
    assert (read, read.tzinfo) == (moment, UTC)
    assert parse_time(iso(read)) == read


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "5", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00", "2026-13-01T00:00:00Z"],
)
def test_what_is_no_time_of_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"isoformat|calendar|month"):
        parse_time(text)

"""The document of versions: what the API can do is told by the newest of them."""

from collections.abc import Mapping, Sequence
from typing import Any

CURRENT = "2.30"

# Minor version and the day it came; each added something that clients ask for by its number.
VERSIONS: Sequence[tuple[str, str]] = (
    ("2.0", "2016-12-11T00:00:00Z"),
    ("2.1", "2018-04-20T00:00:00Z"),
    ("2.2", "2018-07-31T00:00:00Z"),
    ("2.3", "2018-12-18T00:00:00Z"),
    ("2.4", "2018-12-19T00:00:00Z"),
    ("2.5", "2019-01-21T00:00:00Z"),
    ("2.6", "2019-01-25T00:00:00Z"),
    ("2.7", "2018-01-25T12:00:00Z"),
    ("2.8", "2019-02-12T00:00:00Z"),
    ("2.9", "2019-03-04T00:00:00Z"),
    ("2.10", "2019-03-05T00:00:00Z"),
    ("2.11", "2019-06-24T00:00:00Z"),
    ("2.12", "2019-09-11T00:00:00Z"),
    ("2.13", "2019-09-13T00:00:00Z"),
    ("2.14", "2019-11-10T00:00:00Z"),
    ("2.15", "2020-03-10T00:00:00Z"),
    ("2.16", "2020-03-15T00:00:00Z"),
    ("2.17", "2020-04-29T00:00:00Z"),
    ("2.18", "2020-04-29T01:00:00Z"),
    ("2.19", "2020-05-12T00:00:00Z"),
    ("2.20", "2020-08-02T00:00:00Z"),
    ("2.21", "2020-09-03T00:00:00Z"),
    ("2.22", "2020-09-04T00:00:00Z"),
    ("2.23", "2020-09-07T00:00:00Z"),
    ("2.24", "2020-10-15T00:00:00Z"),
    ("2.25", "2021-10-02T00:00:00Z"),
    ("2.26", "2022-08-29T00:00:00Z"),
    ("2.27", "2023-05-05T00:00:00Z"),
    ("2.28", "2023-11-08T00:00:00Z"),
    ("2.29", "2024-10-15T00:00:00Z"),
    (CURRENT, "2025-02-26T00:00:00Z"),
)


def versions(base: str) -> Mapping[str, Any]:
    """base: scheme, host and prefix of the API, without a slash at its end."""
    link = [{"href": f"{base}/v2", "rel": "self"}]
    return {
        "versions": [
            {
                "id": f"v{number}",
                "status": "CURRENT" if number == CURRENT else "SUPPORTED",
                "updated": updated,
                "links": link,
            }
            for number, updated in VERSIONS
        ]
    }

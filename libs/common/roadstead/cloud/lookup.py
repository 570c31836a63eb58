"""The one look-up: compares the whole key, whatever the filter did (behaviour.md section 20).

Filters of the cloud match more than they should (regular expressions, other case), so a list is only candidates.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from roadstead.cloud.port import CloudError, Verdict


def one(
    objects: Iterable[Mapping[str, Any]],
    name: str,
    ours: Callable[[Mapping[str, Any]], bool] | None = None,
) -> dict[str, Any] | None:
    """The object named exactly `name` and, given `ours`, bearing our key; None when the complete list has none.

    Two matches raise CloudError(CONSISTENCY): nothing is changed until an operator looked.
    """
    matches = [o for o in objects if o.get("name") == name and (ours is None or ours(o))]
    if len(matches) > 1:
        raise CloudError(Verdict.CONSISTENCY, text=f"{len(matches)} objects are named {name}")
    return dict(matches[0]) if matches else None

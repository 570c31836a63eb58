"""Whether a project may have more objects: looked at before a provider is asked, so that nothing refused reaches it.

The answer is a reading, not a reservation: the commit counts again under the quota's lock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from roadstead_octavia.call import Call
from roadstead_octavia.db.port import QUOTAS
from roadstead_octavia.errors import refuse
from roadstead_octavia.options import UNLIMITED, Options
from roadstead_octavia.resources.quota.operations import effective

NOUNS = dict(QUOTAS.values())


def in_force(options: Options) -> bool:
    """Without identities nobody's objects are counted."""
    return options.auth_strategy != "noauth"


@dataclass
class Room:
    """How many more objects of each quota column a project may have; a column that is absent has no limit."""

    left: dict[str, int] = field(default_factory=dict)

    def take(self, column: str, number: int = 1) -> None:
        """Use some of it; ApiError QuotaException when there is not enough."""
        if column not in self.left:
            return
        self.left[column] -= number
        if number > 0 and self.left[column] < 0:
            raise refuse("QuotaException", resource=NOUNS[column])


async def room(call: Call, project_id: str, columns: Mapping[str, int] | tuple[str, ...]) -> Room:
    """The room of a project in these columns; rows are counted only where there is a limit."""
    if not in_force(call.options):
        return Room()
    row = await call.parts.database.row("quotas", {"project_id": project_id})
    limits = effective(row, project_id, call.options.default_quotas)
    limited = {name: limits[name] for name in columns if limits[name] != UNLIMITED}
    if not limited:
        return Room()
    used = await call.parts.database.usage(project_id)
    return Room({name: limit - used[name] for name, limit in limited.items()})


async def require_room(call: Call, project_id: str, wanted: Mapping[str, int]) -> None:
    """ApiError QuotaException for the first column, in the order given, that has not enough room."""
    found = await room(call, project_id, wanted)
    for column, number in wanted.items():
        found.take(column, number)

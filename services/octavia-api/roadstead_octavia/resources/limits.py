"""Whether a project may have more objects, asked before the provider is.

The commit counts again under the project's lock; this look beforehand keeps what would be refused from ever reaching a provider.
"""

from collections.abc import Mapping

from roadstead_octavia.call import Call
from roadstead_octavia.db.port import QUOTAS
from roadstead_octavia.errors import refuse
from roadstead_octavia.options import UNLIMITED

NOUNS = dict(QUOTAS.values())


async def room(call: Call, project_id: str, **wanted: int) -> Mapping[str, int]:
    """What `Change.quota` is to be for so many more objects by quota column; 403 when a limit would be passed.

    One statement, another one where there is a limit.  Nothing is counted without identities.
    """
    if call.options.auth_strategy == "noauth":
        return {}
    row = await call.parts.database.row("quotas", {"project_id": project_id}) or {}
    limits = {
        column: call.options.default_quotas[column] if row.get(column) is None else row[column]
        for column in wanted
    }
    if any(limit != UNLIMITED for limit in limits.values()):
        usage = await call.parts.database.usage(project_id)
        for column, more in wanted.items():
            if limits[column] != UNLIMITED and usage[column] + more > limits[column]:
                raise refuse("QuotaException", resource=NOUNS[column])
    return wanted

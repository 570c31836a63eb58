"""The last step of a change below a load balancer, the same for every kind: the provider agrees, the change is committed, the answer
shows what is there now.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roadstead_octavia.call import Answer
from roadstead_octavia.db.port import Change, Row, Touched, Tree, Update, Write
from roadstead_octavia.operate import Attempt
from roadstead_octavia.provider.models import Model
from roadstead_octavia.resources import below
from roadstead_octavia.resources.shown import shown
from roadstead_octavia.wire.describe import Resource
from roadstead_octavia.wire.write import one


@dataclass(frozen=True)
class Ending:
    """Of one try.  tree: as it was read; held: what waits together with the object."""

    attempt: Attempt
    resource: Resource
    tree: Tree
    held: below.Held

    async def created(self, identifier: str, draft: Change, after: Tree, told: Model) -> Answer:
        """201.  draft: the change without its operation; after: the tree with it; told: the new object."""
        return await self._shown(201, "create", identifier, draft, [told], after=after)

    async def updated(
        self,
        row: Row,
        columns: Mapping[str, Any],
        told: Sequence[Model],
        *,
        more: Iterable[Write] = (),
        tags: Iterable[str] | None = None,
    ) -> Answer:
        """200.  told: the object as it was, and what changes; more: writes to other rows; tags: those wanted, None keeps them."""
        table, identifier = self.resource.table, row["id"]
        writes = [
            *self.held.writes,
            Update(table, {"id": identifier}, {**columns, **below.UPDATING}),
            *more,
            *below.tag_writes(self.tree, identifier, tags),
        ]
        draft = below.change(self.attempt.call, self.tree, writes, project_id=row["project_id"])
        return await self._shown(200, "update", identifier, draft, told)

    async def deleted(self, row: Row, told: Model) -> Answer:
        """204; the object goes when the provider has let go of it.  told: the object."""
        table, identifier = self.resource.table, row["id"]
        writes = [*self.held.writes, Update(table, {"id": identifier}, below.DELETING)]
        draft = below.change(self.attempt.call, self.tree, writes, project_id=row["project_id"])
        await self._conclude("delete", draft, [told], Touched(table, identifier, done=below.DELETED))
        return Answer(204)

    async def _shown(
        self,
        status: int,
        verb: str,
        identifier: str,
        draft: Change,
        told: Sequence[Model],
        after: Tree | None = None,
    ) -> Answer:
        touched = Touched(self.resource.table, identifier)
        now = await self._conclude(verb, draft, told, touched, after)
        return Answer(status, one(self.resource, shown(now, self.resource.table, identifier)))

    async def _conclude(
        self, verb: str, draft: Change, told: Sequence[Model], touched: Touched, after: Tree | None = None
    ) -> Tree:
        call, table = self.attempt.call, self.resource.table
        operation = below.operation(call, self.tree, table, verb, told, [*self.held.touched, touched])
        return await self.attempt.conclude(self.tree, below.asking(draft, operation), after=after)

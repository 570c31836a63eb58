"""The one way a request changes a load balancer: check with the provider, commit, hand the operation on.

Nothing is locked while the provider is asked.  The change holds only at the version its tree was read at; when the load balancer moved
meanwhile the whole decision is made again on a fresh tree, at most `TRIES` times, then the client is told that it is busy.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from roadstead_octavia.call import Answer, Call
from roadstead_octavia.db.port import Change, Stale, Tree
from roadstead_octavia.errors import refuse

TRIES = 3


@dataclass
class Attempt:
    """One try at a request; remembers what the provider has agreed to, so that a second try asks only about what differs."""

    call: Call
    agreed: tuple[Any, ...] | None = None
    load_balancer_id: str = ""

    async def conclude(self, tree: Tree | None, change: Change, *, after: Tree | None = None) -> Tree:
        """Check, commit, dispatch; the tree as it is now.  ApiError from the provider or a quota; Stale.

        after: the tree with the change applied, where the caller has made it already.
        """
        parts, operation = self.call.parts, change.operation
        revision = tree.revision if tree else 0
        if operation is not None:
            question = (operation.provider, operation.method, operation.arguments, revision)
            if question != self.agreed:
                await parts.provider.check(
                    operation.provider, operation.method, operation.arguments, revision
                )
                self.agreed = question
            operation = replace(operation, deadline=self.call.options.operation_deadline)
            change = replace(change, operation=operation)
        after = after or parts.database.after(tree, change)
        self.load_balancer_id = change.load_balancer_id
        revision = await parts.database.commit(change, self.call.options)
        if operation is not None:
            parts.dispatch(operation, after, revision)
        return after


async def decided(
    call: Call, attempt: Callable[[Attempt], Awaitable[Answer]], *, load_balancer_id: str = ""
) -> Answer:
    """Run the attempt, again while the load balancer moves under it; 409 after the last."""
    state = Attempt(call)
    for _ in range(TRIES):
        try:
            return await attempt(state)
        except Stale:
            continue
    raise refuse("ImmutableObject", resource="Load Balancer", id=load_balancer_id or state.load_balancer_id)

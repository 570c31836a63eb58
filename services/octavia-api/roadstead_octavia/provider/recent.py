"""Operations that this replica has just committed, with the trees that they left: a report that comes back to it needs no reading.

What is kept is a guess at how things stand.  Whatever is decided on it is committed under its version, so a guess that is no longer true
writes nothing, and the decision is made again on what the database says.
"""

from collections import OrderedDict

from roadstead_octavia.db.port import Operation, Row, Tree
from roadstead_octavia.provider.conclude import State

MOST = 256  # operations that are kept
MOST_ROWS = 500  # of a tree; a larger one is read again


class Recent:
    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[str, tuple[Row, Tree]] = OrderedDict()

    def keep(self, operation: Operation, tree: Tree, revision: int) -> None:
        """tree: as the commit of the operation left it, at that revision."""
        if tree.revision != revision or sum(map(len, tree.rows.values())) > MOST_ROWS:
            return
        touched = [
            {"table": t.table, "id": t.id, "done": t.done, "failed": t.failed} for t in operation.touched
        ]
        row = {
            "id": operation.id,
            "load_balancer_id": tree.load_balancer["id"],
            "revision": revision,
            "provider": operation.provider,
            "touched": touched,
            "state": State.SENT,
        }
        self._kept[operation.id] = (row, tree)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def take(self, identifier: str) -> tuple[Row, Tree] | None:
        """The operation as far as its end needs it, and the tree; once."""
        return self._kept.pop(identifier, None)

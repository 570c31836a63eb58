"""Claims of VIP ports: who owns a port while its load balancer has no row yet.

Before a port is made a row of `vip_port_claim` is written (load balancer's id, project, provider, maker `network` or `provider`,
deadline).  The creation deletes the claim in the change that makes the load balancer, and that change holds only while the claim is there
and nobody removes its port; so either the load balancer has the port, or the sweep below finds the claim past its deadline, has the
port removed by its key, and then forgets the claim.  No port is left and none is taken away from a load balancer.
"""

# ruff: noqa: S608 - statements are put together from names of tables and columns; values travel as parameters

from collections.abc import Sequence
from datetime import datetime, timedelta

from roadstead_octavia.db.port import Delete, Row
from roadstead_octavia.db.postgres import PostgresDatabase
from roadstead_octavia.db.rows import columns_of

REMOVAL = timedelta(seconds=60)  # how long one replica has for removing a port before another one tries


class Claims:
    """The claims that a sweep has to deal with."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def take_overdue(self, now: datetime, limit: int = 50) -> Sequence[Row]:
        """Claims past their deadline, each given to one caller alone for a minute; their creations can no longer succeed."""
        table = f"{self._database.schema}.vip_port_claim"
        text = (
            f"UPDATE {table} c SET removing_since = $1 WHERE c.load_balancer_id IN ("
            f"SELECT load_balancer_id FROM {table} WHERE deadline <= $1"
            " AND (removing_since IS NULL OR removing_since <= $2) ORDER BY deadline LIMIT $3 FOR UPDATE SKIP LOCKED)"
            f" RETURNING {', '.join(f'c.{name}' for name in columns_of('vip_port_claim'))}"
        )
        found = await self._database.run(lambda link, _: link.fetch(text, now, now - REMOVAL, limit))
        return [dict(record) for record in found]

    async def take_one(self, load_balancer_id: str, now: datetime) -> bool:
        """Take the claim of a creation that failed, so that its port can be removed at once; False when it is not there to be taken."""
        text = (
            f"UPDATE {self._database.schema}.vip_port_claim SET removing_since = $2"
            " WHERE load_balancer_id = $1 AND removing_since IS NULL RETURNING 1"
        )
        return (
            await self._database.run(lambda link, _: link.fetchval(text, load_balancer_id, now)) is not None
        )

    async def forget(self, load_balancer_id: str) -> None:
        """The port is gone."""
        await self._database.write([Delete("vip_port_claim", {"load_balancer_id": load_balancer_id})])

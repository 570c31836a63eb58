"""A region whose circuit opened here: its owner is told, because quiet resources would not notice, and people should read it there.

A hint and no verdict: the owner looks for itself, says what it finds as a condition on the Region, and goes on looking until the
cloud answers.  What is told is bounded: once for an opening, and again once a period while the Region does not say so.
"""

import asyncio

import structlog

from roadstead.clock import Clock
from roadstead.reconcile.views import Directory, RequestFailed, Requests
from roadstead.subjects import rpc_subject

log = structlog.get_logger("roadstead.outages")

CONDITION = "CloudReachable"
LOOK = rpc_subject("identity", "region", "look")


class Outages:
    """One per process.  every: seconds between two hints about a region; again: after one that nobody took."""

    def __init__(
        self, requests: Requests, directory: Directory, clock: Clock, *, every: float, again: float
    ) -> None:
        self._requests = requests
        self._directory = directory
        self._clock = clock
        self._every = every
        self._again = again
        self._shut: dict[str, float] = {}  # region -> when it may be told next, monotonic
        self._news = asyncio.Event()

    def moved(self, region: str, shut: bool) -> None:
        """The circuit of a region opened or closed in this process.  No I/O."""
        if shut:
            log.warning("no answer from the region's cloud; it is left alone for a while", region=region)
            self._shut.setdefault(region, self._clock.monotonic())
            self._news.set()
        else:
            log.info("the region's cloud answers again", region=region)
            self._shut.pop(region, None)

    def says_so(self, region: str) -> bool:
        """Whether the Region's STATUS says already that its cloud does not answer."""
        view = self._directory.get("region", region)
        conditions = view.status.get("conditions", ()) if view is not None else ()
        return any(c.get("type") == CONDITION and c.get("status") == "False" for c in conditions)

    async def run(self) -> None:
        """Until cancelled; idle while every cloud answers."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._shut:
                for region, due in list(self._shut.items()):
                    if due <= self._clock.monotonic() and not self.says_so(region):
                        await self._tell(region)
                await self._clock.sleep(self._again)

    async def _tell(self, region: str) -> None:
        try:
            await self._requests.request(LOOK, {"region": region})
        except RequestFailed:
            return
        if region in self._shut:
            self._shut[region] = self._clock.monotonic() + self._every

"""Whether what a worker stands on is there: OVN's databases and the network service, each with words for what is wrong.

A worker takes nothing before all of it has answered once, so that one whose own settings are wrong does not use up the tries of load
balancers that others can serve.  What is wrong is told once and then every minute.
"""

import asyncio
from collections.abc import Callable

import structlog

from roadstead_ovn.network import Network, NetworkRefused, NoNetwork
from roadstead_ovn.northbound.port import Northbound

log = structlog.get_logger("roadstead.ovn.standing")

LOOK_EVERY = 1.0
GRACE = 3.0  # seconds that something may be away without a word: a leader changes, a copy is fetched
TELL_EVERY = 60.0
ASK_FIRST, ASK_MAX = 2.0, 30.0  # seconds between questions to a network service that has not answered
ASK_EVERY = 60.0  # once it has
NOTHING = "00000000-0000-0000-0000-000000000000"  # a subnet that nobody has
NOT_ASKED = "it has not answered yet"


class Told:
    """One line about a fault when it has lasted, then one a minute, and one when it is over.  name: of what is watched."""

    def __init__(self, name: str, now: Callable[[], float]) -> None:
        self._name, self._now = name, now
        self._since: float | None = None
        self._said: tuple[str, float] | None = None

    def hear(self, fault: str | None) -> None:
        now = self._now()
        if fault is None:
            if self._said is not None:
                log.info("it is there again", part=self._name)
            self._since = self._said = None
            return
        self._since = now if self._since is None else self._since
        if now - self._since < GRACE:
            return
        if self._said is None or self._said[0] != fault or now - self._said[1] >= TELL_EVERY:
            log.error("this worker cannot do its work", part=self._name, reason=fault)
            self._said = (fault, now)


class Standing:
    """reason: why the local copy is not complete, None when it is.  network_fault: None once the network service has answered."""

    def __init__(self, northbound: Northbound, network: Network, reason: Callable[[], str | None]) -> None:
        self._northbound, self._network, self.northbound_fault = northbound, network, reason
        self._answered = asyncio.Event()
        self._answer = NOT_ASKED
        if isinstance(network, NoNetwork):
            self._answered.set()

    @property
    def network_fault(self) -> str | None:
        return None if self._answered.is_set() else self._answer

    async def all_there(self) -> None:
        """Returns when everything has answered once."""
        await self._answered.wait()
        await self._northbound.ready()

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        databases, network = Told("databases of OVN", loop.time), Told("network service", loop.time)
        asking = asyncio.create_task(self._ask(network))
        try:
            while True:
                databases.hear(self.northbound_fault())
                await asyncio.sleep(LOOK_EVERY)
                if asking.done():
                    asking.result()
        finally:
            asking.cancel()
            await asyncio.wait({asking})

    async def _ask(self, told: Told) -> None:
        pause = ASK_FIRST
        while not isinstance(self._network, NoNetwork):
            try:
                await self._network.subnets([NOTHING])
            except NetworkRefused as error:
                self._answer = f"{error.text}; {remedy(error)}"
                told.hear(self._answer)
                pause = min(ASK_MAX, pause * 1.5)
            else:
                told.hear(None)
                self._answered.set()
                pause = ASK_EVERY
            await asyncio.sleep(pause)
        await asyncio.Event().wait()


def remedy(error: NetworkRefused) -> str:
    """Which settings to look at."""
    if error.status in (401, 403) or "Unauthorized" in error.text or "Forbidden" in error.text:
        return "see ROADSTEAD_OVN_USERNAME, _PASSWORD or _PASSWORD_FILE, _PROJECT_NAME and the domains"
    return "see ROADSTEAD_OVN_AUTH_URL, _NEUTRON_ENDPOINT, _REGION_NAME, _INTERFACE and _CA_FILE"

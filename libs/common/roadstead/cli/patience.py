"""What a waiting command does while a service is away: it goes on waiting, and says so once."""

import asyncio
import sys

from roadstead.cli.failures import NoAnswer

PAUSE = 0.5


class Patience:
    """Until `deadline` (loop time) a request that nobody answered is sent again.  Notes go to standard error."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self._away: set[str] = set()

    @property
    def left(self) -> float:
        """Seconds."""
        return self.deadline - asyncio.get_running_loop().time()

    async def pause(self, error: NoAnswer) -> None:
        """Before the next try.  Raises the error again when the time is over."""
        if self.left <= 0:
            raise error
        self.missed(error.who)
        await asyncio.sleep(min(PAUSE, max(0.01, self.left)))

    def missed(self, who: str) -> None:
        """It gave no answer."""
        if who not in self._away:
            self._away.add(who)
            print(f"note: the {who} service does not answer; waiting goes on", file=sys.stderr, flush=True)

    def answered(self, who: str) -> None:
        if who in self._away:
            self._away.discard(who)
            print(f"note: the {who} service answers again", file=sys.stderr, flush=True)

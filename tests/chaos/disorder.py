"""Messages twice and out of order, as a broker may deliver them: some acknowledgements are not sent.

A message that was handled and not acknowledged is delivered again, after others that were published later.
"""

import random
from typing import Any

import nats.aio.msg

LATE = (0.1, 1.5)  # seconds


def deliver_again(share: float, seed: int) -> None:
    """From now on that share of first deliveries of this process comes a second time, later."""
    chance = random.Random(seed)
    message: Any = nats.aio.msg.Msg
    plain = message.ack

    async def ack(self: Any) -> None:
        if self.metadata.num_delivered == 1 and chance.random() < share:
            await self.nak(delay=chance.uniform(*LATE))
        else:
            await plain(self)

    message.ack = ack

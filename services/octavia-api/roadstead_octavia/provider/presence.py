"""Which of the enabled providers are at work: each is asked a question that has no effect.

A refusal is an answer too; only silence counts against a provider.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from roadstead_octavia.errors import ApiError
from roadstead_octavia.options import Options
from roadstead_octavia.provider.rpc import Requests, RpcProvider

PATIENCE = 3.0
QUESTION = "get_supported_flavor_metadata"
SILENT = 503


class Presence:
    """Looks when it is told to; nothing is remembered."""

    def __init__(self, bus: Requests, options: Options, *, patience: float = PATIENCE) -> None:
        self._provider = RpcProvider(bus, patience=patience)
        self._names = tuple(options.enabled_provider_drivers)
        self._default = options.default_provider_driver

    async def look(self) -> Mapping[str, Any]:
        """`{"default": name, "providers": [{"name", "answers", "text"}]}`, in the order of the settings."""
        seen = await asyncio.gather(*(self._one(name) for name in self._names))
        return {"default": self._default, "providers": seen}

    async def _one(self, name: str) -> Mapping[str, Any]:
        try:
            await self._provider.ask(name, QUESTION, [])
        except ApiError as error:
            if error.status == SILENT:
                return {"name": name, "answers": False, "text": error.text}
        return {"name": name, "answers": True, "text": ""}

"""An event loop whose time passes only when nobody has anything to do, so that hours of retries take milliseconds."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
START = 1_800_000_000.0  # seconds since 1970 at which every run begins


class _Selector(selectors.SelectSelector):
    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("everybody waits for something that never comes")
        self.loop.passed += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """passed: seconds since it began."""

    def __init__(self) -> None:
        selector = _Selector()
        selector.loop = self
        self.passed = 0.0
        super().__init__(selector)

    def time(self) -> float:
        return self.passed


def now() -> float:
    """Seconds since 1970, in virtual time."""
    return START + asyncio.get_running_loop().time()


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)

"""How scenarios become tests: one item for each world, run on that world's own loop.

A scenario is `async def test_...(world)`.  In the simulation each runs alone on virtual time.  On a stack of real processes
all selected scenarios run side by side on one loop, so that their waits overlap, and each item waits for its own.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from tests.world.adapter_sim import run_scenario
from tests.world.base import World

WORLDS = ("simulation", "integration", "cloud")
TIMEOUTS = {"simulation": 120, "integration": 300, "cloud": 600}

Run = Callable[[Callable[..., Any], str, Mapping[str, Any]], None]


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module, name: str, obj: Any) -> list[pytest.Item] | None:
    """Items of an async scenario; None for what is none."""
    if not (name.startswith("test") and inspect.iscoroutinefunction(obj)):
        return None
    function = obj

    @functools.wraps(function)
    def call(world: Run, request: pytest.FixtureRequest, **given: Any) -> None:
        world(function, request.node.nodeid, given)

    wanted = list(inspect.signature(function).parameters.values())
    more = [inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY)]
    call.__signature__ = inspect.Signature([*wanted, *more])  # type: ignore[attr-defined]  # what pytest reads fixtures from
    setattr(collector.obj, name, call)  # pytest takes the function of a parametrised item from its module
    return list(collector._genfunctions(name, call))


def scenarios_for(worlds: Iterable[str]) -> Callable[[pytest.Metafunc], None]:
    """The hook that gives a folder's scenarios one item a world; `@pytest.mark.worlds(...)` names other ones."""

    def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
        if "world" not in metafunc.fixturenames:
            return
        marker = metafunc.definition.get_closest_marker("worlds")
        names = marker.args if marker is not None else worlds
        found = [
            pytest.param(n, marks=[getattr(pytest.mark, n), pytest.mark.timeout(TIMEOUTS[n])], id=n)
            for n in names
        ]
        metafunc.parametrize("world", found, indirect=True)

    return pytest_generate_tests


def in_simulation(function: Callable[..., Any], nodeid: str, given: Mapping[str, Any]) -> None:
    async def whole(world: World) -> None:
        await function(world, **given)

    run_scenario(whole)


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs the scenario in the world of this item."""
    if request.param == "simulation":
        yield in_simulation
        return
    stack = request.getfixturevalue(f"{request.param}_stack")
    yield stack.result

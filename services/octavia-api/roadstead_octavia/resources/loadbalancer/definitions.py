"""A whole tree in the body of one request: where its pools are defined and where they are only named.

A listener's default pool and a policy's redirect pool are given in place or by name.  `sorted_out` brings all definitions into one list and
leaves names behind; from there on a pool is known by its name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roadstead_octavia.errors import invalid

Values = Mapping[str, Any]
# A pool with more attributes than its name and the two that have defaults says what it is.
MOST_OF_A_REFERENCE = 3
REQUIRED = ("protocol", "lb_algorithm")
NAMELESS = "Pools must be named when creating a fully populated loadbalancer."


@dataclass(frozen=True)
class Definitions:
    """pools: all of them, those defined in place behind the others.  listeners: as sent."""

    pools: tuple[Values, ...]
    listeners: tuple[Values, ...]

    def counts(self) -> dict[str, int]:
        """How many objects of each quota column there are, in the order in which limits are looked at; those of which there are none
        are left out."""
        policies = [policy for listener in self.listeners for policy in listener.get("l7policies") or ()]
        numbers = {
            "pool": len(self.pools),
            "health_monitor": sum(1 for pool in self.pools if pool.get("healthmonitor")),
            "member": sum(len(pool.get("members") or ()) for pool in self.pools),
            "listener": len(self.listeners),
            "l7policy": len(policies),
            "l7rule": sum(len(policy.get("rules") or ()) for policy in policies),
        }
        return {column: number for column, number in numbers.items() if number}


def sorted_out(body: Values) -> Definitions:
    """ApiError 400 for pools without a name, with the same one, and for names that nothing is defined under."""
    listeners: Sequence[Values] = body.get("listeners") or ()
    pools: list[Values] = list(body.get("pools") or ())
    names = []
    for pool in _mentioned(listeners):
        name = pool_name(pool)
        if not name:
            raise invalid(NAMELESS)
        names.append(name)
        if len(pool) > MOST_OF_A_REFERENCE:
            pools.append(pool)
    defined = [pool_name(pool) for pool in pools]
    if len(set(defined)) < len(defined):
        raise invalid("Pool names must be unique when creating a fully populated loadbalancer.")
    for name in names:
        if name not in defined:
            raise invalid(f"Pool '{name}' was referenced but no full definition was found.")
    return Definitions(tuple(pools), tuple(listeners))


def pool_name(pool: Values) -> str | None:
    name: str | None = pool.get("name")
    return name


def check_complete(pool: Values) -> None:
    """ApiError 400 for a definition that lacks what every pool has."""
    for name in REQUIRED:
        if not pool.get(name):
            if not pool_name(pool):
                raise invalid(NAMELESS)
            raise invalid(f"Pool definition for '{pool_name(pool)}' missing required attribute: {name}")


def _mentioned(listeners: Sequence[Values]) -> Iterator[Values]:
    """The pools in listeners, each listener's default pool before those of its policies."""
    for listener in listeners:
        if listener.get("default_pool") is not None:
            yield listener["default_pool"]
        for policy in listener.get("l7policies") or ():
            if policy.get("redirect_pool") is not None:
                yield policy["redirect_pool"]

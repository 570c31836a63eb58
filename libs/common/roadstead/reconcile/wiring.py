"""What a service's loop works with, and a lease as it is held in memory."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from roadstead.clock import Clock, Durations
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.port import Cloud
from roadstead.reconcile import rules
from roadstead.reconcile.drive import Ending
from roadstead.reconcile.kind import Kind, Resource
from roadstead.reconcile.views import Directory, Requests
from roadstead.seal import Sealer
from roadstead.store.api import Change, Known, Lease, Row, RowRule, Store


class Watcher(Protocol):
    """Telemetry of passes; every method returns at once and never raises."""

    def began(self, kind: str, row: Row, lag: float) -> "contextlib.AbstractContextManager[Any]": ...

    def ended(self, kind: str, row: Row, ending: Ending, seconds: float) -> None: ...


class Silent:
    """No telemetry."""

    def began(self, kind: str, row: Row, lag: float) -> "contextlib.AbstractContextManager[Any]":
        return contextlib.nullcontext()

    def ended(self, kind: str, row: Row, ending: Ending, seconds: float) -> None:
        return None


@dataclass
class Held:
    """A lease in memory: until when it surely holds, on the monotonic clock.

    known: the row as last seen, None when it has to be read.  granted: references that are ours and stand in no row yet; they are
    noted with the next intent or the pass's end, until when they stand there as announced.
    """

    lease: Lease
    sure_until: float
    lost: bool = False
    known: Known | None = None
    granted: dict[str, int] = field(default_factory=dict)
    resource: Resource[Any, Any] | None = None  # the row as its kind reads it, without the record

    async def change(self, store: Store, rule: RowRule) -> Change:
        """Change the row; no read while nobody else changed it."""
        change = await store.change(self.lease.key, rule, self.known)
        self.known = change.known
        return change

    def read(self, kind: Kind[Any, Any, Any], row: Row) -> Resource[Any, Any]:
        """Validated once a pass.  Raises what the kind's models raise."""
        if self.resource is None:
            self.resource = rules.resource_of(kind, row)
        return self.resource


@dataclass(frozen=True)
class Wiring:
    """What a Runner works with."""

    service: str
    kinds: Sequence[Kind[Any, Any, Any]]
    store: Store
    cloud: Cloud
    directory: Directory
    requests: Requests
    keyring: Keyring
    sealer: Sealer
    clock: Clock
    durations: Durations = field(default_factory=Durations)
    pace: float = 1.0
    owner: str = "one"
    max_passes: int = 64
    extras: Mapping[str, Any] = field(default_factory=dict)
    watcher: Watcher = field(default_factory=Silent)
    seed: int | None = None

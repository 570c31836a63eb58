"""What a service knows of resources that others own: their last STATUS message, nothing else.

Readers drop lower resource versions, so a repeated or reordered message changes nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from roadstead.bus.failures import RequestFailed
from roadstead.subjects import Key


@dataclass(frozen=True)
class StatusView:
    """One STATUS message.  `status` keeps the wire spelling; metadata carries identityId, organizationId, ..."""

    key: Key
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    generation: int
    incarnation: int
    resource_version: int
    consumers: tuple[str, ...] = ()
    deleting: bool = False
    gone: bool = False
    ever_provisioned: bool = False

    @property
    def provisioned(self) -> bool:
        """The newest accepted spec is realized; consumers gate on it."""
        return (
            not self.deleting
            and not self.gone
            and self.status.get("provisioningStatus") == "provisioned"
            and self.status.get("observedGeneration") == self.generation
        )


GONE_KEPT = 50_000


@dataclass
class Directory:
    """The newest StatusView of every resource this service follows, by kind and id; and the last that came by STATUS.

    Of what is gone only so much is kept as tells an older message from a newer one, and of the last `gone_kept` alone: whoever asks for
    one from before asks its owner, as for one that was never heard of.
    """

    gone_kept: int = GONE_KEPT
    _views: dict[tuple[str, str], StatusView] = field(default_factory=dict)
    _heard: dict[tuple[str, str], StatusView] = field(default_factory=dict)
    _gone: dict[tuple[str, str], None] = field(default_factory=dict)  # in the order in which they went

    def put(self, view: StatusView) -> bool:
        """Take it unless an equal or newer one is here; whether it was taken."""
        held = self._views.get((view.key.kind, view.key.id))
        if held is not None and held.resource_version >= view.resource_version:
            return False
        self._views[view.key.kind, view.key.id] = _remembered(view)
        self._forget(view)
        return True

    def _forget(self, view: StatusView) -> None:
        """Note whether it is gone, and let go of the one that has been gone for longest when there are too many."""
        self._gone.pop((view.key.kind, view.key.id), None)
        if view.gone:
            self._gone[view.key.kind, view.key.id] = None
        if len(self._gone) > self.gone_kept:
            oldest = next(iter(self._gone))
            for held in (self._gone, self._views, self._heard):
                held.pop(oldest, None)

    def hear(self, view: StatusView) -> bool:
        """Take what STATUS tells; whether STATUS told nothing as new before, whatever is known from elsewhere."""
        before = self.heard(view.key.kind, view.key.id)
        if before is not None and before.resource_version >= view.resource_version:
            return False
        self._heard[view.key.kind, view.key.id] = _remembered(view)
        self.put(view)
        return True

    def heard(self, kind: str, ident: str) -> StatusView | None:
        """The last view that STATUS told; None: it told none yet."""
        return self._heard.get((kind, ident))

    def get(self, kind: str, ident: str) -> StatusView | None:
        """None: never heard of; a gone one is a view with `gone`."""
        return self._views.get((kind, ident))

    def of_kind(self, kind: str) -> Iterator[StatusView]:
        return (view for (k, _), view in list(self._views.items()) if k == kind and not view.gone)


def _remembered(view: StatusView) -> StatusView:
    return replace(view, spec={}, status={}, consumers=()) if view.gone else view


class Requests(Protocol):
    """Requests from a pass to the owners of other resources (events.md section 3, rpc subjects)."""

    async def request(self, subject: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """The reply as a dict; {"error": {...}} is returned, not raised.  RequestFailed when nobody answers in time."""
        ...


__all__ = ["Directory", "RequestFailed", "Requests", "StatusView"]

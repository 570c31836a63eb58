"""What a service knows of resources that others own: their last STATUS message, nothing else.

Readers drop lower resource versions, so a repeated or reordered message changes nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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


@dataclass
class Directory:
    """The newest StatusView of every resource this service follows, by kind and id; and the last that came by STATUS."""

    _views: dict[tuple[str, str], StatusView] = field(default_factory=dict)
    _heard: dict[tuple[str, str], StatusView] = field(default_factory=dict)

    def put(self, view: StatusView) -> bool:
        """Take it unless an equal or newer one is here; whether it was taken."""
        held = self._views.get((view.key.kind, view.key.id))
        if held is not None and held.resource_version >= view.resource_version:
            return False
        self._views[view.key.kind, view.key.id] = view
        return True

    def hear(self, view: StatusView) -> bool:
        """Take what STATUS tells; whether STATUS told nothing as new before, whatever is known from elsewhere."""
        before = self.heard(view.key.kind, view.key.id)
        if before is not None and before.resource_version >= view.resource_version:
            return False
        self._heard[view.key.kind, view.key.id] = view
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


class Requests(Protocol):
    """Requests from a pass to the owners of other resources (events.md section 3, rpc subjects)."""

    async def request(self, subject: str, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """The reply as a dict; {"error": {...}} is returned, not raised.  RequestFailed when nobody answers in time."""
        ...


__all__ = ["Directory", "RequestFailed", "Requests", "StatusView"]

"""One pass over one resource: what `observe` and `act` may touch.

A Pass is handed to every I/O function of a kind.  Reads go through `get` and `find`; every write goes through `write`, which
stores the intent first, holds the lease past the call's deadline where the call creates or destroys, checks the lease in the last
moment, and notes what was done.  So no kind can forget one of these.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, Protocol

from roadstead.cloud.lookup import one
from roadstead.cloud.operations import operation
from roadstead.cloud.port import (
    Answer,
    Call,
    Cloud,
    CloudError,
    Principal,
    PrivilegedPrincipal,
    RegionDomain,
    RegionProject,
    Scope,
    Verdict,
)
from roadstead.reconcile.kind import O, Resource, S, T
from roadstead.reconcile.views import Directory, Requests, StatusView
from roadstead.region import RegionSpec


class Bookkeeper(Protocol):
    """What the loop does for a pass around a write; not for kinds."""

    async def intend(self, intent: Mapping[str, Any], *, hold: bool) -> None:
        """Store the intent; hold: extend the lease past the call's deadline in the same transaction."""
        ...

    def lease_holds(self) -> bool:
        """In memory, no I/O: the lease was confirmed and has time left."""
        ...

    async def save_record(self, record: Mapping[str, Any]) -> None:
        """Seal and store the private record now."""
        ...

    async def change_document(
        self,
        name: str,
        rule: Callable[[Mapping[str, Any] | None, datetime], tuple[Mapping[str, Any] | None, Any]],
    ) -> Any: ...


@dataclass
class Pass(Generic[S, T, O]):
    """State of one pass.  `seen` is set once observe returned and replaced by each Go."""

    resource: Resource[S, T]
    region_id: str
    region: RegionSpec | None  # None: the region's STATUS is not known (yet)
    identity_id: str | None
    now: datetime
    cloud: Cloud
    directory: Directory
    requests: Requests
    book: Bookkeeper
    decision_id: str = ""
    act: str = ""  # the verb that the decision named
    seen: O | None = None
    targets: dict[tuple[str, str], StatusView] = field(
        default_factory=dict
    )  # granted references, as answered by the owner
    writes: list[dict[str, Any]] = field(default_factory=list)  # acted records of this pass
    pending_status: dict[str, Any] = field(
        default_factory=dict
    )  # changes so far, stored with the next intent
    extras: Mapping[str, Any] = field(
        default_factory=dict
    )  # service-wide things a kind put there (inventories)
    # ids of cloud objects by noun: what earlier passes of this process saw as ours, and what this one saw anew
    remembered: Mapping[str, str] = field(default_factory=dict)
    noted: dict[str, str] = field(default_factory=dict)

    # ---- scopes

    @property
    def principal(self) -> Principal:
        """The identity's own user in its project."""
        return Principal(self.region_id, self._identity())

    @property
    def privileged(self) -> PrivilegedPrincipal:
        """The region's service user in the identity's project."""
        return PrivilegedPrincipal(self.region_id, self._identity())

    @property
    def region_domain(self) -> RegionDomain:
        return RegionDomain(self.region_id)

    @property
    def region_project(self) -> RegionProject:
        return RegionProject(self.region_id)

    def _identity(self) -> str:
        if not self.identity_id:
            raise CloudError(Verdict.CONSISTENCY, text="the resource has no identity")
        return self.identity_id

    # ---- what others own

    def target(self, kind: str, ident: str) -> StatusView | None:
        """A needed resource's newest known status: from the directory, else as granted."""
        return self.directory.get(kind, ident) or self.targets.get((kind, ident))

    # ---- reads

    async def get(self, scope: Scope, service: str, verb: str, **args: Any) -> Any:
        """One read; the object or the complete list.  Raises CloudError (GONE when proved absent)."""
        return (await self.cloud.call(Call(scope, service, verb, args))).value

    async def find(
        self,
        scope: Scope,
        service: str,
        verb: str,
        name: str,
        ours: Callable[[Mapping[str, Any]], bool] | None = None,
        **query: Any,
    ) -> dict[str, Any] | None:
        """The one object of exactly this name (and, given `ours`, with our key), or None when a complete list has none.

        One list request per page.  Several matches raise CloudError(CONSISTENCY); a failed list raises, it is never absence.
        """
        found = await self.get(scope, service, verb, query={"name": name_filter(service, name), **query})
        return one(found, name, ours)

    def note(self, noun: str, ident: Any) -> None:
        """Remember which object a list showed as ours: never authority, but a list that lacks it is looked at twice."""
        if str(ident) != self.remembered.get(noun):
            self.noted[noun] = str(ident)

    async def not_contradicted(
        self,
        scope: Scope,
        service: str,
        verb: str,
        ident: Any,
        bears: Callable[[Mapping[str, Any]], bool] | None = None,
        **args: Any,
    ) -> None:
        """A list without what we noted earlier is believed only when a read by id agrees; no id: nothing is asked.

        GONE agrees, and so does Keystone's 403 for what is gone, and an object that bears our key no more where `bears` says so: it
        was renamed, say.  CloudError(UNAVAILABLE) when the two answers differ: one is wrong.
        """
        if not ident:
            return
        try:
            found = await self.get(scope, service, verb, id=ident, **args)
        except CloudError as error:
            if error.verdict is Verdict.GONE or (
                error.verdict is Verdict.FORBIDDEN and service == "identity"
            ):
                return
            raise
        if bears is not None and not bears(found):
            return
        noun = verb.partition(".")[0]
        raise CloudError(Verdict.UNAVAILABLE, text=f"{service} lists no {noun} {ident} and yet has it")

    # ---- writes

    async def write(self, scope: Scope, service: str, verb: str, **args: Any) -> Answer:
        """One write to the cloud, with intent, guard and note.  Raises CloudError; UNKNOWN and LEASE_LOST end the pass."""
        op = operation(service, verb)
        entry: dict[str, Any] = {
            "decisionId": self.decision_id,
            "intentId": secrets.token_hex(8),
            "act": self.act,
            "verb": verb,
            "service": service,
            "method": op.method,
            "path": op.path,
            "destructive": op.destructive,
            "creates": op.creates,
            "at": self.now.isoformat(),
            "answered": False,
            "outcome": "unknown",
            "openstackRequestId": None,
        }
        hold = op.creates or op.destructive
        await self.book.intend(entry, hold=hold)
        self.writes.append(entry)
        try:
            answer = await self.cloud.call(
                Call(scope, service, verb, args, guard=self.book.lease_holds if hold else None)
            )
        except CloudError as error:
            entry["openstackRequestId"] = error.request_id
            if error.verdict is Verdict.LEASE_LOST:
                entry.update(answered=True, outcome="not_sent")
            elif error.verdict is not Verdict.UNKNOWN:
                entry.update(answered=True, outcome=error.verdict.value)
            raise
        entry.update(answered=True, outcome="ok", openstackRequestId=answer.request_id)
        return answer

    async def save_record(self, **fields: Any) -> Mapping[str, Any]:
        """Merge fields into the private record and store it at once (sealed); the whole record."""
        record = {**self.resource.record, **fields}
        await self.book.save_record(record)
        self.resource = replace(self.resource, record=record)
        return record


def name_filter(service: str, name: str) -> str:
    """The narrowest name filter the service has; the answer is compared in full all the same.

    Nova matches a regular expression anywhere, so the name is escaped and anchored.
    """
    if service != "compute":
        return name
    special = set("\\.^$*+?{}[]|()")
    return "^" + "".join("\\" + c if c in special else c for c in name) + "$"

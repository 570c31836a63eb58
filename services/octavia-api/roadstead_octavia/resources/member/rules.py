"""Rules of members: pure, for single creations, batches and graphs alike.  Addresses are compared as addresses, however they are spelt."""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from roadstead_octavia.db.port import Insert, Row, Tree, Write
from roadstead_octavia.errors import invalid, refuse
from roadstead_octavia.options import Options
from roadstead_octavia.provider.models import flavor_of
from roadstead_octavia.resources.below import CREATING
from roadstead_octavia.resources.member.wire import SINGLE
from roadstead_octavia.wire.columns import new_row

Values = Mapping[str, Any]
Place = tuple[str, int]
PERMISSION = "allow_member_sriov"  # key of a flavor's data


@lru_cache(maxsize=8192)  # a batch asks four times about each of its members
def canonical(address: str) -> str:
    return ipaddress.ip_address(address).compressed


def place_of(address: str, port: int) -> Place:
    """What two members of a pool never share."""
    return canonical(address), port


def places(members: Iterable[Row]) -> dict[Place, Row]:
    """The members by their places."""
    return {place_of(row["ip_address"], row["protocol_port"]): row for row in members}


def check_address(address: str, options: Options) -> None:
    """400 for an address that the deployment keeps for itself."""
    reserved = {canonical(one) for one in options.reserved_ips}
    if canonical(address) in reserved:
        raise refuse("InvalidOption", value=address, option="member address")


def check_sriov(values: Values, flavor: Mapping[str, Any] | None) -> None:
    """400 for a direct port where the load balancer's flavor does not grant it."""
    if values.get("request_sriov") and not (flavor or {}).get(PERMISSION, False):
        raise refuse("MemberSRIOVDisabled")


def check_unique(values: Values, taken: Mapping[Place, Row]) -> None:
    """409 when another member of the pool has the address and port."""
    if place_of(values["address"], values["protocol_port"]) in taken:
        raise duplicate(values)


def duplicate(values: Values) -> Exception:
    return refuse("DuplicateMemberEntry", ip_address=values["address"], port=values["protocol_port"])


def check_new(values: Values, tree: Tree) -> None:
    """400 for what the load balancer's flavor does not grant."""
    check_sriov(values, flavor_of(tree))


def row_of(
    values: Values, *, identifier: str, pool_id: str, project_id: str, monitored: bool
) -> dict[str, Any]:
    """A new member.  monitored: whether its pool has a health monitor."""
    row = {
        **new_row(SINGLE, values),
        "id": identifier,
        "pool_id": pool_id,
        "project_id": project_id,
        "vnic_type": "direct" if values.get("request_sriov") else "normal",
        **CREATING,
    }
    if not monitored:
        row["operating_status"] = "NO_MONITOR"
    return row


def rows(values: Values, *, identifier: str, pool_id: str, project_id: str, monitored: bool) -> list[Write]:
    """The rows of a new member."""
    row = row_of(values, identifier=identifier, pool_id=pool_id, project_id=project_id, monitored=monitored)
    tags = values.get("tags") or ()
    return [
        Insert("member", row),
        *(Insert("tags", {"resource_id": identifier, "tag": tag}) for tag in tags),
    ]


@dataclass
class Batch:
    """What a batch asks for, as against what is there.

    new: to be made.  kept: (row, values) to be changed.  dropped: rows to go.  untouched: rows that stay as they are.
    """

    new: list[Values] = field(default_factory=list)
    kept: list[tuple[Row, Values]] = field(default_factory=list)
    dropped: list[Row] = field(default_factory=list)
    untouched: list[Row] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.new or self.kept or self.dropped)


def sorted_out(
    wanted: Iterable[Values], members: Sequence[Row], *, additive: bool, options: Options
) -> Batch:
    """400 for a reserved address, for a member that is named twice, and for a subnet that would change; 409 for a new one twice.

    A new member twice is told apart from an old one twice, as clients know it.  additive: what is not wanted stays.
    """
    there = places(members)
    batch = Batch()
    seen: set[Place] = set()
    for values in wanted:
        place = place_of(values["address"], values["protocol_port"])
        row = there.get(place)
        if row is None:
            check_address(values["address"], options)
            batch.new.append(values)
        elif place in seen:
            raise invalid("Member must be updated only once in the same request.")
        else:
            check_subnet(row, values)
            batch.kept.append((row, values))
        seen.add(place)
    kept = {row["id"] for row, _ in batch.kept}
    for row in members:
        if row["id"] not in kept:
            (batch.untouched if additive else batch.dropped).append(row)
    return batch


def check_subnet(row: Row, values: Values) -> None:
    """400 for another subnet than the member's: it cannot be changed."""
    wanted = values.get("subnet_id")
    if wanted is not None and wanted != row["subnet_id"]:
        raise invalid(f"The subnet of member {row['id']} cannot be changed.")


def check_once(new: Iterable[Values]) -> None:
    """409 for a new member that is named twice."""
    seen: set[Place] = set()
    for values in new:
        place = place_of(values["address"], values["protocol_port"])
        if place in seen:
            raise duplicate(values)
        seen.add(place)

"""VIP ports: what Octavia's providers make in Neutron before their load balancer can be seen, and may leave behind.

A refused create leaves its port in the subnet, with the mark of a load balancer that nobody knows (measured); it blocks its address
and its network for ever.  Which ports bear such a mark is said here alone.  Pure.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from roadstead.clock import parse_time

VIP_OWNERS = ("ovn-lb:vip", "Octavia")
STRAY_AGE = timedelta(seconds=65)
"""A VIP port is older than its load balancer's row for a moment; longer than this nobody's create is under way."""


def balancer_of(port: Mapping[str, Any]) -> str | None:
    """The load balancer for which a VIP port was made, by its mark `lb-<id>`; None for every other port."""
    text = str(port.get("device_id") or "")
    if port.get("device_owner") not in VIP_OWNERS or not text.startswith("lb-"):
        return None
    try:
        return str(UUID(text.removeprefix("lb-")))
    except ValueError:
        return None


def made_at(port: Mapping[str, Any]) -> datetime | None:
    """None where the cloud does not tell: then nobody can say that the port is old."""
    try:
        return parse_time(str(port["created_at"]))
    except (KeyError, ValueError):
        return None

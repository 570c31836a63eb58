"""Who sweeps which projects: a project belongs to a shard for ever, a shard to one replica for as long as its lease.

Pure rules over one document.  Two replicas that sweep the same shard for a moment do no harm (observations are facts with the time
of their read), so a lease only spares work; a dead replica's shards are taken over when its lease ends.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from roadstead.clock import iso, parse_time

DOCUMENT = "monitor.shards"


def shard_of(region: str, identity: str, shards: int) -> int:
    """The shard of a project, the same in every replica and release."""
    digest = hashlib.sha256(f"{region}/{identity}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % shards


def take(
    document: Mapping[str, Any] | None, now: datetime, *, owner: str, shards: int, lease: float
) -> tuple[Mapping[str, Any], tuple[int, ...]]:
    """Renew, give back what is above a fair share, take what is free up to it.  (new document, shards that are ours)

    lease: seconds.  The document names live members, so that a newcomer's share becomes free at the next turn of the others.
    """
    held = dict((document or {}).get("held", {}))
    members = {
        m: until for m, until in (document or {}).get("members", {}).items() if parse_time(until) > now
    }
    until = iso(now + timedelta(seconds=lease))
    members[owner] = until
    live = {s: h for s, h in held.items() if int(s) < shards and parse_time(h["until"]) > now}
    share = -(-shards // len(members))
    mine = sorted(int(s) for s, h in live.items() if h["owner"] == owner)[:share]
    free = [n for n in range(shards) if str(n) not in live]
    mine += free[: max(0, share - len(mine))]
    kept = {s: h for s, h in live.items() if h["owner"] != owner}
    kept |= {str(n): {"owner": owner, "until": until} for n in mine}
    return {"members": members, "held": kept}, tuple(sorted(mine))


def leave(
    document: Mapping[str, Any] | None, _now: datetime, *, owner: str
) -> tuple[Mapping[str, Any], None]:
    """A replica that stops gives its shards back at once."""
    held = (document or {}).get("held", {})
    members = (document or {}).get("members", {})
    return {
        "members": {m: u for m, u in members.items() if m != owner},
        "held": {s: h for s, h in held.items() if h["owner"] != owner},
    }, None

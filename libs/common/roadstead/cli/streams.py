"""How the broker's streams stand."""

from typing import Any

import nats.errors
import nats.js.errors

from roadstead.cli.client import Client
from roadstead.subjects import STREAMS


async def stream_rows(client: Client) -> list[dict[str, Any]]:
    """One entry a stream of the table; messages None: it is not there, or may not be looked at."""
    rows: list[dict[str, Any]] = []
    for name in STREAMS:
        try:
            info = await client.js.stream_info(name)
        except nats.js.errors.NotFoundError:
            rows.append({"name": name, "missing": True})
            continue
        except (nats.errors.Error, TimeoutError) as error:
            rows.append({"name": name, "hidden": str(error) or type(error).__name__})
            continue
        limit = info.config.max_bytes or 0
        share = info.state.bytes / limit if limit > 0 else 0.0
        rows.append(
            {
                "name": name,
                "messages": info.state.messages,
                "bytes": info.state.bytes,
                "full": f"{share:.1%}",
                "share": share,
                "lastSequence": info.state.last_seq,
            }
        )
    return rows

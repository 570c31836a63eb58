"""`roadstead octavia operations`: what the Octavia API asked of load balancing providers."""

import asyncio
from typing import Annotated, Any

import typer

from roadstead.cli.client import connected
from roadstead.cli.failures import UserError
from roadstead.cli.output import Form, FormOption, emit, show_table
from roadstead.subjects import OCTAVIA_API, rpc_subject


def operations(
    loadbalancer: Annotated[str | None, typer.Argument(help="Only of this load balancer.")] = None,
    limit: Annotated[int, typer.Option(help="The newest ones, at most.", min=1, max=500)] = 50,
    form: FormOption = Form.TABLE,
) -> None:
    """Show what was asked of load balancing providers, newest first, and why something is in ERROR.

    Example: roadstead octavia operations
    """

    async def work() -> list[dict[str, Any]]:
        wanted: dict[str, Any] = {"limit": limit}
        if loadbalancer is not None:
            wanted["loadbalancer_id"] = loadbalancer
        async with connected() as client:
            reply = await client.ask(rpc_subject(OCTAVIA_API, "operations"), wanted, who=OCTAVIA_API)
        if "operations" not in reply:
            raise UserError(str(reply.get("fault_string") or "the Octavia API gave no list"))
        return list(reply["operations"])

    found = asyncio.run(work())
    if not emit(form, found):
        rows = [
            (
                *(x[k] for k in ("created_at", "loadbalancer_id", "provider", "method", "state", "sends")),
                x["reason"],
            )
            for x in found
        ]
        show_table(
            ("AT", "LOAD BALANCER", "PROVIDER", "METHOD", "STATE", "SENT", "REASON"),
            rows,
            none="no operation is remembered",
        )

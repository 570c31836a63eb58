"""`roadstead ovn ...`: commands for those who run the OVN worker; a running worker answers them."""

import asyncio
import json
from typing import Annotated, Any

import typer

from roadstead.cli.client import connected
from roadstead.cli.failures import USAGE, UserError
from roadstead.cli.output import Form, FormOption, emit, say, show_table
from roadstead.subjects import provider_rpc_subject

group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Load balancers in OVN: what the worker has made of them.",
)

ProviderOption = Annotated[str, typer.Option("--provider", help="Name of the worker's provider.")]
Balancer = Annotated[str, typer.Argument(help="Id of the load balancer.")]


@group.callback()
def ovn() -> None:
    """Load balancers in OVN: show them, compare them with the database, put them right."""


@group.command()
def show(balancer: Balancer, provider: ProviderOption = "ovn", form: FormOption = Form.TABLE) -> None:
    """Show rows, statuses and the work row of a load balancer; `-o json` has the facts as well.

    Example: roadstead ovn show 3f6c9a52-7f8e-4f55-b8a5-0d5e5f0b2c11
    """
    found = _ask(provider, "show", balancer)
    if emit(form, found):
        return
    rows = [
        (r["protocol"] or "-", r["revision"], vip, servers)
        for r in found["rows"]
        for vip, servers in (r["vips"] or {"-": ""}).items()
    ]
    show_table(("PROTOCOL", "REVISION", "VIP", "SERVERS"), rows, none="the database has no rows of it")
    states = [(key, s["provisioning"], s["operating"]) for key, s in found["statuses"].items()]
    show_table(("OBJECT", "PROVISIONING", "OPERATING"), states, none="the Octavia API does not have it")
    if (work := found["work"]) is not None:
        say(f"revision {work['revision']}, done {work['done']}, failures {work['failures']}")
        if work["fault"]:
            say(f"last fault: {work['fault']}")
        if work["calls"]:
            say(f"not reported yet: {', '.join(work['calls'])}")


@group.command()
def diff(balancer: Balancer, provider: ProviderOption = "ovn", form: FormOption = Form.TABLE) -> None:
    """Show what differs between the database and what is wanted, column by column.  Changes nothing.

    Example: roadstead ovn diff 3f6c9a52-7f8e-4f55-b8a5-0d5e5f0b2c11
    """
    found = _ask(provider, "diff", balancer)
    if emit(form, found):
        return
    if found.get("newer") is not None:
        say(
            f"the database holds revision {found['newer']}, above the API's {found['revision']}: nothing is written"
        )
    rows = [(d["row"], d["column"], _text(d["found"]), _text(d["wanted"])) for d in found["differences"]]
    if found.get("rows_without_tree"):
        say("the Octavia API does not have it, and the database has rows of it")
    show_table(("ROW", "COLUMN", "FOUND", "WANTED"), rows, none="nothing differs")


@group.command()
def sync(
    balancer: Annotated[str | None, typer.Argument(help="Id of the load balancer.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All load balancers.")] = False,
    provider: ProviderOption = "ovn",
    form: FormOption = Form.TABLE,
) -> None:
    """Compare a load balancer with the database now, and put right what differs.

    Example: roadstead ovn sync --all
    """
    if (balancer is None) == (not every):
        raise UserError("give the id of a load balancer, or --all", USAGE)
    found = _ask(provider, "sync", balancer or "")
    if not emit(form, found):
        say(f"{found['due']} due; `roadstead ovn diff` shows what still differs")


def _ask(provider: str, what: str, balancer: str) -> dict[str, Any]:
    subject = provider_rpc_subject(provider, "ask", f"operate_{what}")

    async def work() -> dict[str, Any]:
        async with connected() as client:
            return await client.ask(subject, {"arguments": [balancer]}, who="the OVN worker")

    reply = asyncio.run(work())
    found: dict[str, Any] = reply.get("returns") or {}
    if not found or "fault" in found:
        raise UserError(str(found.get("fault") or "the worker gave no answer; see its log"))
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

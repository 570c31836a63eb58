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
WHICH = (
    "Id or name of the load balancer in the Octavia API, or the ID that `roadstead get loadbalancer` shows."
)
Balancer = Annotated[str, typer.Argument(help=WHICH)]
OptionalBalancer = Annotated[str | None, typer.Argument(help=WHICH)]
Every = Annotated[bool, typer.Option("--all", help="All load balancers.")]
DIFFERS = 3  # exit status of `diff`
ONE_WITHIN = 30.0  # seconds; a word that is no id is looked for in all trees
ALL_WITHIN = 120.0  # seconds that a worker may take to compare all of them


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
def diff(
    balancer: OptionalBalancer = None,
    every: Every = False,
    provider: ProviderOption = "ovn",
    form: FormOption = Form.TABLE,
) -> None:
    """Show what differs between the database and what is wanted; exit status 3 when something does.  Changes nothing.

    Column by column of one load balancer; with --all, which of them differ.

    Example: roadstead ovn diff 3f6c9a52-7f8e-4f55-b8a5-0d5e5f0b2c11
    """
    _one_or_all(balancer, every)
    found = _ask(provider, "diff", balancer or "", within=ONE_WITHIN if balancer else ALL_WITHIN)
    differs = bool(found.get("differing") if every else _stands_apart(found))
    if not emit(form, found):
        if every:
            _show_differing(found)
        else:
            _show_differences(found, differs)
    if differs:
        raise typer.Exit(DIFFERS)


def _stands_apart(found: dict[str, Any]) -> bool:
    return bool(found["differences"] or found.get("rows_without_tree") or found.get("newer") is not None)


def _show_differences(found: dict[str, Any], differs: bool) -> None:
    if found.get("newer") is not None:
        say(
            f"the database holds revision {found['newer']}, above the API's {found['revision']}: nothing is written; "
            "if the API's database was restored, `roadstead ovn sync ID --adopt` writes over it"
        )
    if found.get("rows_without_tree"):
        say("the Octavia API does not have it, and the database has rows of it")
    rows = [(d["row"], d["column"], _text(d["found"]), _text(d["wanted"])) for d in found["differences"]]
    if rows or not differs:
        show_table(("ROW", "COLUMN", "FOUND", "WANTED"), rows, none="nothing differs")


def _show_differing(found: dict[str, Any]) -> None:
    rows = [(each["loadbalancer_id"], each["why"]) for each in found["loadbalancers"]]
    show_table(("LOAD BALANCER", "WHY"), rows, none=f"nothing differs in {found['compared']} load balancers")
    if len(rows) < found["differing"]:
        say(f"and {found['differing'] - len(rows)} more")


@group.command()
def sync(
    balancer: OptionalBalancer = None,
    every: Every = False,
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt",
            help="Write over a newer revision as well: after the API's database was restored from a backup.",
        ),
    ] = False,
    provider: ProviderOption = "ovn",
    form: FormOption = Form.TABLE,
) -> None:
    """Compare a load balancer with the database now, and put right what differs.

    Example: roadstead ovn sync --all
    """
    _one_or_all(balancer, every)
    found = _ask(provider, "sync", balancer or "", adopt)
    if not emit(form, found):
        say(f"{found['due']} due; `roadstead ovn diff` shows what still differs")


def _one_or_all(balancer: str | None, every: bool) -> None:
    if bool(balancer) == every:
        raise UserError("give the id of a load balancer, or --all", USAGE)


def _ask(
    provider: str, what: str, balancer: str, *more: object, within: float = ONE_WITHIN
) -> dict[str, Any]:
    subject = provider_rpc_subject(provider, "ask", f"operate_{what}")

    async def work() -> dict[str, Any]:
        async with connected() as client:
            question = {"arguments": [balancer, *more]}
            return await client.ask(subject, question, who="the OVN worker", timeout=within)

    reply = asyncio.run(work())
    found: dict[str, Any] = reply.get("returns") or {}
    if not found or "fault" in found:
        raise UserError(str(found.get("fault") or "the worker gave no answer; see its log"))
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

"""dlq list, show, replay, dismiss: messages that were refused."""

import asyncio
from typing import Annotated, Any

import typer

from roadstead.cli.client import connected
from roadstead.cli.dead_letters import DeadLetter, dismiss_all, dismissed, listed, replayed, shown
from roadstead.cli.failures import UserError
from roadstead.cli.output import Form, FormOption, emit, say, show_table

group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Messages that were refused, and why.")

SequenceArgument = Annotated[int, typer.Argument(help="Its number in `roadstead dlq list`.", min=1)]


@group.command("list")
def listing(
    service: Annotated[str, typer.Option(help="Only of this service.")] = "*",
    limit: Annotated[int, typer.Option(help="The newest ones, at most.", min=1, max=10_000)] = 200,
    form: FormOption = Form.TABLE,
) -> None:
    """Show refused messages, oldest first.

    Example: roadstead dlq list
    """

    async def work() -> list[DeadLetter]:
        async with connected() as client:
            return await listed(client, service, limit)

    letters = asyncio.run(work())
    if not emit(form, [letter.summary() for letter in letters]):
        rows: list[tuple[Any, ...]] = [
            (x.sequence, x.at, x.service, x.reason, x.subject, x.message) for x in letters
        ]
        show_table(
            ("SEQUENCE", "AT", "SERVICE", "REASON", "SUBJECT", "MESSAGE"), rows, none="no message was refused"
        )


@group.command()
def show(sequence: SequenceArgument, form: FormOption = Form.TABLE) -> None:
    """Show one refused message with every reason and its body.

    Example: roadstead dlq show 3
    """

    async def work() -> DeadLetter:
        async with connected() as client:
            return await shown(client, sequence)

    letter = asyncio.run(work())
    if emit(form, letter.full()):
        return
    for name, value in letter.summary().items():
        say(f"{name:<10} {value}")
    for detail in letter.details:
        say(f"  {detail.get('code')}  {detail.get('field') or ''}  {detail.get('message')}")
    say("")
    print(letter.body_text())


@group.command()
def replay(sequence: SequenceArgument) -> None:
    """Publish the original message again on its subject; it is judged anew, as the newest one.

    Example: roadstead dlq replay 3
    """

    async def work() -> str:
        async with connected() as client:
            return await replayed(client, sequence)

    say(asyncio.run(work()))


@group.command()
def dismiss(
    sequence: Annotated[int, typer.Argument(help="Its number in `roadstead dlq list`.", min=0)] = 0,
    everything: Annotated[bool, typer.Option("--all", help="All that are there now.")] = False,
    service: Annotated[str, typer.Option(help="With --all: only of this service.")] = "*",
) -> None:
    """Take a refused message out for good, when what it wanted is settled; `doctor` counts what is left.

    Example: roadstead dlq dismiss 3
    """
    if bool(sequence) == everything:
        raise UserError("give the number of one, or --all", 2)

    async def work() -> int:
        async with connected() as client:
            if everything:
                return await dismiss_all(client, service)
            await dismissed(client, sequence)
            return 1

    count = asyncio.run(work())
    say(f"{count} dismissed" if count else "there was none")

"""The program: options that hold for every command, the commands, and how every failure ends.

A mistake of the person at the terminal is one line on standard error with the remedy, never a traceback.
"""

import logging
import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Annotated, Any

import structlog
import typer

from roadstead.cli import chosen
from roadstead.cli.commands import apply, dlq, explain, identity, operate, read, region, small, stack
from roadstead.cli.context import Choice
from roadstead.cli.failures import UserError
from roadstead.cli.output import complain

INTERRUPTED = 130
# Typer carries its own copy of click in some releases and uses click itself in others; its public class leads to either.
_Mistake: type[Exception] = typer.BadParameter.__mro__[2]
# Options of the program itself that people also write behind the command.
ANYWHERE = ("--context", "--region", "--project", "--organization")

app = typer.Typer(
    name="roadstead",
    help="Say what you want of an OpenStack region, and see how it stands and why.",
    epilog="--context, --region, --project and --organization may stand anywhere in the line.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def program(
    context: Annotated[
        str | None,
        typer.Option(help="A context of ~/.config/roadstead/contexts.yaml, a file of one, or local."),
    ] = None,
    region_id: Annotated[str | None, typer.Option("--region", help="Id of the region.")] = None,
    project: Annotated[str | None, typer.Option(help="Id of the platform project.")] = None,
    organization: Annotated[str | None, typer.Option(help="Id of the organization.")] = None,
) -> None:
    chosen.choice = Choice(context, region_id, project, organization)


for each in (
    *(stack.up, stack.down, stack.status, stack.logs),
    *(apply.apply, read.get, read.describe, read.watch, read.wait, apply.delete),
    *(explain.why, explain.history, operate.doctor, operate.migrate, operate.rebuild),
):
    app.command()(each)
app.add_typer(identity.group, name="identity")
app.add_typer(region.group, name="region")
app.add_typer(dlq.group, name="dlq")
app.add_typer(small.ids, name="id")
for entry in entry_points(group="roadstead.commands"):
    # Groups of commands that other distributions bring along.
    app.add_typer(entry.load(), name=entry.name)
app.command()(small.env)
app.command()(small.version)
app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False
)(small.cloudsim)


def hoisted(arguments: Sequence[str]) -> list[str]:
    """The arguments with the program's own options in front, wherever they stood before a `--`."""
    front: list[str] = []
    rest: list[str] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            rest += [word, *waiting]
            break
        if word in ANYWHERE and waiting:
            front += [word, waiting.pop(0)]
        elif word.partition("=")[0] in ANYWHERE and "=" in word:
            front.append(word)
        else:
            rest.append(word)
    return front + rest


def main(arguments: Sequence[str] | None = None) -> None:
    """The command `roadstead`; exits the process."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit status."""
    _quiet()
    try:
        result: Any = app(args=hoisted(arguments), prog_name="roadstead", standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        complain(str(error))
        return error.status
    except typer.Exit as ending:
        return ending.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except _Mistake as error:
        return _refused(error)
    except BrokenPipeError:
        # The reader of a pipe has seen enough; nothing may be written to it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return result if isinstance(result, int) else 0


def _refused(error: Any) -> int:
    """A command line that cannot be."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "roadstead"
    # The library that checks an option's value puts its own words before ours.
    text = str(error.format_message()).replace("Value error, ", "").rstrip(".?!")
    complain(f"{text}; see `{command} --help`")
    return int(error.exit_code)


def _quiet() -> None:
    """The libraries' own log lines are not for the terminal of this command."""
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger("nats").setLevel(logging.CRITICAL)
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )

"""id, version, cloudsim: small things."""

import os
import shlex
import sys
import uuid
from importlib.metadata import version as version_of
from typing import Annotated

import typer

from roadstead.cli import chosen
from roadstead.cli.context import is_uuid
from roadstead.cli.failures import UserError
from roadstead.cli.kinds import stored_kind
from roadstead.cli.naming import hidden_identity, id_for
from roadstead.cli.output import say

ids = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Ids that follow from names, and new ones."
)


@ids.command("new")
def new() -> None:
    """Print a new id.

    Example: roadstead id new
    """
    say(str(uuid.uuid4()))


@ids.command("server")
def server(
    network: Annotated[str, typer.Argument(help="Id of its network.")],
    name: Annotated[str, typer.Argument(help="Its name.")],
) -> None:
    """Print the id of the server of that name on that network.

    Example: roadstead id server 5f1c3c1e-4a0e-4c6b-9a53-6d1b2f6f0c11 web-1
    """
    say(id_for("server", name, region="", project=None, network=_uuid(network)))


@ids.command("identity-of")
def identity_of(network: Annotated[str, typer.Argument(help="Id of the network.")]) -> None:
    """Print the id of the identity that a network brings along when it names none.

    Example: roadstead id identity-of 5f1c3c1e-4a0e-4c6b-9a53-6d1b2f6f0c11
    """
    say(hidden_identity(_uuid(network)))


@ids.command("of")
def of(
    kind: Annotated[str, typer.Argument(help="Kind of the resource.")],
    name: Annotated[str, typer.Argument(help="Its name.")],
    network: Annotated[str | None, typer.Option(help="Id of the network it hangs on.")] = None,
) -> None:
    """Print the id that `apply` gives to a new resource of that name.

    Example: roadstead id of volume data --network 5f1c3c1e-4a0e-4c6b-9a53-6d1b2f6f0c11
    """
    context = chosen.context()
    place = _uuid(network) if network else None
    say(
        id_for(
            stored_kind(kind),
            name,
            region=context.need_region(),
            project=context.need_project(),
            network=place,
        )
    )


def _uuid(text: str) -> str:
    if not is_uuid(text):
        raise UserError(f"{text} is no UUID; `roadstead get network` shows ids", 2)
    return text.lower()


def env() -> None:
    """Print the context as variables for a shell: addresses, region, project, organization; OVN's databases where `up --ovn` runs.

    Example: eval "$(roadstead env)"
    """
    context = chosen.context()
    values = {
        "NATS_URL": context.nats_url,  # what the nats command reads
        "ROADSTEAD_REGION": context.region,
        "ROADSTEAD_PROJECT": context.project,
        "ROADSTEAD_ORGANIZATION": context.organization,
        **_ovn(),
    }
    for name, value in values.items():
        if value:
            print(f"export {name}={shlex.quote(value)}")


def _ovn() -> dict[str, str]:
    """What ovn-nbctl and ovn-sbctl read, when the context is a local stack's and that has an OVN."""
    home = chosen.local_home()
    sockets = home.ovn_sockets if home is not None else {}
    return {f"OVN_{side.upper()}_DB": f"unix:{path}" for side, path in sockets.items()}


def version() -> None:
    """Print the release.

    Example: roadstead version
    """
    say(f"roadstead {version_of('roadstead')}, Python {sys.version.split()[0]}")


def cloudsim(context: typer.Context) -> None:
    """Serve a simulated OpenStack cloud; the options are those of `python -m roadstead.testing.cloudsim`.

    Example: roadstead cloudsim --port 5000 --write-clouds clouds.yaml
    """
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "roadstead.testing.cloudsim", *context.args])  # noqa: S606 - no shell is wanted

"""identity credentials: what a tenant needs to use the identity's project with other tools."""

import asyncio
import base64
import os
from pathlib import Path
from typing import Annotated

import typer

from roadstead.cli.client import connected
from roadstead.cli.commands.read import ResourceArgument
from roadstead.cli.failures import UserError
from roadstead.cli.output import Form, FormOption, emit, say
from roadstead.cli.reading import find

group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What belongs to an identity.")


@group.callback()
def identity() -> None:
    """What belongs to an identity."""


@group.command()
def credentials(
    resource: ResourceArgument,
    output: Annotated[
        Path | None, typer.Option("--file", "-f", help="Write the clouds.yaml there, for you alone.")
    ] = None,
    ssh_key: Annotated[
        Path | None, typer.Option("--ssh-key", help="Write the SSH private key there, for you alone.")
    ] = None,
    form: FormOption = Form.TABLE,
) -> None:
    """Show the client configuration (clouds.yaml) of an identity; secrets are on the screen unless a file is given.

    Example: roadstead identity credentials quickstart --file clouds.yaml
    """

    async def work() -> None:
        async with connected() as client:
            held = await find(client, "identity", resource)
            metadata = held["metadata"]
            reply = await client.api(
                "identity",
                "credentials",
                {"id": metadata["id"]},
                region=str(metadata["regionId"]),
                project=str(metadata["projectId"]),
            )
        config = base64.urlsafe_b64decode(str(reply["cloudConfig"])).decode()
        if ssh_key is not None:
            write_private(ssh_key, str(reply.get("sshPrivateKey") or ""))
            say(f"SSH private key written to {ssh_key}")
        if output is not None:
            write_private(output, config)
            say(
                f"written; use it with: OS_CLIENT_CONFIG_FILE={output} openstack --os-cloud {reply.get('cloud')} server list"
            )
        elif ssh_key is None and not emit(form, reply):
            print(config, end="")

    asyncio.run(work())


def write_private(path: Path, text: str) -> None:
    """A file that only its owner reads."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            os.fchmod(descriptor, 0o600)  # an older file keeps its mode otherwise
            file.write(text)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None

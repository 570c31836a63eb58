"""`up --quickstart`: the cloud becomes a region, the example file is applied, and a line says what to try next."""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

from roadstead.cli.applying import Applying, apply_documents
from roadstead.cli.client import Client, connected
from roadstead.cli.context import Choice, Context, load_context, write_context
from roadstead.cli.documents import Document, read_documents
from roadstead.cli.failures import UserError
from roadstead.cli.output import say
from roadstead.cli.regions import (
    administrator,
    configure_cloud,
    document,
    held_region,
    offer_of,
    register_region,
    until_known,
    until_ready,
)
from roadstead.cli.stack.build import ORGANIZATION, PROJECT, Blueprint, simulator_region
from roadstead.cli.stack.home import SIMULATOR, Home
from roadstead.cloud.configure import Wanted
from roadstead.cloud.register import region_id_of

FILE = "quickstart.yaml"
PREFIX = "roadstead-local"
NAMESPACE = "local"
PROVISIONED_WITHIN = 300.0


def after_start(home: Home, cloud: str) -> Callable[[Context, Blueprint], Awaitable[None]]:
    """What `up` does once everything is ready."""

    async def after(_context: Context, _plan: Blueprint) -> None:
        await run_quickstart(home, cloud)
        say("Ctrl-C ends everything; what was made is kept for the next `roadstead up`")

    return after


async def run_quickstart(home: Home, cloud: str) -> None:
    """Register, apply, wait, and say what to try next.  UserError for what did not become provisioned."""
    say(f"registering the cloud {cloud} as a region")
    context = load_context(Choice(str(home.context)))
    async with connected(context) as client:
        region = await register_cloud(client, home, cloud)
    context = replace(context, region=region, project=PROJECT, organization=ORGANIZATION)
    write_context(home.context, context)
    async with connected(context) as client:
        say("waiting for what the region offers")
        await until_known(client, region, ("flavor", "image", "volumeclass", "externalnetwork"))
        say(f"applying {example_path()}")
        done = await apply_documents(client, example(), Applying(wait=True, timeout=PROVISIONED_WITHIN))
        balancers = [item.id for item in done if item.kind == "loadbalancer"] if home.ovn_sockets else []
        say_next({item.name: item.id for item in done if item.kind == "server"}, balancers)


async def register_cloud(client: Client, home: Home, cloud: str) -> str:
    """`region configure` and `region register` with what the stack knows; the region's id.  The same again changes nothing."""
    simulated = cloud == SIMULATOR
    clouds = home.simulator / "clouds.yaml" if simulated else None
    admin = await asyncio.to_thread(administrator, "sim" if simulated else cloud, None, clouds)
    variables = home.region(cloud)
    try:
        made = await configure_cloud(admin, Wanted(prefix=PREFIX), variables)
    except UserError as error:
        if "password" not in str(error):
            raise
        again = f"roadstead region configure --cloud {cloud} --prefix {PREFIX} --rotate --file {variables}"
        raise UserError(f"{error}: `{again}`, then `roadstead up` again") from None
    offer = await offer_of(admin)
    region = simulator_region() if simulated else region_id_of(admin.auth_url, cloud)
    held = await held_region(client, region)
    wanted = document(
        name=cloud,
        namespace=NAMESPACE,
        endpoint=admin.auth_url,
        region_id=region,
        region_name=admin.region_name,
        create_secret=True,
        values=made.values,
        volume_classes=offer.classes(["all"]),
        algorithm=offer.algorithm,
        external_network=made.values.get("EXTERNAL_NETWORK"),
        held=held,
    )
    await register_region(client, wanted)
    variables.with_suffix(".id").write_text(region + "\n")
    await until_ready(client, region)
    say(f"region {cloud} ({region}) is registered and reachable", "green")
    for warning in made.warnings:
        say(f"note: {warning}", "yellow")
    return region


def example() -> list[Document]:
    """The documents of examples/quickstart.yaml: the one of the working tree, else the one that came with the package."""
    return read_documents([example_path()])


def example_path() -> Path:
    for folder in (Path.cwd(), *Path(__file__).resolve().parents):
        if (path := folder / "examples" / FILE).is_file():
            return path
    packaged = Path(str(resources.files("roadstead") / "examples" / FILE))
    if packaged.is_file():
        return packaged
    raise UserError(f"examples/{FILE} is not here: run the command in the repository's folder")


def say_next(servers: dict[str, str], balancers: Sequence[str] = ()) -> None:
    """Commands to go on with, one a line.  balancers: ids of those that are made in OVN."""
    name, ident = sorted(servers.items())[0]
    program = "roadstead" if shutil.which("roadstead") else sys.argv[0]
    words = ["get all", f"why server {name}", f"describe server {ident}", "watch server"]
    words += [f"ovn show {balancer}" for balancer in balancers[:1]]
    say("Everything is provisioned. Try next (docs/guide.md goes on from here):", "bold green")
    for each in words:
        say(f"  {program} {each}")

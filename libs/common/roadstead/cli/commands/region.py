"""region configure, register, check, list: a cloud becomes a region."""

import asyncio
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from roadstead.cli import chosen
from roadstead.cli.client import connected
from roadstead.cli.failures import UserError
from roadstead.cli.output import Form, FormOption, emit, say, show_table
from roadstead.cli.reading import columns, find
from roadstead.cli.regions import (
    Offer,
    administrator,
    configure_cloud,
    document,
    held_region,
    offer_of,
    register_region,
    until_ready,
    values_of_environment,
    values_of_file,
)
from roadstead.cloud.configure import Wanted, shell_text
from roadstead.cloud.register import Registered, region_id_of

PASSWORD = "ROADSTEAD_CLOUD_PASSWORD"  # noqa: S105 - the name of a variable

group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Clouds as regions.")


class Mode(StrEnum):
    CREATE = "create"
    EXISTING = "existing"


class Selection(StrEnum):
    """What can be taken out of a Region again."""

    ONLY_ORGANIZATION = "only-organization"
    VOLUME_CLASS = "volume-class"
    ALGORITHM = "algorithm"
    FLAVOR = "flavor"
    EXTERNAL_NETWORK = "external-network"


class Given(StrEnum):
    """What can be taken out of a file of `configure` again."""

    EXTERNAL_NETWORK = "external-network"
    FLAVOR = "flavor"
    IMAGE = "image"


CloudOption = Annotated[str | None, typer.Option("--cloud", help="Administrator: a cloud of clouds.yaml.")]
OpenrcOption = Annotated[Path | None, typer.Option("--openrc", help="Administrator: an openrc file.")]
Text = str | None


@group.command()
def configure(
    cloud: CloudOption = None,
    openrc: OpenrcOption = None,
    output: Annotated[
        Path | None, typer.Option("--file", "-f", help="Write the variables there, for you alone.")
    ] = None,
    mode: Annotated[
        Mode, typer.Option(help="Make what is missing, or only use what is given.")
    ] = Mode.CREATE,
    prefix: Annotated[
        Text,
        typer.Option(
            help="Name of the deployment; different ones may share a cloud.", show_default="unikorn-openstack"
        ),
    ] = None,
    domain_id: Annotated[Text, typer.Option(help="Domain to use.")] = None,
    domain_name: Annotated[Text, typer.Option(help="Name of the domain; the prefix when left out.")] = None,
    project_id: Annotated[Text, typer.Option(help="Project to use (existing mode).")] = None,
    project_name: Annotated[Text, typer.Option(help="Name of the provider project.")] = None,
    user_id: Annotated[Text, typer.Option(help="User to use (existing mode).")] = None,
    user_name: Annotated[Text, typer.Option(help="Name of the provider user.")] = None,
    password_file: Annotated[
        Path | None,
        typer.Option(
            help=f"File with the user's password; else {PASSWORD}; else one is made for a new user."
        ),
    ] = None,
    rotate: Annotated[bool, typer.Option("--rotate", help="Give an existing user a new password.")] = False,
    domain_role: Annotated[
        list[str] | None, typer.Option(help="Roles on the domain, instead of the usual.")
    ] = None,
    project_role: Annotated[
        list[str] | None, typer.Option(help="Roles on the project, instead of the usual.")
    ] = None,
    legacy_member_role: Annotated[
        bool, typer.Option("--legacy-member-role", help="Also the role _member_.")
    ] = False,
    create_roles: Annotated[bool, typer.Option(help="Make roles that the cloud lacks.")] = True,
    external_network: Annotated[
        Text, typer.Option(help="Id of the external network; else the first one.")
    ] = None,
    flavor: Annotated[Text, typer.Option(help="Id of a flavor, handed on.")] = None,
    image: Annotated[Text, typer.Option(help="Id of an image, handed on.")] = None,
    remove: Annotated[
        list[Given] | None, typer.Option(help="Take out what an earlier run put into the file.")
    ] = None,
) -> None:
    """Make the domain, project and user that this deployment works with in a cloud; once per cloud.

    What is not given stays as the file of an earlier run says.

    Example: roadstead region configure --cloud admin --prefix prod --file prod.env
    """
    usual = Wanted()
    wanted = Wanted(
        mode=mode.value,
        prefix=prefix,
        domain_id=domain_id,
        domain_name=domain_name,
        project_id=project_id,
        project_name=project_name,
        user_id=user_id,
        user_name=user_name,
        password=_password(password_file),
        rotate=rotate,
        domain_roles=tuple(domain_role or usual.domain_roles),
        project_roles=tuple(project_role or usual.project_roles),
        legacy_member_role=legacy_member_role,
        create_missing_roles=create_roles,
        external_network=external_network,
        flavor=flavor,
        image=image,
        remove=tuple(each.value for each in remove or ()),
    )
    made = asyncio.run(configure_cloud(administrator(cloud, openrc), wanted, output))
    for step in made.steps:
        typer.echo(step, err=True)
    for warning in made.warnings:
        typer.echo(f"note: {warning}", err=True)
    if output is None:
        print(shell_text(made.values), end="")
    else:
        say(
            f"written to {output}; next: roadstead region register NAME --credentials {output} --create-secret"
        )


def _password(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get(PASSWORD) or None
    try:
        return path.read_text().rstrip("\n") or None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


@group.command()
def register(
    name: Annotated[str, typer.Argument(help="Display name of the region.")],
    credentials: Annotated[
        Path | None,
        typer.Option(
            "--credentials", help="File of `region configure`; else the ROADSTEAD_CLOUD_ variables."
        ),
    ] = None,
    create_secret: Annotated[
        bool, typer.Option("--create-secret", help="Hand over the credential too.")
    ] = False,
    auth_url: Annotated[Text, typer.Option(help="Keystone's address; else that of the credentials.")] = None,
    namespace: Annotated[
        Text, typer.Option(help="Namespace in the secret's name; roadstead at first.")
    ] = None,
    secret_name: Annotated[
        Text, typer.Option(help="Name of the secret; NAME-credential when left out.")
    ] = None,
    region_id: Annotated[
        Text, typer.Option(help="Id of the region; follows from address and name when left out.")
    ] = None,
    only_organization: Annotated[
        list[str] | None, typer.Option(help="Seen by these organizations alone.")
    ] = None,
    volume_class: Annotated[
        list[str] | None,
        typer.Option(help="Volume type to offer, by id; with --cloud or --openrc also by name, or all."),
    ] = None,
    algorithm: Annotated[Text, typer.Option(help="Balancing method; SOURCE_IP_PORT for OVN.")] = None,
    flavor: Annotated[Text, typer.Option(help="Offer this flavor alone, by id.")] = None,
    external_network: Annotated[Text, typer.Option(help="Use this external network alone, by id.")] = None,
    remove: Annotated[
        list[Selection] | None, typer.Option(help="Take out what an earlier registration put in.")
    ] = None,
    cloud: CloudOption = None,
    openrc: OpenrcOption = None,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Until the region is reachable.")] = False,
    form: FormOption = Form.TABLE,
) -> None:
    """Register a configured cloud as a region; the same again is an update, and what is not given stays as it is.

    Example: roadstead region register dev --credentials prod.env --create-secret --volume-class all --cloud admin
    """
    values = values_of_file(credentials) if credentials is not None else values_of_environment()

    async def work() -> None:
        offer = await offer_of(administrator(cloud, openrc)) if cloud or openrc else None
        endpoint = auth_url or values.get("AUTH_URL")
        ident = region_id or (region_id_of(endpoint, name) if endpoint else None)
        async with connected() as client:
            held = await held_region(client, ident) if ident else None
            made = told(held, endpoint, offer)
            reply = await register_region(client, made)
            if wait:
                await until_ready(client, made.region_id)
        if not emit(form, {"id": made.region_id, "result": reply.get("result"), "variables": made.variables}):
            say(f"region {name} {made.region_id} {reply.get('result')}")
            for variable, value in made.variables.items():
                say(f"export {variable}={value}")

    def told(held: dict[str, Any] | None, endpoint: str | None, offer: Offer | None) -> Registered:
        """What the cloud and the file suggest counts for a new region alone."""
        suggested = {} if held is not None else values
        return document(
            name=name,
            namespace=namespace,
            endpoint=endpoint,
            region_id=region_id,
            region_name=values.get("REGION_NAME"),
            secret_name=secret_name,
            create_secret=create_secret,
            values=values,
            organizations=tuple(only_organization or ()),
            volume_classes=_classes(volume_class or [], offer),
            algorithm=algorithm or (offer.algorithm if offer is not None and held is None else None),
            flavor=flavor or suggested.get("FLAVOR"),
            external_network=external_network or suggested.get("EXTERNAL_NETWORK"),
            held=held,
            remove=tuple(each.value for each in remove or ()),
        )

    asyncio.run(work())


def _classes(words: list[str], offer: Offer | None) -> tuple[str, ...]:
    if offer is not None:
        return offer.classes(words)
    if "all" in words:
        raise UserError(
            "--volume-class all needs --cloud or --openrc, to ask the cloud for its volume types", 2
        )
    return tuple(words)


@group.command("list")
def listing(form: FormOption = Form.TABLE) -> None:
    """Show all regions.

    Example: roadstead region list
    """

    async def work() -> None:
        async with connected() as client:
            items = await client.listing("region", allRegions=True)
        if not emit(form, items):
            head, rows = columns("region", items)
            show_table(
                head, rows, none="no region is registered; `roadstead region configure`, then `register`"
            )

    asyncio.run(work())


@group.command()
def check(
    region: Annotated[str, typer.Argument(help="Its id or name.")],
    credentials: Annotated[
        Path | None,
        typer.Option("--credentials", help="File of `region configure`; else the sealed ones of the bus."),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Make a probe identity and more, and remove it again.")
    ] = False,
    form: FormOption = Form.TABLE,
) -> None:
    """Look for what a cloud hides or refuses; exit status 1 when something cannot work.

    Example: roadstead region check dev --deep
    """
    from roadstead.cli.checking import check_region

    async def work() -> list[Any]:
        async with connected() as client:
            held = await find(client, "region", region)
            values = values_of_file(credentials) if credentials is not None else None
            return await check_region(client, chosen.context(), held, values, deep=deep)

    findings = asyncio.run(work())
    value = [
        {"code": f.code, "severity": f.severity.value, "message": f.message, "remedy": f.remedy}
        for f in findings
    ]
    if not emit(form, value):
        rows = [(f.severity.value, f.code, f.message, f.remedy) for f in findings]
        show_table(
            ("SEVERITY", "CODE", "WHAT", "REMEDY"), rows, none="nothing to find: all that was looked at fits"
        )
    if any(f.severity.value == "error" for f in findings):
        raise typer.Exit(1)

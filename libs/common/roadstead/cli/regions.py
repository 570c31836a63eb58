"""Configuring a cloud, registering it as a region, and asking both what they offer.

`roadstead region ...` and the quickstart of the local stack take this one way (behaviour.md section 19).
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from roadstead.cli.client import Client
from roadstead.cli.failures import Refused, UserError
from roadstead.cli.reading import is_provisioned, message_of, status_of
from roadstead.cloud.administration import Administrator, read_openrc
from roadstead.cloud.configure import (
    VARIABLES,
    Configured,
    ConfigureError,
    Wanted,
    configure,
    read_shell_text,
    shell_text,
    write_file,
)
from roadstead.cloud.register import Registered, register
from roadstead.subjects import rpc_subject

READY_WITHIN = 60.0
POLL = 0.25
NOBODYS_TYPE = "__DEFAULT__"  # the type that Cinder makes by itself; not meant to be offered


def administrator(
    cloud: str | None, openrc: Path | None = None, clouds_yaml: Path | None = None
) -> Administrator:
    """Of a clouds.yaml entry, an openrc file, or the environment.  UserError when that names no cloud."""
    from roadstead.cloud.sdk.administrator import (
        SdkAdministrator,
    )  # openstacksdk takes half a second to import

    try:
        if openrc is not None:
            return SdkAdministrator(openrc=read_openrc(openrc.read_text()))
        if clouds_yaml is None:
            return SdkAdministrator(cloud)
        before = os.environ.get("OS_CLIENT_CONFIG_FILE")
        os.environ["OS_CLIENT_CONFIG_FILE"] = str(clouds_yaml)
        try:
            return SdkAdministrator(cloud)
        finally:
            if before is None:
                del os.environ["OS_CLIENT_CONFIG_FILE"]
            else:
                os.environ["OS_CLIENT_CONFIG_FILE"] = before
    except OSError as error:
        raise UserError(f"{openrc} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(str(error)) from None


async def configure_cloud(admin: Administrator, wanted: Wanted, output: Path | None) -> Configured:
    """Run it; with `output` an earlier run's file is read for the password, and replaced as a whole."""
    previous = values_of_file(output) if output is not None and output.exists() else None
    try:
        made = await configure(admin, wanted, previous)
    except ConfigureError as error:
        raise UserError(str(error)) from None
    if output is not None:
        try:
            write_file(output, shell_text(made.values))
        except OSError as error:
            raise UserError(f"{output} cannot be written: {error.strerror}") from None
    return made


def values_of_file(path: Path) -> dict[str, str]:
    try:
        return read_shell_text(path.read_text())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path} is not what `roadstead region configure` writes: {error}") from None


def values_of_environment() -> dict[str, str]:
    return {
        name.removeprefix(VARIABLES): value
        for name, value in os.environ.items()
        if name.startswith(VARIABLES)
    }


@dataclass(frozen=True)
class Offer:
    """What an administrator sees: public volume types by name, and names of load balancer providers."""

    volume_types: Mapping[str, str] = field(default_factory=dict)
    providers: Sequence[str] = ()

    @property
    def algorithm(self) -> str | None:
        """The balancing method that the cloud's providers need; None: the usual one."""
        return "SOURCE_IP_PORT" if "ovn" in self.providers else None

    def classes(self, words: Sequence[str]) -> tuple[str, ...]:
        """Ids of volume types given by id or name; `all` is every one that is meant to be offered."""
        if list(words) == ["all"]:
            return tuple(ident for name, ident in self.volume_types.items() if name != NOBODYS_TYPE)
        unknown = [w for w in words if w not in self.volume_types and w not in self.volume_types.values()]
        if unknown:
            known = ", ".join(self.volume_types) or "none"
            raise UserError(f"the cloud has no volume type {', '.join(unknown)}; it has: {known}")
        return tuple(self.volume_types.get(word, word) for word in words)


async def offer_of(admin: Administrator) -> Offer:
    """Two list requests.  A service that the cloud lacks offers nothing."""
    types = await _list(admin, "block-storage", "/types", "volume_types")
    providers = await _list(admin, "load-balancer", "/v2/lbaas/providers", "providers")
    public = {t["name"]: str(t["id"]) for t in types if t.get("is_public", True)}
    return Offer(public, tuple(str(p["name"]) for p in providers))


async def _list(admin: Administrator, service: str, path: str, name: str) -> list[dict[str, Any]]:
    from roadstead.cloud.sending import NotSent, Unanswered

    try:
        raw = await admin.request(service, "GET", path)
    except (NotSent, Unanswered):
        return []
    if raw.status != 200:
        return []
    found: list[dict[str, Any]] = orjson.loads(raw.body)[name]
    return found


async def held_region(client: Client, region: str) -> dict[str, Any] | None:
    """The Region as its owner has it now; None when there is none, or it is being deleted."""
    try:
        held = await client.api("region", "get", {"id": region}, region=region)
    except Refused as error:
        if error.http == 404:
            return None
        raise
    return None if "deletionTimestamp" in held["metadata"] or not held.get("spec") else held


async def register_region(client: Client, made: Registered) -> dict[str, Any]:
    """Hand over the credential where there is one, then say what the region is; the reply of the latter."""
    if made.credential is not None:
        await client.ask(rpc_subject("identity", "region", "credentials"), made.credential, who="identity")
    return await client.api("region", "apply", made.envelope, region=made.region_id)


def document(**given: Any) -> Registered:
    """`register` with its refusals as UserError."""
    try:
        return register(**given)
    except ValueError as error:
        raise UserError(" ".join(str(error).split())) from None


async def until_ready(client: Client, region: str, within: float = READY_WITHIN) -> dict[str, Any]:
    """The Region once it is provisioned.  UserError with what it says when that takes too long."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while True:
        held = await client.api("region", "get", {"id": region}, region=region)
        if is_provisioned(held):
            return held
        if loop.time() > deadline:
            raise UserError(
                f"the region {region} is {status_of(held)} after {within:g} s: {message_of(held) or 'no reason is told'}; "
                f"see `roadstead region check {region}`"
            )
        await asyncio.sleep(POLL)


async def until_known(
    client: Client, region: str, kinds: Sequence[str], within: float = READY_WITHIN
) -> None:
    """Return once the owners of the inventories know the region and can list what it offers."""
    deadline = asyncio.get_running_loop().time() + within
    for kind in kinds:
        while True:
            try:
                await client.api(kind, "list", {}, region=region)
                break
            except Refused as error:
                if asyncio.get_running_loop().time() > deadline:
                    raise UserError(f"{kind} of region {region} cannot be listed: {error}") from None
            await asyncio.sleep(POLL)

"""`region check` with a cloud engine of its own."""

from collections.abc import Mapping
from typing import Any

from roadstead.cli.client import Client
from roadstead.cli.context import Context
from roadstead.cli.failures import UserError
from roadstead.cli.sealed import keyring_of
from roadstead.clock import SystemClock
from roadstead.cloud.check import Finding, check
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.engine import CloudEngine
from roadstead.cloud.register import secret_of
from roadstead.cloud.sdk import SdkSender
from roadstead.cloud.settings import CloudSettings
from roadstead.region import RegionSpec


async def check_region(
    client: Client, context: Context, held: Mapping[str, Any], values: Mapping[str, str] | None, *, deep: bool
) -> list[Finding]:
    """Everything found about a region.  values: its credential; None: the sealed one of the bus."""
    region = str(held["metadata"]["id"])
    spec = RegionSpec.model_validate(held["spec"])
    if spec.openstack is None:
        raise UserError(f"the region {region} is none of OpenStack; there is nothing to check")
    if values is None:
        keyring = await keyring_of(client, context, region)
    else:
        keyring = Keyring()
        try:
            keyring.put_region_secret(region, secret_of(values), 1)
        except ValueError as error:
            raise UserError(str(error)) from None
    keyring.put_endpoint(region, spec.openstack.endpoint, spec.openstack.regionName)
    if keyring.region(region) is None:
        raise UserError(
            f"the credential of region {region} is not on the bus; hand it over with `roadstead region register ... "
            "--create-secret`, or give --credentials FILE"
        )
    settings = CloudSettings()
    engine = CloudEngine(SdkSender(settings), keyring, SystemClock(), settings)
    try:
        return await check(engine, region, spec.openstack, deep=deep)
    finally:
        await engine.close()

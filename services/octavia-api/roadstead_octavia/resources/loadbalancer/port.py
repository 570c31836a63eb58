"""The VIP port of a load balancer that has no row yet: claimed, made by its provider or by us, and removed when nothing comes of it.

The claim is written before anything is asked.  The change that makes the load balancer takes the claim away and holds only while it is
there, so the port belongs to exactly one of the two: a creation that ends otherwise marks its claim and has the port removed, and a
process that dies leaves that to the sweep.  A port that the user brought has no claim and is never removed.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog

from roadstead_octavia.call import Call
from roadstead_octavia.db.port import Delete, Insert, Row, Update, Write
from roadstead_octavia.errors import ApiError, refuse
from roadstead_octavia.outside.network import NetworkRefused
from roadstead_octavia.provider import models

log = structlog.get_logger("roadstead.octavia.vip")

CLAIM = timedelta(seconds=90)  # longer than everything that a creation waits for
COME_AGAIN = "5"
_VIP_FIELDS = {
    "ip_address": "vip_address",
    "port_id": "vip_port_id",
    "network_id": "vip_network_id",
    "subnet_id": "vip_subnet_id",
}
_ADDITIONAL_FIELDS = {name: name for name in _VIP_FIELDS}


@dataclass(frozen=True)
class Wanted:
    """The rows of a load balancer's VIPs before its port exists."""

    load_balancer_id: str
    project_id: str
    provider: str
    vip: Row
    additional: Sequence[Row]
    groups: Sequence[str]


@dataclass(frozen=True)
class Made:
    """The same rows with what the port gave them.  writes: what the change that makes the load balancer must do about the claim."""

    vip: Row
    additional: Sequence[Row]
    writes: tuple[Write, ...] = ()


@asynccontextmanager
async def vip_port(call: Call, wanted: Wanted) -> AsyncIterator[Made]:
    """The port for as long as it takes to commit its load balancer; removed again when the body raises.

    ApiError of the provider; 409 for an address in use, otherwise the network's own status and words; 503 when it gives none.
    """
    if wanted.vip["port_id"]:
        yield await _made(call, wanted)
        return
    key = {"load_balancer_id": wanted.load_balancer_id}
    await _claim(call, wanted)
    certain = False
    try:
        made = await _made(call, wanted)
        certain = True
        yield Made(made.vip, made.additional, (Delete("vip_port_claim", key),))
    except asyncio.CancelledError:
        raise  # the sweep finds the claim
    except BaseException as error:
        refused = isinstance(error, ApiError) and 400 <= error.status < 500
        await _given_up(call, key, forget=certain or refused)
        raise


async def _claim(call: Call, wanted: Wanted) -> None:
    now = call.parts.now()
    claim = {
        "load_balancer_id": wanted.load_balancer_id,
        "project_id": wanted.project_id,
        "provider": wanted.provider,
        "maker": "provider",
        "created_at": now,
        "deadline": now + CLAIM,
    }
    await call.parts.database.write([Insert("vip_port_claim", claim)])


async def _given_up(call: Call, key: Row, *, forget: bool) -> None:
    """Remove the port unless the load balancer has it after all.

    forget: no port can appear any more.  Otherwise the claim stays, and the sweep looks once more after its deadline.
    """
    parts = call.parts
    try:
        # From here on the creation cannot be committed any more; if it was, the claim is gone.
        await parts.database.write([Update("vip_port_claim", key, {"removing_since": parts.now()})])
        if await parts.database.row("vip_port_claim", key) is None:
            return
        await parts.network.remove_vip_port(key["load_balancer_id"], None)
        if forget:
            await parts.database.write([Delete("vip_port_claim", key)])
    except (ApiError, NetworkRefused) as error:
        log.warning("the VIP port is removed later", load_balancer=key["load_balancer_id"], error=str(error))


async def _made(call: Call, wanted: Wanted) -> Made:
    arguments = models.vip_port_arguments(
        wanted.load_balancer_id, wanted.project_id, wanted.vip, wanted.additional, wanted.groups
    )
    try:
        told = await call.parts.provider.ask(wanted.provider, "create_vip_port", arguments)
    except ApiError as error:
        if error.name != "ProviderNotImplemented":
            raise
    else:
        return _from_provider(wanted, told)
    try:
        vip, additional = await call.parts.network.make_vip_port(
            wanted.load_balancer_id, wanted.project_id, wanted.vip, wanted.additional, wanted.groups
        )
    except NetworkRefused as error:
        raise _refusal(error) from error
    return Made({**vip, "octavia_owned": not wanted.vip["port_id"]}, additional)


def _from_provider(wanted: Wanted, told: Any) -> Made:
    """The rows with what the provider answered: the VIP, and the additional ones in the order they were asked for."""
    if told is None:
        return Made(wanted.vip, _addressed(wanted, wanted.additional))
    vip, more = told if isinstance(told, list | tuple) and len(told) == 2 else (told, ())
    if not isinstance(vip, Mapping) or not all(isinstance(one, Mapping) for one in more or ()):
        raise refuse(
            "ProviderDriverError", prov=wanted.provider, user_msg="its answer for the VIP could not be read"
        )
    answers = [*(more or ()), *({} for _ in wanted.additional)]
    additional = [
        _filled(row, answer, _ADDITIONAL_FIELDS)
        for row, answer in zip(wanted.additional, answers, strict=False)
    ]
    return Made(_filled(wanted.vip, vip, _VIP_FIELDS), _addressed(wanted, additional))


def _addressed(wanted: Wanted, additional: Sequence[Row]) -> Sequence[Row]:
    """The additional VIPs; ApiError when one has no address, asked for or given: nothing would ever tell it."""
    for row in additional:
        if row["ip_address"] is None:
            text = f"its answer gives the additional VIP in subnet {row['subnet_id']} no address"
            raise refuse("ProviderDriverError", prov=wanted.provider, user_msg=text)
    return additional


def _filled(row: Row, answer: Mapping[str, Any], fields: Mapping[str, str]) -> Row:
    said = {column: answer[name] for column, name in fields.items() if answer.get(name) is not None}
    return {**row, **said}


def _refusal(error: NetworkRefused) -> ApiError:
    if error.status == 409:
        return refuse("VIPAddressConflict", msg=error.text)
    if error.status is not None and 400 <= error.status < 500:
        return ApiError(error.status, error.text, "VIPPort")
    return ApiError(
        503, f"The VIP port could not be made: {error.text}", "VIPPort", (("Retry-After", COME_AGAIN),)
    )

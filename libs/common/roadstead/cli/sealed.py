"""Credentials on the bus, opened with the context's sealing keys: for operators' checks."""

from pathlib import Path
from typing import Any

import nats.errors
import nats.js.errors
import orjson
from nats.js.api import ConsumerConfig, DeliverPolicy

from roadstead.cli.client import Client
from roadstead.cli.context import Context
from roadstead.cli.failures import UserError, words_of
from roadstead.cloud.credentials import Keyring
from roadstead.seal import SealBroken, Sealer, keys_from_file

BATCH = 100


def sealer_of(context: Context) -> Sealer:
    """UserError when the context knows no keys, or what it knows are none."""
    if not context.seal_key_file:
        raise UserError(
            f"the context {context.name} names no sealing keys: set sealKeyFile in it, or ROADSTEAD_SEAL_KEY_FILE",
            2,
        )
    path = Path(context.seal_key_file).expanduser()
    try:
        return Sealer(keys_from_file(path))
    except OSError as error:
        raise UserError(f"the sealing keys {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None


async def last_messages(client: Client, stream: str, subject: str) -> list[Any]:
    """The last message of each subject, in the order of the stream.  UserError when the stream may not be read."""
    config = ConsumerConfig(
        deliver_policy=DeliverPolicy.LAST_PER_SUBJECT, inactive_threshold=30.0, mem_storage=True
    )
    found: list[Any] = []
    try:
        reader = await client.js.pull_subscribe(subject, stream=stream, config=config)
        while True:
            pending = (await reader.consumer_info()).num_pending
            if not pending:
                break
            for message in await reader.fetch(min(BATCH, int(pending)), timeout=5):
                found.append(message)
                await message.ack()
        await reader.unsubscribe()
    except nats.js.errors.NotFoundError:
        raise UserError(f"the stream {stream} is not there: a service makes it at its start") from None
    except (nats.errors.Error, TimeoutError) as error:
        raise UserError(
            f"the stream {stream} cannot be read: {words_of(error)}; see the user's rights"
        ) from None
    return found


async def keyring_of(client: Client, context: Context, region: str) -> Keyring:
    """The region's credential and those of its identities.  UserError when the keys do not open them."""
    sealer = sealer_of(context)
    keyring = Keyring()
    for message in await last_messages(client, "CREDENTIAL", f"credential.{region}.*"):
        body = orjson.loads(message.data)
        who = message.subject.rpartition(".")[2]
        try:
            record = sealer.open_json(str(body["sealed"]))
        except SealBroken:
            raise UserError(
                f"the sealing keys in {context.seal_key_file} do not open the credential of {who}; use the keys of the services"
            ) from None
        if who == "_region":
            keyring.put_region_secret(region, record, int(body.get("version", 0)))
        else:
            keyring.put_identity(region, who, record, int(body.get("version", 0)))
    return keyring

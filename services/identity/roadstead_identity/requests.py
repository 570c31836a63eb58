"""Requests that only the identity service answers: the region's secret keys in, an identity's client configuration out."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from roadstead.assembly import Assembly
from roadstead.clock import iso
from roadstead.cloud.credentials import REGION_KEYS
from roadstead.events import dump
from roadstead.reconcile.handlers import PublishFailed, error_reply
from roadstead.reconcile.rules import wake
from roadstead.store.api import Change, Row
from roadstead.subjects import NO_PROJECT, BadSubject, credential_subject, parse_key


def install(assembly: Assembly) -> None:
    """Add them to the service."""

    async def region_credentials(payload: Mapping[str, Any]) -> Mapping[str, Any]:
        return await take_region_secret(assembly, payload)

    async def credentials(region: str, project: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        return await client_configuration(assembly, region, project, payload)

    async def look(payload: Mapping[str, Any]) -> Mapping[str, Any]:
        return await look_at_region(assembly, payload)

    assembly.handlers.more["region.credentials"] = region_credentials
    assembly.handlers.more["region.look"] = look
    assembly.api.more["identity", "credentials"] = credentials


async def take_region_secret(assembly: Assembly, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Seal the four keys and publish them as a new version; {"version"}.  The same secret again keeps its version."""
    region, secret = payload.get("region"), payload.get("secret")
    if not isinstance(region, str) or not isinstance(secret, Mapping):
        return error_reply("BAD_REQUEST", "the request needs region and secret", 400)
    missing = [k for k in REGION_KEYS if not isinstance(secret.get(k), str) or not secret[k]]
    if missing:
        return error_reply("KEY", f"the secret lacks {', '.join(missing)}", 400)
    sealer = assembly.platform.sealer
    wanted = {k: str(secret[k]) for k in REGION_KEYS}
    sealed = sealer.seal_json(wanted)

    def rule(document: Mapping[str, Any] | None, _now: Any) -> tuple[Mapping[str, Any] | None, Any]:
        if document is not None and sealer.open_json(str(document["sealed"])) == wanted:
            return document, document
        version = int(document["version"]) + 1 if document is not None else 1
        fresh = {"version": version, "sealed": sealed}
        return fresh, fresh

    document = await assembly.platform.store.change_document(f"region-credential.{region}", rule)
    try:
        await assembly.platform.broker.publish(credential_subject(region, None), dump(dict(document)), {})
    except PublishFailed:
        return error_reply(
            "UNAVAILABLE", "the broker did not store the credentials; it is safe to try again", 503
        )
    assembly.platform.keyring.put_region_secret(region, wanted, int(document["version"]))
    await assembly.platform.store.wake([("region", region)], {"reason": "credentials"})
    assembly.runner.nudge()
    return {"version": int(document["version"])}


async def look_at_region(assembly: Assembly, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Somebody gets no answer from the region's cloud: look at it, and go on until it answers.  No write when that is known."""
    region = payload.get("region")
    try:
        key = parse_key(f"spec.{region}.{NO_PROJECT}.region.{region}")
    except BadSubject:
        return error_reply("BAD_REQUEST", "the request needs the region's id", 400)
    change = await assembly.platform.store.change(key, doubt)
    assembly.runner.nudge()
    result: Mapping[str, Any] = change.result
    return result


def doubt(row: Row | None, now: datetime) -> Change:
    """The Region's next pass asks every service of the cloud, and is due now."""
    if row is None or row.gone_at is not None or row.deleting or row.generation == 0:
        return Change(result=error_reply("NOT_FOUND", "there is no such region", 404))
    if row.status.get("doubted") and row.work.due_at is not None:
        return Change(result={"ok": True})
    doubted = replace(row, status={**row.status, "doubted": iso(now)})
    return Change(wake(doubted, now, {"reason": "the cloud does not answer"}), result={"ok": True})


def documents_of(
    _statuses: Sequence[Mapping[str, Any]], credentials: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Mapping[str, Mapping[str, Any]]:
    """The regions' sealed secrets from CREDENTIAL messages, for a database that was lost."""
    return {
        f"region-credential.{region}": {"version": int(body["version"]), "sealed": str(body["sealed"])}
        for (region, who), body in credentials.items()
        if who == "_region"
    }


async def client_configuration(
    assembly: Assembly, region: str, project: str, payload: Mapping[str, Any]
) -> dict[str, Any]:
    """What a tenant needs to use the identity's project: cloud name and clouds.yaml (URL-safe base64), and its SSH key.

    Who may ask is the bus's own permission on the subject.
    """
    ident = payload.get("id")
    row = await assembly.platform.store.get("identity", str(ident)) if isinstance(ident, str) else None
    if row is None or row.gone_at is not None or (row.key.region, row.key.project) != (region, project):
        return error_reply("NOT_FOUND", f"there is no identity {ident} here", 404)
    record = assembly.platform.sealer.open_json(row.record) if row.record else {}
    config = record.get("cloudConfig")
    if not config:
        return error_reply("NOT_READY", f"the identity {ident} has no credentials yet", 409)
    return {
        "id": row.key.id,
        "cloud": record.get("cloud"),
        "cloudConfig": base64.urlsafe_b64encode(str(config).encode()).decode(),
        "userId": record.get("userID"),
        "projectId": record.get("projectID"),
        "serverGroupId": record.get("serverGroupID"),
        "sshKeyName": record.get("sshKeyName"),
        "sshPrivateKey": record.get("sshPrivateKey"),
    }

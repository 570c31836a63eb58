#!/usr/bin/env python3
"""Writes the generated parts of docs/: `settings.md` from the settings, `asyncapi.json` from what every service declares.

    docs.py [--check]

With `--check` nothing is written; exit status 1 names what is out of date. No broker and no database is needed.
"""

import json
import sys
import warnings
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel
from pydantic_settings import BaseSettings

from roadstead.assembly import Platform, Service, assemble
from roadstead.bus.streams import release
from roadstead.clock import SystemClock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.port import Answer, Call
from roadstead.reconcile.kind import Kind
from roadstead.seal import Sealer, new_key
from roadstead.service_app import make_app, shape_of
from roadstead.service_shapes import Request, ServiceRequest
from roadstead.settings import Settings, table
from roadstead.store.memory import MemoryStore
from roadstead_octavia.provider import schemas as provider_schemas
from roadstead_octavia.settings import OctaviaSettings
from roadstead_ovn.settings import OvnSettings

DOCS = Path(__file__).resolve().parent.parent / "docs"
SETTINGS_HEAD = """# Settings

Every setting of a service is an environment variable. This table is generated from `roadstead/settings.py` by `make docs`.

| variable | default | unit | meaning |
|---|---|---|---|
"""

OCTAVIA_SETTINGS_HEAD = """# Settings of the Octavia API

Beside [those of every service](settings.md): broker, database (its schema is `octavia` unless set), telemetry. Those that decide what the API
answers have the names that octavia.conf gives them. This table is generated from `roadstead_octavia/settings.py` by `make docs`.

| variable | default | unit | meaning |
|---|---|---|---|
"""

OVN_SETTINGS_HEAD = """# Settings of the OVN worker

Beside [those of every service](settings.md): broker, database (its schema is `roadstead_ovn` unless set), telemetry. [ovn.md](ovn.md) tells
what they are for. This table is generated from `roadstead_ovn/settings.py` by `make docs`.

| variable | default | unit | meaning |
|---|---|---|---|
"""


class NoCloud:
    """Nothing is asked of a cloud while a document is written."""

    async def call(self, call: Call) -> Answer:
        raise RuntimeError(f"{call.verb} was asked for while writing documents")


class NoBroker:
    """Nothing is published either."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name} was used while writing documents")


def settings_page(model: type[BaseSettings] = Settings, head: str = SETTINGS_HEAD) -> str:
    """docs/settings.md, or the page of one service's own settings."""
    lines = []
    for row in table(model):
        default = f"`{row['default']}`" if row["default"] else ""
        description = row["description"].replace("|", "\\|")
        lines.append(f"| `{row['variable']}` | {default} | {row['unit']} | {description} |\n")
    return head + "".join(lines)


def services() -> list[Service]:
    """Every installed service, by name; one whose program is not written yet is named on standard error."""
    found = []
    for entry in sorted(entry_points(group="roadstead.services"), key=lambda e: e.name):
        try:
            found.append(entry.load())
        except ModuleNotFoundError as error:
            if error.name != entry.module:
                raise
            sys.stderr.write(f"docs: the service {entry.name} has no program yet and is left out\n")
    return found


def inventories_of(service: Service) -> tuple[tuple[str, str], ...]:
    """Requests that the service adds when it is put together."""
    clock = SystemClock()
    assembly = assemble(
        service, Platform(MemoryStore(clock), NoCloud(), NoBroker(), Keyring(), Sealer([new_key()]), clock)
    )
    return tuple(assembly.api.more)


def document(all_services: list[Service]) -> dict[str, Any]:
    """One AsyncAPI document for all services, in which each shape stands once."""
    kinds = {kind.name: kind for service in all_services for kind in service.kinds}
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for service in all_services:
        app = make_app(service, more=inventories_of(service), kinds=kinds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # shapes of one name: they are replaced below
            part = json.loads(json.dumps(app.schema.to_specification().to_jsonable()))
        for channel in part["channels"].values():
            channel["servers"] = [{"$ref": "#/servers/broker"}]
            shape = message_shape(channel["address"], kinds)
            schemas.update(schemas_of(shape))
            for reference in channel["messages"].values():
                message = part["components"]["messages"][_named(reference["$ref"])]
                message["payload"] = {"$ref": f"#/components/schemas/{shape.__name__}"}
        channels.update(part["channels"])
        operations.update(part["operations"])
        messages.update(part["components"]["messages"])
    seam = provider_schemas.channels()
    for whole, more in zip((channels, operations, messages, schemas), seam, strict=True):
        whole.update(more)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Roadstead",
            "version": release(),
            "description": "What each service answers, consumes, follows and publishes on the bus.",
        },
        "defaultContentType": "application/json",
        "servers": {
            "broker": {"host": "broker:4222", "protocol": "nats", "description": "nats-server with JetStream"}
        },
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages, "schemas": schemas},
    }


def message_shape(address: str, kinds: Mapping[str, Kind[Any, Any, Any]]) -> type[BaseModel]:
    """What a channel carries."""
    if address.startswith("api."):
        return Request
    if address.startswith("rpc."):
        return ServiceRequest
    return shape_of(address, kinds)


def schemas_of(shape: type[BaseModel]) -> dict[str, Any]:
    """The shape and its parts.  Parts bear its name in front, because two kinds may use one name for different things."""
    name = shape.__name__
    whole = shape.model_json_schema(ref_template=f"#/components/schemas/{name}.{{model}}")
    parts = whole.pop("$defs", {})
    return {name: whole, **{f"{name}.{part}": value for part, value in parts.items()}}


def _named(reference: str) -> str:
    return unquote(reference.removeprefix("#/components/messages/"))


def pages() -> dict[str, str]:
    """Every generated page by its name under docs/."""
    return {
        "settings.md": settings_page(),
        "octavia-settings.md": settings_page(OctaviaSettings, OCTAVIA_SETTINGS_HEAD),
        "ovn-settings.md": settings_page(OvnSettings, OVN_SETTINGS_HEAD),
        "provider-protocol.md": provider_schemas.page(),
        "asyncapi.json": json.dumps(document(services()), indent=1, sort_keys=True) + "\n",
    }


def main() -> int:
    """Write or check; exit status 1 when a page is out of date."""
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.stderr.write(f"docs: {' '.join(sys.argv[1:])} is not known; the only argument is --check\n")
        return 2
    stale = []
    for name, text in pages().items():
        path = DOCS / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for name in stale:
        print(f"docs/{name} is out of date: run `make docs`" if check else f"docs/{name} written")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes the broker's configuration: users, their keys and rights, limits.

    generate.py DIRECTORY [--tenant NAME:REGION:PROJECT[,PROJECT...]]... [--operator NAME]... [--provider NAME]...
                          [--tls CERTIFICATE:KEY] [--cluster NAME=HOST:PORT[,HOST:PORT...]]

In DIRECTORY: `roadstead.conf`, and under `keys/` one seed a user (mode 0600), which that user logs in with
(ROADSTEAD_NATS_NKEY_SEED_FILE). Seeds that are there already are kept, so it can be run again for one more tenant;
`nats-server --signal reload` then takes the new file without ending connections.
"""

import argparse
import os
import re
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

import nkeys

from roadstead.bus.rights import (
    SERVICES,
    Rights,
    as_configuration,
    octavia_rights,
    operator_rights,
    provider_rights,
    provider_user,
    service_rights,
    tenant_rights,
)
from roadstead.subjects import OCTAVIA_API

NAME = re.compile(r"^[A-Za-z0-9_-]{1,48}$")
LISTEN = "0.0.0.0:4222"

HEAD = """# Written by deploy/nats/generate.py; run it again instead of editing this file.
server_name: $NATS_SERVER_NAME
listen: "{listen}"
http: "127.0.0.1:8222"
max_payload: 2MB
max_pending: 64MB
write_deadline: "10s"
jetstream {{
  # Where messages lie is said at the start: nats-server --store_dir FOLDER
  max_file_store: 16GB
  max_memory_store: 512MB
  # A message is acknowledged when it is written; this is how long a crash of the whole machine may undo.
  sync_interval: "{sync}"
}}
"""


class BadArgument(ValueError):
    """An argument that cannot be; the text says what it should look like."""


@dataclass(frozen=True)
class User:
    """A user of the account, its public key and rights."""

    name: str
    role: str
    public: str
    rights: Rights


def seed_of(directory: Path, name: str) -> str:
    """The user's seed, made at first use and never printed."""
    path = directory / f"{name}.nk"
    if not path.exists():
        seed = nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(seed + b"\n")
    return path.read_text().strip()


def public_of(seed: str) -> str:
    """The public key that stands in the configuration."""
    public: bytes | str = nkeys.from_seed(bytearray(seed.encode())).public_key
    return public.decode() if isinstance(public, bytes) else public


def configuration(users: list[User], *, listen: str, sync: str, tls: str | None, cluster: str | None) -> str:
    """The whole file."""
    parts = [HEAD.format(listen=listen, sync=sync)]
    if tls is not None:
        certificate, _, key = tls.partition(":")
        parts.append(f'tls {{\n  cert_file: "{certificate}"\n  key_file: "{key}"\n}}\n')
    if cluster is not None:
        name, _, routes = cluster.partition("=")
        listed = ", ".join(f'"nats://{route}"' for route in routes.split(","))
        parts.append(f'cluster {{\n  name: "{name}"\n  listen: "0.0.0.0:6222"\n  routes: [{listed}]\n}}\n')
    blocks = []
    for user in users:
        block = f'    {{\n      # {user.role} {user.name}\n      nkey: "{user.public}"\n{as_configuration(user.rights)}\n    }}'
        blocks.append(block)
    account = "accounts {\n  ROADSTEAD {\n    jetstream: enabled\n    users: [\n"
    parts.append(account + "\n".join(blocks) + "\n    ]\n  }\n  SYS {}\n}\nsystem_account: SYS\n")
    return "\n".join(parts)


def tenant_of(text: str) -> tuple[str, str, list[str]]:
    """Name, region and projects of a --tenant argument."""
    parts = text.split(":")
    projects = parts[2].split(",") if len(parts) == 3 else []
    if len(parts) != 3 or not all(NAME.match(part) for part in (*parts[:2], *projects)):
        raise BadArgument(f"--tenant {text}: write NAME:REGION:PROJECT, several projects separated by commas")
    return parts[0], parts[1], projects


def users_of(
    keys: Path, tenants: list[str], operators: list[str], providers: list[str] | None = None
) -> list[User]:
    """Every user with its key.  BadArgument for a name that is taken or cannot be."""
    wanted: list[tuple[str, str, Rights]] = [(name, "service", service_rights(name)) for name in SERVICES]
    wanted.append((OCTAVIA_API, "service", octavia_rights()))
    for name in providers or []:
        if not NAME.match(name):
            raise BadArgument(f"--provider {name}: letters, digits, _ and - only")
        wanted.append((provider_user(name), "load balancing provider", provider_rights(name)))
    for name in operators:
        if not NAME.match(name):
            raise BadArgument(f"--operator {name}: letters, digits, _ and - only")
        wanted.append((name, "operator", operator_rights(name)))
    for text in tenants:
        name, region, projects = tenant_of(text)
        wanted.append((name, "tenant", tenant_rights(name, region, projects)))
    names = [name for name, _, _ in wanted]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadArgument(f"these names are given twice or belong to a service: {', '.join(twice)}")
    return [User(name, role, public_of(seed_of(keys, name)), rights) for name, role, rights in wanted]


def main() -> int:
    """Write the files; exit status 2 for arguments that cannot be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--tenant", action="append", default=[], metavar="NAME:REGION:PROJECT")
    parser.add_argument("--operator", action="append", default=[], metavar="NAME")
    parser.add_argument(
        "--provider", action="append", default=[], metavar="NAME", help="a load balancing provider's user"
    )
    parser.add_argument("--listen", default=LISTEN)
    parser.add_argument("--sync-interval", default="2m", help='"always": every message is synced; slower')
    parser.add_argument("--tls", metavar="CERTIFICATE:KEY")
    parser.add_argument("--cluster", metavar="NAME=HOST:PORT,...")
    given = parser.parse_args()
    keys = given.directory / "keys"
    keys.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        users = users_of(keys, given.tenant, given.operator or ["operator"], given.provider)
    except BadArgument as error:
        sys.stderr.write(f"generate: {error}\n")
        return 2
    text = configuration(
        users, listen=given.listen, sync=given.sync_interval, tls=given.tls, cluster=given.cluster
    )
    (given.directory / "roadstead.conf").write_text(text)
    sys.stdout.write(f"{given.directory / 'roadstead.conf'}: {len(users)} users; their seeds are in {keys}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

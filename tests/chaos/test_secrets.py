"""Real secrets of a run are looked for wherever the product leaves something behind: nowhere, in no spelling."""

import asyncio
import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from roadstead.testing.servers import postgres_binary
from tests.chaos.crew import Crew
from tests.chaos.stack import People, Stack

TOKENS = 20


def spellings(secret: str) -> set[bytes]:
    """The text, as JSON, in upper and lower hex, and the parts of its base64 that do not depend on what stands around it."""
    raw = secret.encode()
    found = {raw, json.dumps(secret)[1:-1].encode(), raw.hex().encode(), raw.hex().upper().encode()}
    for shift in range(3):
        text = base64.b64encode(b"x" * shift + raw)
        inner = text[4 if shift else 0 :].rstrip(b"=")[:-2]
        found |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    return {word for word in found if len(word) >= 8}


async def secrets_of(stack: Stack, people: People, identity: str) -> dict[str, str]:
    """What nobody may see, as the cloud and the owner of the identity know it."""
    said = await people.ask(
        f"api.{stack.region}.{people.key('identity').project}.identity.credentials", {"id": identity}
    )
    store = stack.cloud.keystone.store
    with stack.cloud.lock:
        (credential,) = [c for c in store.credentials.values() if identity in c.name]
    lines = [line for line in said["sshPrivateKey"].splitlines() if not line.startswith("-----")]
    password = store.secrets[said["userId"]].password
    assert password
    return {
        "region password": stack.secret["password"],
        "identity password": password,
        "application credential secret": credential.secret,
        "private key": max(lines, key=len),
        "client configuration": base64.urlsafe_b64decode(said["cloudConfig"])
        .decode()
        .splitlines()[-1]
        .strip(),
        "sealing key": stack.seal_key.rstrip("="),
    }


def tokens_of(stack: Stack) -> dict[bytes, str]:
    """Some tokens that the cloud gave out; they have one spelling."""
    with stack.cloud.lock:
        given = list(stack.cloud.keystone.tokens)[-TOKENS:]
    return {token.encode(): "token" for token in given}


def places(stack: Stack, crew: Crew) -> Iterator[tuple[str, Path]]:
    """Everything that was written, by what it is."""
    dump = stack.folder / "dump.sql"
    with dump.open("wb") as out:
        words = [str(postgres_binary("pg_dump")), "-d", stack.postgres.url, "--no-owner"]
        subprocess.run(words, stdout=out, check=True, timeout=60)
    yield "database", dump
    yield "spans", stack.folder / "spans.jsonl"
    for log in crew.logs.iterdir():
        yield "log", log
    for file in (stack.nats.directory / "store").rglob("*"):
        if file.is_file():
            yield "broker", file


def found_in(path: Path, words: dict[bytes, str]) -> set[str]:
    """Which of the words stand in a file."""
    content = path.read_bytes()
    return {name for word, name in words.items() if word in content}


def test_a_secret_is_found_in_each_spelling(tmp_path: Path) -> None:
    """The search itself: a secret inside of JSON, and inside of base64 at any place, is found."""
    secret = 'a "quoted" canary/that+is long'
    words = dict.fromkeys(spellings(secret), "canary")
    file = tmp_path / "file"
    for before in ("", "1", "12", "123"):
        inside = f"{before}{secret}{before}"
        for text in (
            inside.encode(),
            json.dumps({"x": inside}).encode(),
            base64.b64encode(inside.encode()),
            base64.urlsafe_b64encode(inside.encode()),
            inside.encode().hex().encode(),
        ):
            file.write_bytes(b"..." + text + b"...")
            assert found_in(file, words) == {"canary"}, text
    file.write_bytes(b"nothing of the kind")
    assert found_in(file, words) == set()


async def test_inv_287_no_secret_is_found_in_what_the_product_leaves_behind(
    stack: Stack, people: People
) -> None:
    """GIVEN a network with its identity and a server, made with debug logs and traces on, through failures
    WHEN broker files, a dump of the database, logs and spans are searched for every secret in every spelling
    THEN none is there, while ids are in all of them."""
    for path in ("/users$", "/auth/tokens$"):
        stack.trouble("status", method="POST", path=path, status=503, times=1)
    network = await people.network()
    name = stack.name("canary")
    server = people.server_key(network, name)
    await people.apply(server, name, people.server_spec(network), networkId=network.id)
    await people.until(server, "provisioned")
    document = await people.status(network)
    assert document is not None
    identity = document["metadata"]["identityId"]
    secrets = await secrets_of(stack, people, identity)
    ids = {ident.encode(): "id" for ident in (server.id, network.id, identity)}
    words = {word: name for name, secret in secrets.items() for word in spellings(secret)}
    words |= tokens_of(stack)
    assert "token" in words.values()
    await asyncio.sleep(6)  # spans go out in batches

    def search() -> tuple[set[tuple[str, str]], set[str]]:
        leaks: set[tuple[str, str]] = set()
        control: set[str] = set()
        for what, path in places(stack, stack.crew):
            leaks |= {(what, name) for name in found_in(path, words)}
            if found_in(path, ids):
                control.add(what)
        return leaks, control

    leaks, control = await asyncio.to_thread(search)
    assert leaks == set()
    assert control >= {"database", "broker", "log"}
    assert (stack.folder / "spans.jsonl").stat().st_size > 1000

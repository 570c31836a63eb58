"""One trace from the command line over bus, services and rows to the cloud, read from the spans that the processes wrote."""

import asyncio
import json
import os
import re
import secrets
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
import pytest
import yaml
from tests.world.stack import Simulator, Stack

from roadstead.cloud.configure import Wanted, configure
from roadstead.cloud.register import register
from roadstead.cloud.sdk import SdkAdministrator
from roadstead.events import dump
from roadstead.subjects import Key, rpc_subject, spec_subject, status_subject

pytestmark = pytest.mark.timeout(400)
WITHIN = 120.0
REGION, PROJECT, ORGANIZATION = str(uuid.UUID(int=0x7ACE)), "traced-project", "traced-organization"
WRITTEN_BY_HAND = Key(REGION, PROJECT, "identity", str(uuid.UUID(int=0x7ACE1)))
TRACE_BY_HAND, SPAN_BY_HAND = secrets.token_hex(16), secrets.token_hex(8)
DOCUMENTS = [
    {"kind": "identity", "metadata": {"name": "traced"}, "spec": {}},
    {
        "kind": "network",
        "metadata": {"name": "traced", "identityId": "traced"},
        "spec": {"prefix": "192.168.40.0/24", "dnsNameservers": ["192.0.2.53"]},
    },
]
CLIENT = 3  # SPAN_KIND_CLIENT of OTLP


@dataclass(frozen=True)
class Span:
    """service without the product's name in front; parent "" for the first one of a trace."""

    service: str
    name: str
    trace: str
    ident: str
    parent: str
    kind: int


def read_spans(path: Path) -> list[Span]:
    """All spans of a file of OTLP-JSON, one batch a line."""
    found = []
    for line in path.read_text().splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            told = {a["key"]: next(iter(a["value"].values())) for a in resource["resource"]["attributes"]}
            service = str(told["service.name"]).removeprefix("roadstead-")
            for scope in resource["scopeSpans"]:
                found += [
                    Span(service, s["name"], s["traceId"], s["spanId"], s.get("parentSpanId", ""), s["kind"])
                    for s in scope["spans"]
                ]
    return found


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> list[Span]:
    """What one `roadstead apply` and one spec by a plain client left behind."""
    folder = tmp_path_factory.mktemp("trace")
    path = folder / "spans.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROADSTEAD_TRACE_FILE", str(path))
        stack = Stack(pace=0.1, services=("identity", "network"))
        simulator = Simulator(stack.folder, pace=0)
        try:
            simulator.start()
            asyncio.run(lived(stack, simulator, folder))
        finally:
            stack.stop()
            simulator.stop()
            stack.remove()
    return read_spans(path)


async def lived(stack: Stack, simulator: Simulator, folder: Path) -> None:
    """Start the services, register the region, apply."""
    await stack.start()
    client = await nats.connect(stack.nats.url)
    try:
        region = Key(REGION, "_", "region", REGION)
        made = await registered(simulator)
        js = client.jetstream()
        await js.publish(spec_subject(region), dump(made.envelope))
        subject = rpc_subject("identity", "region", "credentials")
        reply = json.loads((await client.request(subject, dump(made.credential or {}), timeout=10)).data)
        assert reply.get("version") == 1, reply
        await provisioned(js, region)
        await asyncio.to_thread(apply, stack, folder)
        metadata = {"name": "by-hand", "organizationId": ORGANIZATION, "projectId": PROJECT}
        headers = {"traceparent": f"00-{TRACE_BY_HAND}-{SPAN_BY_HAND}-01"}
        body = dump({"metadata": metadata, "spec": {}})
        await js.publish(spec_subject(WRITTEN_BY_HAND), body, headers=headers)
        await provisioned(js, WRITTEN_BY_HAND)
    finally:
        await client.close()


async def registered(simulator: Simulator) -> Any:
    openrc = {
        "OS_AUTH_URL": f"{simulator.url}/identity/v3",
        "OS_USERNAME": "admin",
        "OS_PASSWORD": "admin",
        "OS_PROJECT_NAME": "admin",
        "OS_USER_DOMAIN_NAME": "Default",
        "OS_PROJECT_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": "RegionOne",
    }
    done = await configure(SdkAdministrator(openrc=openrc), Wanted(prefix="trace"))
    return register(
        name="traced",
        namespace="roadstead",
        endpoint=done.values["AUTH_URL"],
        region_id=REGION,
        region_name="RegionOne",
        create_secret=True,
        values=done.values,
    )


async def provisioned(js: Any, key: Key) -> None:
    async with asyncio.timeout(WITHIN):
        while True:
            try:
                document = json.loads((await js.get_msg("STATUS", subject=status_subject(key))).data)
            except nats.js.errors.NotFoundError:
                document = {"status": {}}
            if document["status"].get("provisioningStatus") == "provisioned":
                return
            await asyncio.sleep(0.1)


def apply(stack: Stack, folder: Path) -> None:
    """`roadstead apply --wait` as a person runs it."""
    file = folder / "traced.yaml"
    file.write_text(yaml.safe_dump_all(DOCUMENTS))
    ran = subprocess.run(
        [sys.executable, "-m", "roadstead.cli", "apply", "-f", str(file), "--wait", "--timeout", str(WITHIN)],
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN + 30,
        env={
            **os.environ,
            "ROADSTEAD_NATS_URL": stack.nats.url,
            "ROADSTEAD_HOME": str(folder / "home"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "ROADSTEAD_REGION": REGION,
            "ROADSTEAD_PROJECT": PROJECT,
            "ROADSTEAD_ORGANIZATION": ORGANIZATION,
        },
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def ancestors(span: Span, by_id: dict[str, Span]) -> list[Span]:
    """The span's chain upwards, the span itself not among it."""
    chain = []
    while span.parent in by_id:
        span = by_id[span.parent]
        chain.append(span)
    return chain


@pytest.fixture(scope="module")
def of_apply(spans: list[Span]) -> list[Span]:
    """The spans of the command's trace."""
    first = [s for s in spans if s.service == "cli" and not s.parent]
    assert [s.name for s in first] == ["roadstead apply"]
    return [s for s in spans if s.trace == first[0].trace]


def test_one_trace_spans_command_line_bus_services_and_cloud(of_apply: list[Span]) -> None:
    by_id = {s.ident: s for s in of_apply}
    assert {s.service for s in of_apply} == {"cli", "identity", "network"}
    orphans = [s for s in of_apply if s.parent and s.parent not in by_id]
    assert not orphans, "a part of the trace hangs below a span that nobody wrote"
    for service in ("identity", "network"):
        requests = [
            s
            for s in of_apply
            if s.service == service and s.kind == CLIENT and re.match(r"POST \w+ /", s.name)
        ]
        assert requests, f"no write of {service} to the cloud is in the trace"
        for request in requests:
            chain = [s.name for s in ancestors(request, by_id)]
            assert chain[0] == f"pass {service}", chain
            assert chain[-1] == "roadstead apply", chain


def test_a_request_leads_to_its_pass_and_to_the_message_that_keeps_it(of_apply: list[Span]) -> None:
    by_id = {s.ident: s for s in of_apply}
    answer = "answer api.<region>.<project>.identity.apply"
    spec = "spec.<region>.<project>.identity.<id>"
    first = next(s for s in of_apply if s.name == "pass identity")
    above = [s.name for s in ancestors(first, by_id)]
    # Whichever stores it first wakes the row: the request that published it, or the message.
    assert above[:-3] in ([], [f"process {spec}", f"publish {spec}"])
    assert above[-3:] == [answer, "request api", "roadstead apply"]
    stored = next(s for s in of_apply if s.name == f"publish {spec}")
    assert by_id[stored.parent].name == answer
    assert all(by_id[s.parent] == stored for s in of_apply if s.name == f"process {spec}")


def test_the_trace_of_a_plain_client_is_carried_on(spans: list[Span]) -> None:
    ours = {s.ident: s for s in spans if s.trace == TRACE_BY_HAND}
    writes = [s for s in ours.values() if s.kind == CLIENT and s.name.startswith("POST identity ")]
    assert writes
    for write in writes:
        chain = ancestors(write, ours)
        assert [s.name for s in chain] == ["pass identity", "process spec.<region>.<project>.identity.<id>"]
        assert chain[-1].parent == SPAN_BY_HAND


def test_no_span_name_holds_an_id(spans: list[Span]) -> None:
    names = {s.name for s in spans}
    assert len(names) > 10
    ids = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{12,}|traced")
    assert not [n for n in names if ids.search(n)]

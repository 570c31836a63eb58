"""Who may do what on the bus: one user per service with the least it needs, tenants by prefix, operators.

Computed from the table of subjects, so that a new kind or stream needs no second list.  `deploy/nats/generate.py` writes them into
the broker's configuration.  A reply is always allowed once for a request that was received; everyone has an inbox of their own,
because whoever may listen to another one's inbox reads their replies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from roadstead.subjects import (
    OCTAVIA_API,
    OWNERS,
    PROVIDER_REPORTS,
    REPORTS,
    STREAMS,
    ConsumerSettings,
    consumers_of,
    provider_calls,
    provider_report_subject,
    provider_rpc_subject,
)

SERVICES = tuple(dict.fromkeys([*OWNERS.values(), "monitor"]))
INVENTORIES = {
    "compute": ("flavor", "image"),
    "network": ("externalnetwork",),
    "volumes": ("volumeclass",),
}
# Specs that a service publishes for others: a network's hidden identity, and deletes for what lives in it.
PUBLISHES_FOR = {"network": ("identity", "securitygroup", "server", "loadbalancer")}


@dataclass(frozen=True)
class Rights:
    """Subjects a user may publish to and subscribe to; all else is refused.  denied: taken out of `publish`."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    denied: tuple[str, ...] = ()
    replies: bool = False
    inbox: str = "_INBOX"


def inbox_of(user: str) -> str:
    return f"_INBOX_{user}"


def service_rights(service: str) -> Rights:
    """Of one service's user.  ValueError for a name that is no service."""
    if service not in SERVICES:
        raise ValueError(f"{service} is no service; one of {', '.join(SERVICES)}")
    kinds = [kind for kind, owner in OWNERS.items() if owner == service]
    publish: list[str] = []
    for kind in kinds:
        publish += [f"{head}.*.*.{kind}.*" for head in ("spec", "status", "decided", "acted")]
    publish += [f"spec.*.*.{kind}.*" for kind in PUBLISHES_FOR.get(service, ())]
    if kinds:
        publish.append(f"dlq.{service}.>")
    if service == "identity":
        publish.append("credential.>")
    if service == "monitor":
        publish.append("observed.>")
    publish += [f"rpc.{other}.>" for other in SERVICES if other not in (service, "monitor")]
    for stream in STREAMS:
        publish += [f"$JS.API.STREAM.{verb}.{stream}" for verb in ("INFO", "CREATE", "UPDATE")]
    if kinds:
        publish += [f"$JS.API.STREAM.PURGE.{stream}" for stream in ("SPEC", "STATUS", "CREDENTIAL")]
    publish += _reading(service, bool(kinds))
    subscribe = [f"api.*.*.{kind}.>" for kind in (*kinds, *INVENTORIES.get(service, ()))]
    inbox = inbox_of(service)
    return Rights(
        tuple(publish),
        (*dict.fromkeys(subscribe), f"rpc.{service}.>", f"{inbox}.>"),
        replies=True,
        inbox=inbox,
    )


def _reading(service: str, owns: bool) -> list[str]:
    """What the server must be asked to read STATUS and CREDENTIAL, and the service's own durable consumers."""
    found: list[str] = []
    # A follower's consumer bears a random name, and the subjects that it is limited to stand in the request's body.
    for stream in ("STATUS", "CREDENTIAL", *(("SPEC",) if owns else ())):
        found += [
            f"$JS.API.CONSUMER.CREATE.{stream}.>",
            f"$JS.API.CONSUMER.MSG.NEXT.{stream}.*",
            f"$JS.API.STREAM.MSG.GET.{stream}",
        ]
    for consumer in consumers_of(service):
        found += _consuming(consumer)
    return list(dict.fromkeys(found))


def _consuming(consumer: ConsumerSettings) -> list[str]:
    """What making and reading one durable consumer takes."""
    place = f"{consumer.stream}.{consumer.durable}"
    return [
        f"$JS.API.CONSUMER.CREATE.{place}",
        f"$JS.API.CONSUMER.CREATE.{place}.>",
        f"$JS.API.CONSUMER.INFO.{place}",
        f"$JS.API.CONSUMER.MSG.NEXT.{place}",
        f"$JS.ACK.{place}.>",
    ]


def octavia_rights() -> Rights:
    """Of the Octavia API: it asks every provider, hands out their work and hears their reports; it owns no kind of resource."""
    publish = ["provider.*.call.>", provider_rpc_subject("*", "check"), provider_rpc_subject("*", "ask", "*")]
    for stream in STREAMS:
        publish += [f"$JS.API.STREAM.{verb}.{stream}" for verb in ("INFO", "CREATE", "UPDATE")]
    publish += [f"dlq.{OCTAVIA_API}.>", *_consuming(REPORTS)]
    answers = tuple(provider_rpc_subject("*", verb) for verb in ("status", "statistics", "get", "tree"))
    inbox = inbox_of(OCTAVIA_API)
    return Rights(tuple(publish), (*answers, f"rpc.{OCTAVIA_API}.>", f"{inbox}.>"), replies=True, inbox=inbox)


def provider_user(provider: str) -> str:
    return f"provider-{provider}"


def provider_rights(provider: str) -> Rights:
    """Of one load balancing provider: its own work, reports and requests, and nobody else's."""
    calls = provider_calls(provider)
    publish = [provider_report_subject(provider, what) for what in PROVIDER_REPORTS]
    publish += [provider_rpc_subject(provider, verb) for verb in ("status", "statistics", "get", "tree")]
    publish += [f"dlq.{provider_user(provider)}.>", f"$JS.API.STREAM.INFO.{calls.stream}", *_consuming(calls)]
    inbox = inbox_of(provider_user(provider))
    subscribe = (
        provider_rpc_subject(provider, "check"),
        provider_rpc_subject(provider, "ask", "*"),
        f"{inbox}.>",
    )
    return Rights(tuple(publish), subscribe, replies=True, inbox=inbox)


def tenant_rights(user: str, region: str, projects: Sequence[str]) -> Rights:
    """Of a user of some projects in one region: publish specs, ask, and watch what becomes of them."""
    publish: list[str] = []
    subscribe: list[str] = []
    for project in projects:
        publish += [f"spec.{region}.{project}.>", f"api.{region}.{project}.>"]
        subscribe += [f"{head}.{region}.{project}.>" for head in ("status", "decided", "acted")]
    inventories = (kind for kinds in INVENTORIES.values() for kind in kinds)
    publish += [f"api.{region}._.{kind}.list" for kind in inventories]
    publish += [f"api.{region}._.region.{verb}" for verb in ("get", "list")]
    return Rights(tuple(publish), (*subscribe, f"{inbox_of(user)}.>"), inbox=inbox_of(user))


def operator_rights(user: str) -> Rights:
    """Of a person who runs the region: everything but what only services write, and nobody's inbox."""
    return Rights(
        ("spec.>", "api.>", "rpc.>", "$JS.API.>", "dlq.>"),
        ("spec.>", "observed.>", "status.>", "decided.>", "acted.>", "dlq.>", f"{inbox_of(user)}.>"),
        denied=tuple(
            f"$JS.API.STREAM.{verb}.{stream}" for verb in ("DELETE", "RESTORE") for stream in STREAMS
        ),
        inbox=inbox_of(user),
    )


def as_configuration(rights: Rights, indent: str = "      ") -> str:
    """The `permissions` block of a user in the broker's configuration."""

    def listed(subjects: Sequence[str]) -> str:
        return "[" + ", ".join(f'"{subject}"' for subject in subjects) + "]"

    publish = f"allow: {listed(rights.publish)}"
    if rights.denied:
        publish += f", deny: {listed(rights.denied)}"
    lines = [
        "permissions: {",
        f"  publish: {{ {publish} }}",
        f"  subscribe: {{ allow: {listed(rights.subscribe)} }}",
    ]
    if rights.replies:
        lines.append('  allow_responses: { max: 1, expires: "1m" }')
    lines.append("}")
    return "\n".join(indent + line for line in lines)

"""Every stream, subject and consumer with its settings, in one table (events.md section 1).

Nothing else in the product spells a subject.  Metric and span names take the template, never the ids in it.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

NO_PROJECT = "_"
KINDS = (
    "region",
    "identity",
    "network",
    "securitygroup",
    "server",
    "volume",
    "loadbalancer",
    "image",
    "sshcertificateauthority",
)
# Kinds of these names come with a later release; their owners answer for messages about them, and take none.
LATER = ("image", "sshcertificateauthority")
OWNERS = {
    "region": "identity",
    "identity": "identity",
    "network": "network",
    "securitygroup": "network",
    "server": "compute",
    "image": "compute",
    "sshcertificateauthority": "compute",
    "volume": "volumes",
    "loadbalancer": "loadbalancer",
}
PLURALS = {
    "region": "regions",
    "identity": "identities",
    "network": "networks",
    "securitygroup": "securitygroups",
    "server": "servers",
    "volume": "volumes",
    "loadbalancer": "loadbalancers",
    "image": "images",
    "sshcertificateauthority": "sshcertificateauthorities",
}
SINGULARS = {plural: kind for kind, plural in PLURALS.items()}
GROUP = "region.unikorn-cloud.org"

_TOKEN = re.compile(r"^[A-Za-z0-9_-]{1,64}$")


@dataclass(frozen=True, order=True)
class Key:
    """What a message and a row are about.  region and id are UUID texts in lower case; project is an id or `_`."""

    region: str
    project: str
    kind: str
    id: str

    def __str__(self) -> str:
        return f"{self.region}.{self.project}.{self.kind}.{self.id}"

    @property
    def reference(self) -> str:
        """The reference string by which this resource holds on to another: `{plural}.{group}/{id}`."""
        return f"{PLURALS[self.kind]}.{GROUP}/{self.id}"


def parse_reference(text: str) -> tuple[str, str] | None:
    """(kind, id) of one of our reference strings; None for a string of an external consumer."""
    head, slash, ident = text.partition("/")
    plural, dot, group = head.partition(".")
    if not slash or not dot or group != GROUP or plural not in SINGULARS:
        return None
    return SINGULARS[plural], ident


class BadSubject(ValueError):
    """A subject that names no resource; the text says what is wrong with it."""


def parse_key(subject: str) -> Key:
    """The key in `<prefix>.<region>.<project>.<kind>.<id>`.  BadSubject when it is none."""
    parts = subject.split(".")
    if len(parts) != 5:
        raise BadSubject("a resource subject has five tokens: <prefix>.<region>.<project>.<kind>.<id>")
    _, region, project, kind, ident = parts
    for name, value in (("region", region), ("id", ident)):
        try:
            if str(UUID(value)) != value:
                raise ValueError(value)
        except ValueError:
            raise BadSubject(f"the {name} in the subject is not a lower-case UUID") from None
    if not _TOKEN.match(project):
        raise BadSubject(
            "the project in the subject is not an id of letters, digits, _ and - (or _ for none)"
        )
    if kind not in KINDS:
        raise BadSubject(
            f"the kind in the subject is none of {', '.join(kind for kind in KINDS if kind not in LATER)}"
        )
    return Key(region, project, kind, ident)


def spec_subject(key: Key) -> str:
    return f"spec.{key}"


def status_subject(key: Key) -> str:
    return f"status.{key}"


def observed_subject(key: Key) -> str:
    return f"observed.{key}"


def decided_subject(key: Key) -> str:
    return f"decided.{key}"


def acted_subject(key: Key) -> str:
    return f"acted.{key}"


def credential_subject(region: str, identity: str | None) -> str:
    """`identity` None: the region's own service user."""
    return f"credential.{region}.{identity or '_region'}"


def dead_subject(service: str, key: str) -> str:
    """`key` is the four tokens of a Key, or a cleaned stand-in for a subject that names none."""
    return f"dlq.{service}.{key}"


def api_subject(region: str, project: str, kind: str, verb: str) -> str:
    return f"api.{region}.{project}.{kind}.{verb}"


def rpc_subject(service: str, *rest: str) -> str:
    return ".".join(("rpc", service, *rest))


def provider_call_subject(provider: str, noun: str, verb: str) -> str:
    """Where a load balancing provider's work lies, e.g. `provider.ovn.call.listener.create`."""
    return f"provider.{provider}.call.{noun}.{verb}"


def provider_report_subject(provider: str, what: str) -> str:
    """`what`: result, status or statistics."""
    return f"provider.{provider}.{what}"


def provider_rpc_subject(provider: str, *rest: str) -> str:
    return ".".join(("rpc", "provider", provider, *rest))


def template(subject: str) -> str:
    """The subject with its ids replaced by names, for metrics and spans."""
    parts = subject.split(".")
    names = ("<region>", "<project>", "<kind>", "<id>")
    if parts[0] in ("spec", "status", "observed", "decided", "acted") and len(parts) == 5:
        return ".".join([parts[0], names[0], names[1], parts[3], names[3]])
    if parts[0] == "api" and len(parts) >= 5:
        return ".".join(["api", names[0], names[1], *parts[3:]])
    if parts[0] == "credential":
        return "credential.<region>.<identity>"
    if parts[0] == "dlq":
        return f"dlq.{parts[1]}.<key>" if len(parts) > 1 else "dlq"
    if parts[0] == "provider" and len(parts) >= 3:
        return f"provider.<provider>.{parts[2] if parts[2] in PROVIDER_WORDS else 'other'}"
    if parts[:2] == ["rpc", "provider"] and len(parts) > 3:
        return ".".join(["rpc", "provider", "<provider>", *parts[3:]])
    return ".".join(parts) if parts[0] == "rpc" else parts[0]


PROVIDER_REPORTS = ("result", "status", "statistics")
PROVIDER_WORDS = ("call", *PROVIDER_REPORTS)


class Keep(StrEnum):
    """How a stream lets go of messages."""

    LIMITS = "limits"
    WORK_QUEUE = "workqueue"


class WhenFull(StrEnum):
    """What a full stream refuses: its oldest, or the newcomer (with an alarm)."""

    OLD = "old"
    NEW = "new"


DAY = 86_400.0
MIB = 1 << 20


@dataclass(frozen=True)
class StreamSettings:
    """One JetStream stream.  max_age in seconds, 0: no limit; max_bytes is always set."""

    name: str
    subjects: tuple[str, ...]
    per_subject: int
    max_age: float
    max_bytes: int
    max_message: int
    keep: Keep = Keep.LIMITS
    when_full: WhenFull = WhenFull.OLD
    duplicate_window: float = 120.0


MAX_SPEC_BYTES = 256 * 1024
MAX_TREE_BYTES = 512 * 1024  # of a load balancer's tree in a provider call, and of a page of trees

STREAMS: dict[str, StreamSettings] = {
    s.name: s
    for s in (
        StreamSettings("SPEC", ("spec.>",), 64, 0, 2048 * MIB, MIB, when_full=WhenFull.NEW),
        StreamSettings("OBSERVED", ("observed.>",), 16, 7 * DAY, 512 * MIB, MIB),
        StreamSettings("STATUS", ("status.>",), 16, 0, 2048 * MIB, MIB),
        StreamSettings("HISTORY", ("decided.>", "acted.>"), -1, 7 * DAY, 1024 * MIB, MIB),
        StreamSettings("CREDENTIAL", ("credential.>",), 2, 0, 128 * MIB, MIB),
        # A call that nobody took for a day is of no use: its operation has ended long ago, and a provider that comes back asks for
        # the trees.
        StreamSettings(
            "PROVIDER_CALLS", ("provider.*.call.>",), -1, DAY, 512 * MIB, MIB, keep=Keep.WORK_QUEUE
        ),
        StreamSettings(
            "PROVIDER_REPORTS",
            tuple(provider_report_subject("*", what) for what in PROVIDER_REPORTS),
            -1,
            7 * DAY,
            512 * MIB,
            MIB,
        ),
        StreamSettings("DLQ", ("dlq.>",), -1, 30 * DAY, 512 * MIB, 2 * MIB),
    )
}


@dataclass(frozen=True)
class ConsumerSettings:
    """One durable pull consumer of a service.  ack_wait in seconds; deliveries are unlimited."""

    stream: str
    durable: str
    subjects: tuple[str, ...]
    ack_wait: float = 30.0
    max_ack_pending: int = 256
    headers_only: bool = False


# A spec whose subject names no known kind matches no owner's consumer; one service looks at every subject (the bodies do
# not travel) and answers for those.
STRAYS_TO = "identity"
STRAYS = ConsumerSettings("SPEC", f"{STRAYS_TO}-strays", ("spec.>",), headers_only=True)


OCTAVIA_API = "octavia-api"
REPORTS = ConsumerSettings(
    "PROVIDER_REPORTS",
    f"{OCTAVIA_API}-reports",
    tuple(provider_report_subject("*", what) for what in PROVIDER_REPORTS),
)


def provider_calls(provider: str) -> ConsumerSettings:
    """The work queue of one provider, shared by its replicas."""
    return ConsumerSettings("PROVIDER_CALLS", f"provider-{provider}", (f"provider.{provider}.call.>",))


def consumers_of(service: str) -> tuple[ConsumerSettings, ...]:
    """The durable consumers that `service` binds: specs (and observations) of the kinds it owns; a provider's are `provider_calls`."""
    if service == OCTAVIA_API:
        return (REPORTS,)
    kinds = [kind for kind, owner in OWNERS.items() if owner == service]
    if not kinds:
        return ()
    specs = tuple(f"spec.*.*.{kind}.*" for kind in kinds)
    seen = tuple(f"observed.*.*.{kind}.*" for kind in kinds)
    own = (
        ConsumerSettings("SPEC", f"{service}-spec", specs),
        ConsumerSettings("OBSERVED", f"{service}-observed", seen),
    )
    return (*own, STRAYS) if service == STRAYS_TO else own

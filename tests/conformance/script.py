"""The world of one exchange: what providers, the network and the key manager answer, and what they were asked.

Answers are taken by what is asked, in the recorded order; the last one stays for the same question again.  What was not recorded is
noted as unscripted and answered as a service would that does not know the object.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roadstead_octavia.db.port import Row
from roadstead_octavia.errors import ApiError, refuse
from roadstead_octavia.outside.network import NetworkRefused

Entry = Mapping[str, Any]
# What the original sends to the amphora provider as messages without an answer.
CASTS = frozenset(("delete_amphora", "failover_amphora", "update_amphora_agent_config"))
LOOKUPS = {
    "subnets": "get_subnet",
    "ports": "get_port",
    "networks": "get_network",
    "qos_policies": "get_qos_policy",
    "security_groups": "get_security_group_by_id",
}
NOT_IMPLEMENTED = "This feature is not implemented by the provider."


class Answers:
    def __init__(self, entries: Sequence[Entry] | None, key: Callable[[Entry], Any]) -> None:
        self._key = key
        self._held: dict[Any, list[Entry]] = defaultdict(list)
        for entry in entries or ():
            self._held[key(entry)].append(entry)

    def take(self, entry: Entry) -> Entry | None:
        found = self._held.get(self._key(entry))
        if not found:
            return None
        return found.pop(0) if len(found) > 1 else found[0]


class Script:
    """The recorded world and the log of what was asked."""

    def __init__(self, world: Entry) -> None:
        self.world = world
        self.calls: list[dict[str, Any]] = []
        self.casts: list[dict[str, Any]] = []
        self.network_writes: list[dict[str, Any]] = []
        self.unscripted: list[Any] = []
        self.provider = Answers(world.get("provider"), lambda e: e["method"])
        self.certificates = Answers(
            world.get("certificates"), lambda e: (e["method"], repr(e.get("args") or []))
        )
        self.bundles = Answers(
            world.get("bundles"), lambda e: (e.get("tls_ref"), tuple(e.get("sni_refs") or ()))
        )
        self.network = Answers(world.get("network"), lambda e: (e["method"], repr(e.get("args") or [])))
        self.resources: Mapping[str, Any] = world.get("resources") or {}


class ScriptedProvider:
    """Answers from the script, as the original's provider did in process.  `holder.script` is the exchange's."""

    def __init__(self, holder: Any) -> None:
        self._holder = holder

    async def check(self, provider: str, method: str, arguments: Sequence[Any], revision: int = 0) -> None:
        self._answer(provider, method, arguments)

    async def ask(self, provider: str, method: str, arguments: Sequence[Any]) -> Any:
        if method in CASTS:
            return self._cast(method, arguments)
        return self._answer(provider, method, arguments)

    def _cast(self, method: str, arguments: Sequence[Any]) -> None:
        script: Script = self._holder.script
        script.casts.append({"method": method, "args": dict(arguments[0])})
        for failed in script.world.get("cast_failures") or ():
            if failed["method"] == method:
                raise ApiError(500, failed["raises"].get("message", ""), "Cast")

    def _answer(self, provider: str, method: str, arguments: Sequence[Any]) -> Any:
        script: Script = self._holder.script
        script.calls.append({"provider": provider, "method": method, "args": list(arguments)})
        found = script.provider.take({"method": method})
        if found is None:
            script.unscripted.append(["provider", method])
            return None
        if "raises" in found:
            raise provider_error(provider, method, found["raises"])
        return found.get("returns")


def provider_error(provider: str, method: str, raised: Entry) -> ApiError:
    """What the API makes of an exception that a provider raised (the rows of provider errors)."""
    name = raised["class"]
    text = raised.get("user_fault_string", raised.get("message", ""))
    if name == "Conflict":
        return refuse("VIPAddressConflict", msg=text)
    if name == "NotImplementedError":
        said = text if "user_fault_string" in raised else text or NOT_IMPLEMENTED
        return refuse("ProviderNotImplemented", prov=provider, user_msg=said)
    if name == "UnsupportedOptionError":
        return refuse("ProviderUnsupportedOption", prov=provider, user_msg=text)
    return refuse("ProviderDriverError", prov=provider, user_msg=text)


class ScriptedNetwork:
    def __init__(self, holder: Any) -> None:
        self._holder = holder

    async def find(
        self, kind: str, identifier: str, *, token: str | None = None, as_service: bool = False
    ) -> Mapping[str, Any] | None:
        script: Script = self._holder.script
        found = script.network.take({"method": LOOKUPS[kind], "args": [identifier]})
        if found is None:
            script.unscripted.append(["network", kind, identifier])
            return None
        if "raises" in found:
            return None
        answer = found.get("returns")
        return dict(answer) if isinstance(answer, Mapping) else {"id": identifier}

    async def has_qos(self) -> bool:
        return bool(self._holder.script.resources.get("qos_enabled", True))

    async def availability(self, network_id: str) -> Mapping[str, int]:
        found = (self._holder.script.resources.get("ip_availability") or {}).get(network_id)
        if not isinstance(found, dict):
            return {}
        return {
            entry["subnet_id"]: entry["total_ips"] - entry["used_ips"]
            for entry in found.get("subnet_ip_availability") or ()
        }

    async def make_vip_port(
        self,
        load_balancer_id: str,
        project_id: str,
        vip: Row,
        additional: Sequence[Row],
        groups: Sequence[str],
    ) -> tuple[Row, Sequence[Row]]:
        answers = self._holder.script.resources.get("allocate_vip") or []
        if not answers:
            raise NetworkRefused(None, "no answer recorded")
        found = answers[0]
        if "raises" in found:
            raised = found["raises"]
            raise NetworkRefused(raised.get("orig_code"), raised.get("orig_msg") or raised.get("message", ""))
        value = found["returns"]
        made, more = value if isinstance(value, list) else (value, [])
        return _filled(vip, made), [_filled(a, m) for a, m in zip(additional, more, strict=False)]

    async def remove_vip_port(self, load_balancer_id: str, port_id: str | None) -> None:
        script: Script = self._holder.script
        script.network_writes.append(
            {"method": "deallocate_vip", "args": {"load_balancer_id": load_balancer_id, "port_id": port_id}}
        )
        for entry in script.world.get("network") or ():
            if entry["method"] == "deallocate_vip" and "raises" in entry:
                raise NetworkRefused(None, entry["raises"].get("message", ""))


def _filled(row: Row, made: Any) -> dict[str, Any]:
    wanted = ("ip_address", "port_id", "network_id", "subnet_id")
    if not isinstance(made, dict):
        return dict(row)
    return {**row, **{k: made[k] for k in wanted if made.get(k) is not None}}


class ScriptedKeys:
    def __init__(self, holder: Any) -> None:
        self._holder = holder

    def _asked(self, method: str, reference: str) -> Entry | None:
        script: Script = self._holder.script
        found = script.certificates.take({"method": method, "args": [reference]})
        if found is None and method != "set_acls":
            script.unscripted.append(["keys", method, reference])
        return found

    async def grant(self, reference: str, token: str | None) -> None:
        found = self._asked("set_acls", reference)
        if found is not None and "raises" in found:
            raise refuse("CertificateRetrieval", ref=reference)

    async def unreadable(self, references: Sequence[str], token: str | None) -> Sequence[str]:
        bad = []
        for reference in references:
            found = self._asked("get_cert", reference)
            if found is None or "raises" in found:
                bad.append(reference)
        return bad

    async def secret(self, reference: str, token: str | None) -> str | None:
        found = self._asked("get_secret", reference)
        if found is None or "raises" in found:
            return None
        value = found.get("returns")
        return value if isinstance(value, str) else ""

    async def bundles(
        self, tls: str | None, sni: Sequence[str], token: str | None
    ) -> tuple[Mapping[str, Any] | None, Sequence[Mapping[str, Any]]]:
        script: Script = self._holder.script
        found = script.bundles.take({"tls_ref": tls, "sni_refs": list(sni)})
        if found is None:
            # The original asks for a new listener's own certificate alone; SNI certificates have no recorded answer then.
            found = script.bundles.take({"tls_ref": tls, "sni_refs": []})
        if found is None:
            script.unscripted.append(["keys", "bundles", tls, list(sni)])
            return None, []
        if "raises" in found:
            raised = found["raises"]
            if "APIException" in (raised.get("is") or ()):
                raise ApiError(raised["code"], raised["message"], raised["class"])
            raise refuse("CertificateRetrieval", ref=tls)
        return found.get("tls_cert"), found.get("sni_certs") or []

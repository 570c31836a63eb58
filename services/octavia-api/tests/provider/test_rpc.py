"""What a provider's answer means to the client."""

from collections.abc import Mapping
from typing import Any

import pytest

from roadstead.bus.failures import RequestFailed
from roadstead_octavia.errors import ApiError
from roadstead_octavia.provider.rpc import RpcProvider, refused

REFUSALS = [
    ("Conflict", "in use", 409, "The VIP IP address is already in use: in use"),
    ("DriverError", "broken", 500, "Provider 'p' reports error: broken"),
    ("NotImplemented", "no", 501, "Provider 'p' does not support a requested action: no"),
    (
        "NotImplemented",
        None,
        501,
        "Provider 'p' does not support a requested action: This feature is not implemented by the provider.",
    ),
    ("UnsupportedOption", "tls", 501, "Provider 'p' does not support a requested option: tls"),
    ("SomethingElse", "odd", 500, "Provider 'p' reports error: odd"),
]


class Scripted:
    """A bus that answers one thing."""

    def __init__(self, reply: Mapping[str, Any] | None) -> None:
        self.reply = reply
        self.asked: list[tuple[str, Mapping[str, Any], float | None]] = []

    async def request(
        self, subject: str, payload: Mapping[str, Any], *, within: float | None = None
    ) -> Mapping[str, Any]:
        self.asked.append((subject, payload, within))
        if self.reply is None:
            raise RequestFailed("nobody answers")
        return self.reply


@pytest.mark.parametrize(("kind", "user", "status", "text"), REFUSALS)
def test_a_refusal_is_told_as_the_original_tells_it(kind: str, user: Any, status: int, text: str) -> None:
    error = refused("p", {"error": {"class": kind, "user": user, "operator": "secret detail"}})
    assert error is not None
    assert (error.status, error.text) == (status, text)
    assert "secret detail" not in error.text


@pytest.mark.parametrize("reply", [{}, {"ok": False}, {"error": "x"}, {"error": {}}, {"ok": "yes"}])
def test_an_answer_that_cannot_be_read_is_no_agreement(reply: dict[str, Any]) -> None:
    error = refused("p", reply)
    assert error is not None
    assert error.status == 500


async def test_a_check_carries_the_call_as_it_would_be_made_and_the_revision() -> None:
    bus = Scripted({"ok": True})
    await RpcProvider(bus, patience=3).check("ovn", "pool_create", ({"$type": "Pool"},), 7)
    assert bus.asked == [
        (
            "rpc.provider.ovn.check",
            {"method": "pool_create", "arguments": [{"$type": "Pool"}], "revision": 7},
            3,
        )
    ]


async def test_a_question_returns_what_the_provider_said() -> None:
    bus = Scripted({"ok": True, "returns": [{"vip_port_id": "x"}, []]})
    answer = await RpcProvider(bus).ask("ovn", "create_vip_port", ["lb", "project", {}, []])
    assert answer == [{"vip_port_id": "x"}, []]
    assert bus.asked[0][0] == "rpc.provider.ovn.ask.create_vip_port"


async def test_no_answer_is_503_with_retry_after() -> None:
    with pytest.raises(ApiError) as caught:
        await RpcProvider(Scripted(None)).check("ovn", "pool_create", ())
    assert caught.value.status == 503
    assert dict(caught.value.headers)["Retry-After"] == "5"


@pytest.mark.parametrize("name", ["a.b", "*", ">", "", "a b", "x" * 65])
async def test_a_name_that_is_no_token_reaches_no_subject(name: str) -> None:
    bus = Scripted({"ok": True})
    with pytest.raises(ApiError) as caught:
        await RpcProvider(bus).check(name, "pool_create", ())
    assert caught.value.status == 501
    assert bus.asked == []

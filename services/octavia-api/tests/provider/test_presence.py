"""Which providers are at work, and what `roadstead doctor` makes of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from roadstead.bus.failures import RequestFailed
from roadstead.cli.context import Context
from roadstead.cli.failures import NoAnswer
from roadstead_octavia import diagnosis
from roadstead_octavia.options import Options
from roadstead_octavia.provider.presence import Presence


class Providers:
    """A bus with providers that answer as told; those that are not listed are silent."""

    def __init__(self, replies: Mapping[str, Mapping[str, Any]]) -> None:
        self.replies = replies
        self.asked: list[str] = []

    async def request(
        self, subject: str, payload: Mapping[str, Any], *, within: float | None = None
    ) -> Mapping[str, Any]:
        assert within is not None
        self.asked.append(subject)
        try:
            return self.replies[subject.split(".")[2]]
        except KeyError:
            raise RequestFailed("nobody") from None


async def test_a_refusal_is_an_answer_and_silence_is_none() -> None:
    bus = Providers(
        {
            "glad": {"ok": True, "returns": {}},
            "unable": {"error": {"class": "NotImplemented", "user": None, "operator": None}},
            "broken": {"error": {"class": "DriverError", "user": "no", "operator": None}},
        }
    )
    names = ("glad", "unable", "broken", "away")
    options = Options(enabled_provider_drivers=dict.fromkeys(names, ""), default_provider_driver="away")
    seen = await Presence(bus, options).look()
    assert seen["default"] == "away"
    assert {each["name"]: each["answers"] for each in seen["providers"]} == {
        "glad": True,
        "unable": True,
        "broken": True,
        "away": False,
    }
    assert all(subject.endswith(".ask.get_supported_flavor_metadata") for subject in bus.asked)


class ToldClient:
    """A client whose API says these providers; None: nobody answers."""

    def __init__(self, reply: Mapping[str, Any] | None) -> None:
        self._reply = reply

    async def ask(self, *_: Any, **__: Any) -> Mapping[str, Any]:
        if self._reply is None:
            raise NoAnswer("nobody answers", "octavia-api")
        return self._reply


async def lines(reply: Mapping[str, Any] | None, **context: Any) -> dict[str, tuple[str, str]]:
    client: Any = ToldClient(reply)
    found = [line async for line in diagnosis.checks(client, Context("test", **context))]
    return {line.what: (line.state.value, line.text) for line in found}


async def test_doctor_says_nothing_where_the_api_is_not_in_use() -> None:
    assert await lines(None) == {}


async def test_doctor_names_the_provider_that_is_silent() -> None:
    seen = {
        "default": "ovn",
        "providers": [{"name": "ovn", "answers": False}, {"name": "noop", "answers": True}],
    }
    assert await lines(seen) == {
        "octavia API": ("ok", "it answers on the bus"),
        "provider ovn": ("wrong", "it does not answer: what needs it gets 503; it is the default"),
        "provider noop": ("ok", "it answers"),
    }


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "file:///etc/hostname"])
async def test_doctor_tells_an_address_that_does_not_answer(url: str) -> None:
    found = await lines({"default": "x", "providers": []}, octavia_url=url)
    assert found["octavia API"][0] == "wrong"
    assert found["octavia API"][1].startswith(url)


async def test_doctor_tells_an_api_that_is_not_on_the_bus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "_asked", lambda _: None)
    found = await lines(None, octavia_url="http://api.example:9876")
    assert found["octavia API"] == ("wrong", "it does not answer on the bus, so no provider is heard")

"""One pass from observation to outcome (architecture.md sections 3.4 to 3.6)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from roadstead.cloud.credentials import Keyring
from roadstead.cloud.port import Answer, Call, CloudError, Verdict
from roadstead.reconcile.decision import Code, Done, Go, Park, Retry, Stop, Yield
from roadstead.reconcile.drive import Asked, Ending
from roadstead.reconcile.kind import Kind
from roadstead.reconcile.passing import Pass
from roadstead.testing.passbench import PassBench, StandingClock

from .toy import KEY, KIND, Seen, ToyVerb

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Tins:
    """A cloud of tins: volume.create makes one, volume.delete removes it, volume.list shows it."""

    def __init__(self) -> None:
        self.tin: str | None = None
        self.calls: list[str] = []
        self.fail: CloudError | None = None
        self.after = False

    async def call(self, call: Call) -> Answer:
        self.calls.append(call.verb)
        if call.guard is not None and not call.guard():
            raise CloudError.lease_lost()
        if self.fail is not None and call.verb != "volume.list" and not self.after:
            raise self.fail
        if call.verb == "volume.create":
            self.tin = "whole"
        elif call.verb == "volume.delete":
            self.tin = None
        if self.fail is not None and call.verb != "volume.list":
            raise self.fail
        value = [{"name": "tin", "id": self.tin}] if self.tin else []
        return Answer(value, 200, f"req-{len(self.calls)}", NOW)


async def observe(p: Pass[Any, Any, Any]) -> Seen:
    found = await p.find(p.privileged, "block-storage", "volume.list", "tin")
    return Seen(found["id"] if found else None)


async def create(p: Pass[Any, Any, Any]) -> Go:
    await p.write(p.privileged, "block-storage", "volume.create", json={})
    return Go(Seen("whole"))


async def delete(p: Pass[Any, Any, Any]) -> Stop:
    await p.write(p.privileged, "block-storage", "volume.delete", id="x")
    return Stop(Yield(Code.BUSY, "going"))


TOY: Kind[Any, Any, Any] = replace(
    KIND, observe=observe, act={ToyVerb.CREATE: create, ToyVerb.DELETE: delete}
)


def bench(cloud: Tins, **options: Any) -> PassBench:
    metadata = {"name": "tin", "organizationId": "o", "projectId": "p"}
    return PassBench(
        TOY, KEY, metadata, {"colour": "red"}, cloud, StandingClock(NOW), Keyring(), identity="i", **options
    )


async def test_a_create_is_one_write_and_the_pass_goes_on_without_reading_again() -> None:
    cloud = Tins()
    b = bench(cloud)
    ending = await b.run()
    assert isinstance(ending.outcome, Done)
    assert cloud.calls == ["volume.list", "volume.create"]
    assert [d.rule for d in ending.decided] == ["T1", "T4"]
    assert b.writes[0]["openstackRequestId"] == "req-2"
    assert b.writes[0]["decisionId"] == ending.decided[0].decision_id


async def test_the_intent_is_stored_before_the_request_leaves() -> None:
    cloud = Tins()
    b = bench(cloud)
    b.book.holds = False
    ending = await b.run()
    assert ending.lost
    assert [i["verb"] for i in b.book.intents] == ["volume.create"]
    assert cloud.tin is None


async def test_oc_21_while_a_create_is_unanswered_and_young_nothing_is_asked_again() -> None:
    cloud = Tins()
    cloud.fail = CloudError(Verdict.UNKNOWN)
    b = bench(cloud)
    assert isinstance((await b.run()).outcome, Retry)
    cloud.fail = None
    b.clock.advance(10)
    ending = await b.run()
    assert isinstance(ending.outcome, Yield)
    assert ending.outcome.code is Code.SETTLING
    assert cloud.calls.count("volume.create") == 1


async def test_oc_21_an_unanswered_create_that_took_effect_is_adopted() -> None:
    cloud = Tins()
    cloud.fail, cloud.after = CloudError(Verdict.UNKNOWN), True
    b = bench(cloud)
    await b.run()
    cloud.fail = None
    assert isinstance((await b.run()).outcome, Done)
    assert cloud.calls.count("volume.create") == 1


async def test_after_the_settling_time_an_absent_object_is_asked_for_again() -> None:
    cloud = Tins()
    b = bench(cloud, asked=(Asked("block-storage", "volume.create", NOW - timedelta(seconds=66)),))
    assert isinstance((await b.run()).outcome, Done)
    assert cloud.calls.count("volume.create") == 1


async def test_no_deletion_is_finished_on_an_absence_while_a_create_is_unanswered() -> None:
    b = bench(
        Tins(), asked=(Asked("block-storage", "volume.create", NOW - timedelta(seconds=5)),), deleting=True
    )
    ending = await b.run()
    assert isinstance(ending.outcome, Yield)
    assert ending.outcome.code is Code.SETTLING


@pytest.mark.parametrize(
    ("verdict", "outcome"),
    [
        (Verdict.QUOTA, Retry),
        (Verdict.EXHAUSTED, Retry),
        (Verdict.UNAVAILABLE, Retry),
        (Verdict.FORBIDDEN, Retry),
        (Verdict.CONSISTENCY, Retry),
        (Verdict.WRONG_CLOUD, Retry),
        (Verdict.IN_USE, Yield),
        (Verdict.THROTTLED, Yield),
    ],
)
async def test_oc_30_every_verdict_has_one_outcome_and_none_parks(verdict: Verdict, outcome: type) -> None:
    cloud = Tins()
    cloud.fail = CloudError(verdict, text="secret words of the cloud")
    ending: Ending = await bench(cloud).run()
    assert isinstance(ending.outcome, outcome)
    assert "secret words" not in str(ending.outcome)


async def test_a_failed_look_up_is_never_an_absence() -> None:
    class Failing(Tins):
        async def call(self, call: Call) -> Answer:
            self.calls.append(call.verb)
            raise CloudError(Verdict.UNAVAILABLE)

    cloud = Failing()
    ending = await bench(cloud).run()
    assert isinstance(ending.outcome, Retry)
    assert cloud.calls == ["volume.list"]


async def test_two_objects_of_one_name_stop_the_pass() -> None:
    class Doubled(Tins):
        async def call(self, call: Call) -> Answer:
            self.calls.append(call.verb)
            return Answer([{"name": "tin", "id": "a"}, {"name": "tin", "id": "b"}], 200, None, NOW)

    cloud = Doubled()
    ending = await bench(cloud).run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.CONSISTENCY
    assert cloud.calls == ["volume.list"]


async def test_a_pass_is_bounded() -> None:
    async def nothing(p: Pass[Any, Any, Any]) -> Go:
        await p.write(p.privileged, "block-storage", "volume.create", json={})
        return Go(Seen(None))

    cloud = Tins()
    b = bench(cloud)
    b.kind = replace(TOY, act={ToyVerb.CREATE: nothing}, max_verbs=3)
    ending = await b.run()
    assert isinstance(ending.outcome, Retry)
    assert ending.outcome.code is Code.INTERNAL
    assert cloud.calls.count("volume.create") == 3


async def test_a_park_of_a_delete_becomes_an_error() -> None:
    async def parked(_p: Pass[Any, Any, Any]) -> Stop:
        return Stop(Park(Code.CREATE_EXHAUSTED, "no", terminal=True))

    cloud = Tins()
    cloud.tin = "whole"
    b = bench(cloud, deleting=True)
    b.kind = replace(TOY, act={ToyVerb.DELETE: parked})
    assert isinstance((await b.run()).outcome, Retry)

"""The engine: requests as they are built, tokens, replays, guards, limits; over a sender that follows a script."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from roadstead.cloud.engine import CloudEngine
from roadstead.cloud.port import (
    Call,
    CloudError,
    Principal,
    PrivilegedPrincipal,
    RegionDomain,
    RegionProject,
    Verdict,
)
from roadstead.cloud.sending import NotSent, Unanswered
from roadstead.cloud.settings import CloudSettings

SERVER = {"server": {"id": "s1", "name": "web"}}
GONE = {"itemNotFound": {"code": 404, "message": "Instance s1 could not be found."}}


def get_server(scope: Any, **more: Any) -> Any:
    return Call(scope, "compute", "server.get", {"id": "s1"}, **more)


async def refusal(engine: CloudEngine, call: Call) -> CloudError:
    with pytest.raises(CloudError) as caught:
        await engine.call(call)
    return caught.value


# ---------------------------------------------------------------- requests


async def test_inv_290_a_read_is_built_from_its_operation(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(200, SERVER)]
    got = await bench.make().call(get_server(principal))
    sent = bench.sender.sent[0]
    assert (sent.method, sent.url) == ("GET", "http://cloud/compute/v2.1/servers/s1")
    assert sent.headers["OpenStack-API-Version"] == "compute 2.90"
    assert sent.headers["X-Auth-Token"] == "token-1"
    assert (got.value, got.status, got.request_id, got.requests) == (SERVER["server"], 200, "req-1", 1)
    assert got.read_started_at == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("service", "verb", "args", "url"),
    [
        ("network", "port.get", {"id": "x"}, "http://cloud/network/v2.0/ports/x"),
        ("image", "image.get", {"id": "x"}, "http://cloud/image/v2/images/x"),
        ("load-balancer", "pool.get", {"id": "x"}, "http://cloud/load-balancer/v2/lbaas/pools/x"),
        ("block-storage", "volume.get", {"id": "x"}, "http://cloud/volumev3/v3/p1/volumes/x"),
        ("compute", "quota.get", {}, "http://cloud/compute/v2.1/os-quota-sets/p1"),
        ("identity", "user.get", {"id": "x"}, "http://cloud/identity/v3/users/x"),
        ("compute", "server.get", {"id": "a/../b?c"}, "http://cloud/compute/v2.1/servers/a%2F..%2Fb%3Fc"),
    ],
)
async def test_addresses_of_every_service(
    bench: Any, principal: Any, answer: Any, service: Any, verb: Any, args: Any, url: Any
) -> None:
    envelope: dict[str, Any] = {
        "port": {},
        "pool": {},
        "volume": {},
        "quota_set": {},
        "user": {},
        "server": {},
    }
    bench.sender.script = [answer(200, envelope)]
    await bench.make().call(Call(principal, service, verb, args))
    assert bench.sender.sent[0].url == url


@pytest.mark.parametrize("ident", ["", None, ".", ".."])
async def test_an_id_that_is_none_never_leaves(bench: Any, principal: Any, ident: Any) -> None:
    error = await refusal(bench.make(), Call(principal, "compute", "server.delete", {"id": ident}))
    assert error.verdict is Verdict.CONSISTENCY
    assert bench.sender.sent == []


async def test_a_missing_argument_never_leaves(bench: Any, principal: Any) -> None:
    error = await refusal(bench.make(), Call(principal, "compute", "server.get"))
    assert error.verdict is Verdict.CONSISTENCY
    assert bench.sender.sent == []


async def test_query_values_are_spelt_and_none_is_dropped(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(200, {"ports": []})]
    query = {"name": "n", "device_id": None, "admin_state_up": True, "fields": ["id", "name"], "limit": 5}
    await bench.make().call(Call(principal, "network", "port.list", {"query": query}))
    assert bench.sender.sent[0].query == (
        ("name", "n"), ("admin_state_up", "true"), ("fields", "id"), ("fields", "name"), ("limit", "5"),
    )  # fmt: skip


async def test_each_scope_logs_in_as_itself(bench: Any, principal: Any, answer: Any) -> None:
    engine = bench.make()
    for scope in (RegionDomain("r1"), RegionProject("r1"), principal, PrivilegedPrincipal("r1", "i1")):
        bench.sender.script = [answer(200, {"roles": []})]
        await engine.call(Call(scope, "identity", "role.list"))
    assert [(x.user_id, x.project_id, x.domain_id) for x in bench.sender.logins] == [
        ("u1", None, "d1"), ("u1", "rp1", None), ("pu1", "p1", None), ("u1", "p1", None),
    ]  # fmt: skip


async def test_a_body_that_lacks_its_object_is_no_answer_to_a_read_and_unknown_to_a_create(
    bench: Any, principal: Any, answer: Any
) -> None:
    bench.sender.script = [answer(200, {"other": {}}), answer(202, b"<html>"), answer(204)]
    engine = bench.make()
    assert (await refusal(engine, get_server(principal))).verdict is Verdict.CONSISTENCY
    create = Call(principal, "compute", "server.create", {"json": {}})
    assert (await refusal(engine, create)).verdict is Verdict.UNKNOWN
    assert (await engine.call(Call(principal, "compute", "server.delete", {"id": "s1"}))).value is None


async def test_a_redirect_is_never_taken_for_an_answer(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(302, b"", location="http://elsewhere/")]
    assert (await refusal(bench.make(), get_server(principal))).verdict is Verdict.CONSISTENCY


async def test_the_clouds_text_is_kept_for_the_log_only(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(404, GONE)]
    error = await refusal(bench.make(), get_server(principal))
    assert (error.verdict, error.status, error.request_id) == (Verdict.GONE, 404, "req-1")
    assert error.text == "Instance s1 could not be found."
    assert "could not" not in str(error)


# ---------------------------------------------------------------- silence


@pytest.mark.parametrize(
    ("verb", "fault", "expected"),
    [
        ("server.get", Unanswered("cut"), Verdict.UNAVAILABLE),
        ("server.create", Unanswered("cut"), Verdict.UNKNOWN),
        ("server.action", Unanswered("cut"), Verdict.UNKNOWN),
        ("server.create", NotSent(Verdict.UNAVAILABLE, "refused", connecting=True), Verdict.UNAVAILABLE),
    ],
)
async def test_silence_is_unknown_for_writes_alone(
    bench: Any, principal: Any, verb: Any, fault: Any, expected: Any
) -> None:
    bench.sender.script = [fault]
    error = await refusal(bench.make(), Call(principal, "compute", verb, {"id": "s1", "json": {}}))
    assert error.verdict is expected
    assert len(bench.sender.sent) == 1


async def test_a_refusing_guard_keeps_the_bytes_here(bench: Any, principal: Any) -> None:
    call = Call(principal, "compute", "server.create", {"json": {}}, guard=lambda: False)
    assert (await refusal(bench.make(), call)).verdict is Verdict.LEASE_LOST
    assert bench.sender.sent == []


async def test_the_guard_is_asked_after_the_login(bench: Any, principal: Any, answer: Any) -> None:
    """The login takes time in which the lease may be lost."""
    bench.sender.script = [answer(202, SERVER)]
    guarded = Call(
        principal, "compute", "server.create", {"json": {}}, guard=lambda: len(bench.sender.logins) == 1
    )
    await bench.make().call(guarded)
    assert len(bench.sender.sent) == 1


# ---------------------------------------------------------------- tokens


async def test_one_login_serves_many_calls(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(200, SERVER)] * 20
    engine = bench.make()
    await asyncio.gather(*(engine.call(get_server(principal)) for _ in range(20)))
    assert len(bench.sender.logins) == 1


async def test_a_token_about_to_end_is_renewed_before_sending(
    bench: Any, principal: Any, answer: Any
) -> None:
    bench.sender.token_life = 100
    bench.sender.script = [answer(202, SERVER)] * 2
    engine = bench.make(token_margin=60)
    create = Call(principal, "compute", "server.create", {"json": {}})
    await engine.call(create)
    bench.clock.passed += 41
    await engine.call(create)
    assert [request.headers["X-Auth-Token"] for request in bench.sender.sent] == ["token-1", "token-2"]


async def test_a_read_is_replayed_once_after_401(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(401), answer(200, SERVER)]
    got = await bench.make().call(get_server(principal))
    assert got.value["id"] == "s1"
    assert len(bench.sender.logins) == 2


async def test_a_second_401_is_the_answer(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(401), answer(401)]
    assert (await refusal(bench.make(), get_server(principal))).verdict is Verdict.UNAUTHORIZED
    assert len(bench.sender.sent) == 2


@pytest.mark.parametrize("verb", ["server.create", "server.delete", "server.rebuild", "attachment.delete"])
async def test_what_creates_or_destroys_is_never_sent_twice(
    bench: Any, principal: Any, answer: Any, verb: Any
) -> None:
    for status in (401, 429, 503):
        bench.sender.sent.clear()
        bench.sender.script = [answer(status, retry_after="1")]
        args = {"id": "s1", "server": "s1", "volume": "v1", "json": {}}
        await refusal(bench.make(), Call(principal, "compute", verb, args))
        assert len(bench.sender.sent) == 1


async def test_a_401_of_a_create_makes_the_next_call_log_in(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(401), answer(202, SERVER)]
    engine = bench.make()
    create = Call(principal, "compute", "server.create", {"json": {}})
    assert (await refusal(engine, create)).verdict is Verdict.UNAUTHORIZED
    await engine.call(create)
    assert bench.sender.sent[-1].headers["X-Auth-Token"] == "token-2"


async def test_inv_027_a_new_password_is_used_by_the_next_call(
    bench: Any, principal: Any, answer: Any
) -> None:
    bench.sender.script = [answer(200, SERVER)] * 2
    engine = bench.make()
    await engine.call(get_server(principal))
    bench.keyring.put_identity("r1", "i1", {"projectID": "p1", "userID": "pu1", "password": "new"}, 2)
    await engine.call(get_server(principal))
    assert [login.password for login in bench.sender.logins] == ["ppw", "new"]


async def test_a_refused_login_is_not_repeated_at_once(bench: Any, principal: Any, answer: Any) -> None:
    engine = bench.make(refused_login_pause=5)
    bench.sender.login_answers = [answer(401, {"error": {"message": "no"}})]
    for _ in range(10):
        assert (await refusal(engine, get_server(principal))).verdict is Verdict.UNAUTHORIZED
    assert len(bench.sender.logins) == 1
    bench.clock.passed += 6
    bench.sender.script = [answer(200, SERVER)]
    await engine.call(get_server(principal))


async def test_a_refused_login_does_not_hold_back_a_new_credential(
    bench: Any, principal: Any, answer: Any
) -> None:
    engine = bench.make()
    bench.sender.login_answers = [answer(401)]
    await refusal(engine, get_server(principal))
    bench.keyring.put_identity("r1", "i1", {"projectID": "p1", "userID": "pu1", "password": "new"}, 2)
    bench.sender.script = [answer(200, SERVER)]
    await engine.call(get_server(principal))


@pytest.mark.parametrize(
    ("login", "expected"),
    [
        (Unanswered("cut"), Verdict.UNAVAILABLE),
        (503, Verdict.UNAVAILABLE),
        (404, Verdict.UNAVAILABLE),
        (403, Verdict.FORBIDDEN),
        (429, Verdict.THROTTLED),
    ],
)
async def test_a_failing_login_never_makes_a_create_unknown(
    bench: Any, principal: Any, answer: Any, login: Any, expected: Any
) -> None:
    bench.sender.login_answers = [login if isinstance(login, Exception) else answer(login)]
    error = await refusal(bench.make(), Call(principal, "compute", "server.create", {"json": {}}))
    assert error.verdict is expected
    assert bench.sender.sent == []


@pytest.mark.parametrize(
    "changed",
    [
        {"user_id": "other"},
        {"project_id": "other"},
        {"project_domain_id": "other"},
        {
            "catalog": (
                {
                    "type": "compute",
                    "endpoints": [{"interface": "public", "region_id": "two", "url": "http://x"}],
                },
            )
        },
    ],
)
async def test_a_token_of_another_cloud_sends_nothing(bench: Any, principal: Any, changed: Any) -> None:
    bench.sender.changed = changed
    error = await refusal(bench.make(), get_server(principal))
    assert error.verdict is Verdict.WRONG_CLOUD
    assert bench.sender.sent == []


async def test_a_domain_token_of_another_domain_sends_nothing(bench: Any) -> None:
    bench.sender.changed = {"domain_id": "other"}
    error = await refusal(bench.make(), Call(RegionDomain("r1"), "identity", "project.list"))
    assert error.verdict is Verdict.WRONG_CLOUD
    assert bench.sender.sent == []


async def test_inv_029_a_missing_secret_key_is_named(bench: Any) -> None:
    bench.keyring.put_region_secret("r1", {"domain-id": "d1", "user-id": "u1"}, 2)
    error = await refusal(bench.make(), Call(RegionDomain("r1"), "identity", "project.list"))
    assert error.verdict is Verdict.KEY
    assert "password, project-id" in error.text


async def test_an_unknown_region_has_no_key(bench: Any) -> None:
    error = await refusal(bench.make(), Call(RegionDomain("r9"), "identity", "project.list"))
    assert error.verdict is Verdict.KEY


async def test_an_identity_without_user_is_a_consistency_error(
    bench: Any, principal: Any, answer: Any
) -> None:
    bench.keyring.put_identity("r1", "i1", {"projectID": "p1"}, 2)
    engine = bench.make()
    assert (await refusal(engine, get_server(principal))).verdict is Verdict.CONSISTENCY
    assert (await refusal(engine, get_server(Principal("r1", "i2")))).verdict is Verdict.CONSISTENCY
    bench.sender.script = [answer(200, {"quota_set": {}})]
    await engine.call(Call(PrivilegedPrincipal("r1", "i1"), "compute", "quota.get"))


async def test_a_service_that_the_catalog_lacks_is_unavailable(bench: Any, principal: Any) -> None:
    bench.sender.changed = {"catalog": ()}
    assert (await refusal(bench.make(), get_server(principal))).verdict is Verdict.UNAVAILABLE


async def test_several_regions_without_a_name_are_refused_with_the_remedy(bench: Any, principal: Any) -> None:
    bench.keyring.put_endpoint("r1", "http://cloud/identity", None)
    bench.sender.changed = {
        "catalog": (
            {
                "type": "compute",
                "endpoints": [
                    {"interface": "public", "region_id": name, "url": "http://x"} for name in ("one", "two")
                ],
            },
        )
    }
    error = await refusal(bench.make(), get_server(principal))
    assert error.verdict is Verdict.CONSISTENCY
    assert "regionName" in error.text


# ---------------------------------------------------------------- limits


async def test_a_throttled_read_waits_as_told_and_comes_back(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(429, retry_after="7"), answer(200, SERVER)]
    await bench.make().call(get_server(principal))
    assert 7.0 <= bench.clock.passed <= 7.7


async def test_a_date_is_a_pause_too(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(429, retry_after="Thu, 01 Jan 2026 00:00:04 GMT"), answer(200, SERVER)]
    await bench.make().call(get_server(principal))
    assert 4.0 <= bench.clock.passed <= 4.4


async def test_429_without_a_time_pauses_all_the_same(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(429), answer(200, SERVER)]
    await bench.make(throttle_default=2).call(get_server(principal))
    assert bench.clock.passed >= 2.0


async def test_a_long_pause_ends_the_call_and_holds_the_region(
    bench: Any, principal: Any, answer: Any
) -> None:
    bench.sender.script = [answer(429, retry_after="300")]
    engine = bench.make()
    error = await refusal(engine, get_server(principal))
    assert (error.verdict, error.retry_after) == (Verdict.THROTTLED, 300.0)
    later = await refusal(engine, get_server(principal))
    assert later.verdict is Verdict.THROTTLED
    assert later.retry_after is not None
    assert later.retry_after >= 300.0
    assert len(bench.sender.sent) == 1


async def test_one_regions_pause_is_not_anothers(bench: Any, principal: Any, answer: Any) -> None:
    bench.keyring.put_endpoint("r2", "http://cloud2/identity", "one")
    bench.keyring.put_region_secret(
        "r2", {"domain-id": "d1", "user-id": "u1", "password": "x", "project-id": "rp2"}, 1
    )
    bench.sender.script = [answer(429, retry_after="300"), answer(200, {"flavors": []})]
    engine = bench.make()
    await refusal(engine, get_server(principal))
    await engine.call(Call(RegionProject("r2"), "compute", "flavor.detail"))


async def test_a_throttled_write_is_the_callers_to_repeat(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(429, retry_after="1")]
    error = await refusal(bench.make(), Call(principal, "compute", "quota.put", {"json": {}}))
    assert (error.verdict, error.retry_after) == (Verdict.THROTTLED, 1.0)
    assert len(bench.sender.sent) == 1


async def test_throttled_for_ever_ends(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(429, retry_after="1")] * 50
    assert (await refusal(bench.make(throttle_repeats=3), get_server(principal))).verdict is Verdict.THROTTLED
    assert len(bench.sender.sent) == 4


async def test_the_circuit_opens_after_silence_and_one_probe_closes_it(
    bench: Any, principal: Any, answer: Any
) -> None:
    engine = bench.make(circuit_failures=3, circuit_open=10)
    bench.sender.script = [Unanswered("cut")] * 3
    for _ in range(3):
        await refusal(engine, get_server(principal))
    shut = await refusal(engine, get_server(principal))
    assert (shut.verdict, len(bench.sender.sent)) == (Verdict.UNAVAILABLE, 3)
    assert engine.is_shut("r1")
    assert not engine.is_shut("r2")
    bench.clock.passed += 11
    bench.sender.script = [answer(200, SERVER)] * 5
    results = await asyncio.gather(
        *(engine.call(get_server(principal)) for _ in range(5)), return_exceptions=True
    )
    assert sum(isinstance(result, CloudError) for result in results) == 4
    await engine.call(get_server(principal))
    assert not engine.is_shut("r1")


async def test_each_opening_and_each_closing_of_a_circuit_is_told_once(
    bench: Any, principal: Any, answer: Any
) -> None:
    told: list[tuple[str, bool]] = []
    engine = bench.make(
        circuit_failures=2, circuit_open=10, on_circuit=[lambda region, shut: told.append((region, shut))]
    )
    bench.sender.script = [Unanswered("cut")] * 3
    errors = [await refusal(engine, get_server(principal)) for _ in range(3)]
    assert told == [("r1", True)]
    bench.clock.passed += 11
    errors.append(await refusal(engine, get_server(principal)))
    assert told == [("r1", True)], "a probe that fails tells nothing new"
    assert all(error.silent for error in errors)
    bench.clock.passed += 11
    bench.sender.script = [answer(503), answer(200, SERVER)]
    assert not (await refusal(engine, get_server(principal))).silent
    await engine.call(get_server(principal))
    assert told == [("r1", True), ("r1", False)]


async def test_who_finds_a_probe_under_way_does_not_ask_again_at_once(
    bench: Any, principal: Any, answer: Any
) -> None:
    """The probe's answer may take as long as a request may: nobody spins until then."""
    engine = bench.make(circuit_failures=1, circuit_open=10)
    bench.sender.script = [Unanswered("cut")]
    await refusal(engine, get_server(principal))
    bench.clock.passed += 11
    bench.sender.script = [answer(200, SERVER)]
    results = await asyncio.gather(
        *(engine.call(get_server(principal)) for _ in range(3)), return_exceptions=True
    )
    pauses = [result.retry_after for result in results if isinstance(result, CloudError)]
    assert pauses == [1.0, 1.0]


async def test_a_failing_probe_rests_again(bench: Any, principal: Any) -> None:
    engine = bench.make(circuit_failures=1, circuit_open=10)
    bench.sender.script = [Unanswered("cut")] * 2
    await refusal(engine, get_server(principal))
    bench.clock.passed += 10
    await refusal(engine, get_server(principal))
    await refusal(engine, get_server(principal))
    assert len(bench.sender.sent) == 2


async def test_an_answered_error_is_no_silence(bench: Any, principal: Any, answer: Any) -> None:
    engine = bench.make(circuit_failures=2)
    bench.sender.script = [answer(503)] * 6
    for _ in range(6):
        await refusal(engine, get_server(principal))
    assert not engine.is_shut("r1")


async def test_a_call_out_of_time_sends_nothing(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [
        answer(200, {"servers": [{"id": "a"}], "servers_links": [{"rel": "next", "href": "?marker=a"}]})
    ]

    def slowly(request: Any) -> Any:
        bench.clock.passed += 30
        return answer(
            200,
            {"servers": [], "servers_links": [{"rel": "next", "href": f"?marker={len(bench.sender.sent)}"}]},
        )

    bench.sender.script = [slowly] * 10
    error = await refusal(bench.make(), Call(principal, "compute", "server.detail", deadline=50))
    assert error.verdict is Verdict.UNAVAILABLE
    assert len(bench.sender.sent) == 2


# ---------------------------------------------------------------- the listener


async def test_every_request_is_told_without_ids(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(404, GONE), Unanswered("cut")]
    engine = bench.make()
    await refusal(engine, get_server(principal))
    await refusal(engine, Call(principal, "compute", "server.create", {"json": {}}))
    assert [(n.service, n.template, n.status, n.verdict) for n in bench.notes] == [
        ("identity", "/auth/tokens", 201, None),
        ("compute", "/servers/{id}", 404, Verdict.GONE),
        ("compute", "/servers", 0, Verdict.UNKNOWN),
    ]
    assert {(n.scope, n.region) for n in bench.notes} == {("principal", "r1")}


async def test_the_clouds_clock_is_compared(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.script = [answer(200, SERVER, date="Thu, 01 Jan 2026 00:02:00 GMT")]
    engine = bench.make()
    await engine.call(get_server(principal))
    assert engine.skews == {"r1": 120.0}


async def test_a_token_tells_the_clouds_clock(bench: Any, principal: Any, answer: Any) -> None:
    bench.sender.changed = {"issued_at": datetime(2026, 1, 1, 0, 0, 9, tzinfo=UTC)}
    bench.sender.script = [answer(200, SERVER)]
    engine = bench.make()
    await engine.call(get_server(principal))
    assert engine.skews == {"r1": 9.0}


async def test_closing_closes_the_sender(bench: Any) -> None:
    await bench.make().close()
    assert bench.sender.closed


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize("version", ["2.93", "2.100", "2.999"])
def test_inv_291_a_microversion_above_2_92_is_refused(version: Any) -> None:
    with pytest.raises(ValueError, match=r"set 2\.92 or lower"):
        CloudSettings(nova_microversion=version)


@pytest.mark.parametrize("version", ["2.92", "2.90"])
def test_inv_291_up_to_2_92_is_taken(version: Any) -> None:
    assert CloudSettings(nova_microversion=version).nova_microversion == version


@pytest.mark.parametrize(
    "settings",
    [{"nova_microversion": "latest"}, {"threads_per_region": 0}, {"page_limit": 0}, {"call_deadline": 0}],
)
def test_settings_that_cannot_be_are_refused(settings: Any) -> None:
    with pytest.raises(ValueError):
        CloudSettings(**settings)


# ---------------------------------------------------------------- bounds


async def test_nobody_waits_longer_than_its_own_deadline_for_anothers_login(
    bench: Any, principal: Any, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = asyncio.Event()
    plain = bench.sender.login

    async def stuck(login: Any, deadline: float) -> Any:
        await release.wait()
        return await plain(login, deadline)

    monkeypatch.setattr(bench.sender, "login", stuck)
    engine = bench.make()
    bench.sender.script = [answer(200, SERVER)]
    patient = asyncio.create_task(engine.call(get_server(principal)))
    await asyncio.sleep(0)
    hasty = await refusal(engine, get_server(principal, deadline=0.05))
    assert hasty.verdict is Verdict.UNAVAILABLE
    release.set()
    assert (await patient).value["id"] == "s1"
    assert len(bench.sender.logins) == 1


async def test_scopes_that_nobody_uses_are_forgotten(
    bench: Any, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadstead.cloud.tokens._PRUNE_ABOVE", 3)
    engine = bench.make()
    for n in range(20):
        bench.keyring.put_identity("r1", f"i{n}", {"projectID": f"p{n}", "userID": "u", "password": "x"}, 1)
        bench.sender.script = [answer(200, SERVER)]
        await engine.call(get_server(Principal("r1", f"i{n}")))
        bench.clock.passed += 3600
    assert len(engine._tokens._held) <= 5
    assert len(engine._tokens._renewing) <= 5

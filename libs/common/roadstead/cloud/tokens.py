"""Tokens by scope: made fresh before they are needed, by one caller while the others wait, and proved to be ours.

A login that was refused is not repeated at once: it is a state of that identity, and a credential that changes ends it.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from roadstead.clock import Clock
from roadstead.cloud.credentials import Keyring
from roadstead.cloud.journal import Journal
from roadstead.cloud.limits import Limits, retry_after
from roadstead.cloud.logins import foreign_trait, login_of, region_credential
from roadstead.cloud.operations import Operation
from roadstead.cloud.port import Scope, Verdict
from roadstead.cloud.sending import Access, Login, NotSent, RawAnswer, Sender, Unanswered
from roadstead.cloud.settings import CloudSettings
from roadstead.cloud.verdicts import error_of, verdict

LOGIN = Operation("identity", "token.create", "POST", "/auth/tokens")
_PRUNE_ABOVE = 4096


@dataclass(frozen=True)
class Held:
    """A token with the login that it came from."""

    login: Login
    access: Access


@dataclass(frozen=True)
class _Refusal:
    login: Login
    verdict: Verdict
    text: str
    until: float


class Tokens:
    """The tokens in use.  Raises NotSent alone: whatever becomes of a login, the call behind it has not left."""

    def __init__(
        self,
        sender: Sender,
        keyring: Keyring,
        clock: Clock,
        settings: CloudSettings,
        journal: Journal,
        limits: Limits,
    ) -> None:
        self._sender = sender
        self._keyring = keyring
        self._clock = clock
        self._settings = settings
        self._journal = journal
        self._limits = limits
        self._held: dict[Scope, Held] = {}
        self._refused: dict[Scope, _Refusal] = {}
        self._renewing: dict[Scope, asyncio.Lock] = {}

    async def get(self, scope: Scope, ends: float) -> Held:
        """A token with enough life left, by `ends` on the monotonic clock."""
        held = self._fresh(scope, login_of(self._keyring, scope))
        if held is not None:
            return held
        renewing = self._renewing.setdefault(scope, asyncio.Lock())
        if renewing.locked():
            await self._wait_for(renewing, ends)
        async with renewing:
            login = login_of(self._keyring, scope)
            return self._fresh(scope, login) or await self._log_in(scope, login, ends)

    def drop(self, scope: Scope, held: Held) -> None:
        """The cloud refused this token; a newer one, which another caller may have got meanwhile, stays."""
        if self._held.get(scope) is held:
            del self._held[scope]

    async def _wait_for(self, renewing: asyncio.Lock, ends: float) -> None:
        """Wait for another caller's login, no longer than this call may take."""
        try:
            async with asyncio.timeout(self._left(ends)), renewing:
                return
        except TimeoutError:
            raise NotSent(Verdict.UNAVAILABLE, "another call's login took too long") from None

    def _left(self, ends: float) -> float:
        left = ends - self._clock.monotonic()
        if left <= 0:
            raise NotSent(Verdict.UNAVAILABLE, "the call's time was over before it could be sent")
        return left

    def _fresh(self, scope: Scope, login: Login) -> Held | None:
        held = self._held.get(scope)
        if held is None or held.login != login:
            return None
        margin = timedelta(seconds=self._settings.token_margin)
        return held if held.access.expires_at - self._clock.now() > margin else None

    async def _log_in(self, scope: Scope, login: Login, ends: float) -> Held:
        refused = self._refused.get(scope)
        if refused is not None and refused.login == login and self._clock.monotonic() < refused.until:
            raise NotSent(refused.verdict, refused.text)
        self._held.pop(scope, None)
        self._prune()
        try:
            answer = await self._journal.watch(LOGIN, scope, self._sender.login(login, self._left(ends)))
        except Unanswered as silence:
            raise NotSent(
                Verdict.UNAVAILABLE, f"no answer to the login: {silence}", connecting=True
            ) from None
        if isinstance(answer, RawAnswer):
            raise self._refusal(scope, login, answer)
        foreign = foreign_trait(scope, login, region_credential(self._keyring, scope.region), answer)
        if foreign is not None:
            self._remember(scope, login, Verdict.WRONG_CLOUD, foreign)
            raise NotSent(Verdict.WRONG_CLOUD, foreign)
        self._refused.pop(scope, None)
        held = self._held[scope] = Held(login, answer)
        return held

    def _refusal(self, scope: Scope, login: Login, raw: RawAnswer) -> NotSent:
        kind, text = error_of(raw.body)
        text = f"the login was refused ({raw.status}): {text[:500]}"
        pause = retry_after(raw.headers, self._clock.now())
        means = verdict(LOGIN, raw.status, kind, text, pause)
        if means is Verdict.THROTTLED:
            self._limits.pace(scope.region).hold(pause or self._settings.throttle_default)
        elif means in (Verdict.UNAUTHORIZED, Verdict.FORBIDDEN):
            self._remember(scope, login, means, text)
        else:
            means = Verdict.UNAVAILABLE
        return NotSent(means, text)

    def _remember(self, scope: Scope, login: Login, means: Verdict, text: str) -> None:
        until = self._clock.monotonic() + self._settings.refused_login_pause
        self._refused[scope] = _Refusal(login, means, text, until)

    def _prune(self) -> None:
        """Forget scopes that nobody has asked for since their token ended."""
        if len(self._held) + len(self._refused) <= _PRUNE_ABOVE:
            return
        now = self._clock.now()
        self._held = {scope: held for scope, held in self._held.items() if held.access.expires_at > now}
        self._refused = {s: each for s, each in self._refused.items() if each.until > self._clock.monotonic()}
        self._renewing = {s: lock for s, lock in self._renewing.items() if s in self._held or lock.locked()}

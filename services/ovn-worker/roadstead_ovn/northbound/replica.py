"""A whole copy of some tables of an OVSDB server, kept by the library and driven by the event loop.

While the copy is complete everything runs in the loop: a change is seen in the moment in which its bytes arrive, and no lock is needed.
While it is being fetched, which takes long when the database is large, the library runs in a thread, and nobody reads the copy.
"""

import asyncio
import ipaddress
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import ovs.db.error
import ovs.db.idl
import ovs.db.types
import ovs.jsonrpc
import ovs.poller
import ovs.timeval

from roadstead_ovn.northbound.port import Conflict, Rejected, Unknown, Unready
from roadstead_ovn.northbound.wire import Bounds, open_session

log = logging.getLogger(__name__)

Rows = Iterable[tuple[str, str, Mapping[str, Any]]]  # table, UUID, columns
Changed = Callable[[str, str, Mapping[str, Any] | None], None]
_IDLE = 5.0  # seconds between looks at the connection when nothing asks for one
_LOOK_UP_AGAIN = 60.0


class Replica:
    """One database.

    changed: told of each row as it comes, changes and goes, while the copy is complete.  settled: at the end of each batch of changes.
    complete: given all rows when the copy has become complete, in a thread; what it returns is called in the loop before anything else.
    lost: the copy is complete no longer.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        remotes: Sequence[str],
        *,
        leader_only: bool,
        bounds: Bounds,
        changed: Changed,
        settled: Callable[[], None],
        complete: Callable[[Rows], Callable[[], None]],
        lost: Callable[[], None],
    ) -> None:
        self._schema, self._remotes, self._leader_only, self._bounds = schema, remotes, leader_only, bounds
        self._changed, self._settled, self._complete, self._lost = changed, settled, complete, lost
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ovsdb")
        self._pending: dict[Any, asyncio.Future[list[Any]]] = {}
        self._kick = asyncio.Event()
        self._idl: Any = None
        self.is_complete = False
        self._has_heard = False  # whether a server was there since the copy was last complete
        self._refusal = ""

    def fault(self) -> str | None:
        """Why the copy is not complete; None when it is."""
        if self.is_complete:
            return None
        where, name = ", ".join(self._remotes), self._schema["name"]
        if not self._has_heard:
            return f"{where}: no connection to {name} can be made"
        why = self._refusal or "another database, no leader, or the copy is still being fetched"
        return f"{where}: connected, and no copy of {name} is given: {why}"

    async def follow(self) -> None:
        """Connects, and keeps the copy until it is cancelled."""
        try:
            while True:
                try:
                    await self._follow_once()
                except Exception:
                    log.exception("the copy of %s is made anew after a fault", self._schema["name"])
                    await asyncio.sleep(self._bounds.longest_retry)
        finally:
            self._thread.shutdown(wait=True)

    async def _follow_once(self) -> None:
        """Until no connection could be made for long: then host names are looked up again."""
        loop = asyncio.get_running_loop()
        idl = _Idl(self._schema, await resolved(self._remotes), self._leader_only, self._bounds)
        self._idl, idl.changed = idl, self._notified
        connected_at = loop.time()
        try:
            while loop.time() - connected_at < _LOOK_UP_AGAIN:
                await self._step()
                if idl.is_connected():
                    connected_at = loop.time()
                    self._has_heard = True
                await self._pause()
        finally:
            self._give_up("the connection was closed")
            idl.close()

    async def _step(self) -> None:
        idl, loop = self._idl, asyncio.get_running_loop()
        try:
            if self.is_complete:
                idl.run()
            else:
                await loop.run_in_executor(self._thread, idl.run)
        except (OSError, ValueError) as error:  # certificates that cannot be read
            log.warning("the connection to the database cannot be made: %s", error)
            await asyncio.sleep(self._bounds.longest_retry)
        if self.is_complete:
            self._settled()
        if idl.damaged:
            log.error(
                "an update of the database could not be read (%s); the copy is fetched again", idl.damaged
            )
            idl.refetch()
        is_whole = idl.is_whole()
        if self.is_complete and not is_whole:
            self._give_up(f"the connection to {idl.session_name()} was lost")
        elif is_whole and not self.is_complete:
            self._idl.changed = None
            adopt = await loop.run_in_executor(self._thread, self._complete, self._rows())
            self._idl.changed = self._notified
            self.is_complete = True
            self._has_heard, self._refusal = False, ""
            adopt()
        elif not is_whole and idl.refusal():
            log.error("%s does not give the tables that are needed: %s", idl.session_name(), idl.refusal())
            self._refusal = idl.refusal()
            idl.clear_refusal()

    def _give_up(self, reason: str) -> None:
        pending, self._pending = self._pending, {}
        for future in pending.values():
            if not future.done():
                future.set_exception(Unknown(f"{reason} before the answer came"))
        if self.is_complete:
            self.is_complete = False
            self._lost()

    def _notified(self, table: str, handle: str, columns: Mapping[str, Any] | None) -> None:
        if self.is_complete:
            self._changed(table, handle, columns)

    def _rows(self) -> Rows:
        for name, table in self._idl.tables.items():
            for row in table.rows.values():
                yield name, str(row.uuid), plain(row)

    async def _pause(self) -> None:
        """Until the library wants to run again: bytes to read, room to write, a timer, or something to send."""
        waits = _Waits()
        self._idl.wait(waits)
        loop = asyncio.get_running_loop()
        for descriptor, events in waits.descriptors.items():
            if events & ovs.poller.POLLIN:
                loop.add_reader(descriptor, self._kick.set)
            if events & ovs.poller.POLLOUT:
                loop.add_writer(descriptor, self._kick.set)
        try:
            if waits.milliseconds == 0:
                await asyncio.sleep(0)
            else:
                seconds = _IDLE if waits.milliseconds is None else waits.milliseconds / 1000
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._kick.wait()
        finally:
            # Before the library may close them: the numbers are used again.
            for descriptor, events in waits.descriptors.items():
                if events & ovs.poller.POLLIN:
                    loop.remove_reader(descriptor)
                if events & ovs.poller.POLLOUT:
                    loop.remove_writer(descriptor)
        self._kick.clear()

    async def transact(self, operations: Sequence[Any], then: Callable[[], None]) -> list[Any]:
        """Results of the operations; the copy has what they changed.  then: called in the moment of success.

        Conflict, Rejected, Unready, Unknown.
        """
        if not self.is_complete:
            raise Unready("the local copy of the database is not complete")
        message = ovs.jsonrpc.Message.create_request("transact", [self._schema["name"], *operations])
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._pending[message.id] = future
        self._idl.send(message, _Reply(future, then))
        self._kick.set()
        try:
            async with asyncio.timeout(self._bounds.reply):
                return await future
        except TimeoutError:
            raise Unknown(f"no answer within {self._bounds.reply:g} s") from None
        finally:
            self._pending.pop(message.id, None)


class _Reply:
    """What the library calls with the answer to a transaction; it sets `_status` when it gives it up."""

    def __init__(self, future: asyncio.Future[list[Any]], then: Callable[[], None]) -> None:
        self._future, self._then = future, then
        self._status = ""

    def _process_reply(self, message: Any) -> None:
        if self._future.done():
            return
        if message.type == ovs.jsonrpc.Message.T_ERROR:
            self._future.set_exception(Rejected(str(message.error)))
            return
        try:
            check(message.result)
        except (Conflict, Rejected, Unknown) as error:
            self._future.set_exception(error)
            return
        self._then()
        self._future.set_result(message.result)


def check(results: Sequence[Mapping[str, Any] | None]) -> None:
    """Conflict, Rejected or Unknown for the first operation that failed; further ones were not carried out."""
    for result in results:
        error = result.get("error") if result else None
        if error in (
            "timed out",
            "duplicate uuid",
        ):  # a verification that fails; a row that somebody has made meanwhile
            raise Conflict("what was read is out of date")
        if error in ("not owner", "not leader", "I/O error", "cluster error", "aborted"):
            raise Unknown(f"the server gave up: {error}")
        if error and result:
            raise Rejected(f"{error}: {result.get('details', '')}")


class _Idl(ovs.db.idl.Idl):  # type: ignore[misc]  # the library has no types
    """The library's copy, with our session beneath and plain values above."""

    changed: Changed | None = None
    damaged = ""

    def __init__(
        self, schema: Mapping[str, Any], remotes: Sequence[str], leader_only: bool, bounds: Bounds
    ) -> None:
        helper = ovs.db.idl.SchemaHelper(schema_json=schema)
        helper.register_all()
        self._shown: dict[str, Mapping[str, Any]] = {}  # rows as they were last told, by UUID
        super().__init__(remotes[0], helper, leader_only=leader_only)
        self._session = open_session(remotes, bounds)

    def is_whole(self) -> bool:
        session = self._session
        return bool(
            self.state == self.IDL_S_MONITORING
            and session.is_connected()
            and session.get_seqno() == self._last_seqno
        )

    def is_connected(self) -> bool:
        return bool(self._session.is_connected())

    def refusal(self) -> str:
        return str(self._session.refused)

    def clear_refusal(self) -> None:
        self._session.refused = ""

    def refetch(self) -> None:
        self.damaged = ""
        self.last_id = "00000000-0000-0000-0000-000000000000"
        self.force_reconnect()

    def send(self, message: Any, reply: _Reply) -> None:
        self._outstanding_txns[message.id] = reply
        self._session.send(message)

    def notify(self, event: str, row: Any, updates: Any = None) -> None:
        if self.changed is None:
            self._shown.clear()
            return
        handle = str(row.uuid)
        before = self._shown.pop(handle, None)
        if event == ovs.db.idl.ROW_DELETE:
            self.changed(row._table.name, handle, None)
            return
        known = before if event == ovs.db.idl.ROW_UPDATE and updates is not None else None
        columns = plain(row) if known is None else changed_plain(row, updates, known)
        self._shown[handle] = columns
        self.changed(row._table.name, handle, columns)

    def _Idl__parse_update(self, update: Any, version: str, tables: Any = None) -> None:
        # The library writes a line and goes on with a copy that has missed something.
        try:
            self._Idl__do_parse_update(update, version, tables or self.tables)
        except ovs.db.error.Error as error:
            self.damaged = str(error)


class _Waits:
    """What the library's `wait` functions ask for."""

    def __init__(self) -> None:
        self.descriptors: dict[int, int] = {}
        self.milliseconds: int | None = None

    def fd_wait(self, fd: Any, events: int) -> None:
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        if descriptor < 0:
            self.immediate_wake()
        else:
            self.descriptors[descriptor] = self.descriptors.get(descriptor, 0) | events

    def timer_wait(self, msec: int) -> None:
        msec = max(0, msec)
        self.milliseconds = msec if self.milliseconds is None else min(msec, self.milliseconds)

    def timer_wait_until(self, msec: int) -> None:
        self.timer_wait(msec - ovs.timeval.msec())

    def immediate_wake(self) -> None:
        self.milliseconds = 0


def plain(row: Any) -> dict[str, Any]:
    """The columns of a row of the library: dicts, frozensets, single values or None, UUIDs as text."""
    return {name: _plain_value(row._data[name]) for name in row._table.columns}


def changed_plain(row: Any, old: Any, before: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a row that was `before`, where `old` holds what the changed columns were.

    A switch that carries a thousand load balancers names all of them whenever one comes or goes: only the difference is spelled.
    """
    found = dict(before)
    for name, was in old._data.items():
        datum = row._data[name]
        if datum.type.value is None and datum.type.n_max > 1:
            # Sets of dicts take over the hashes that the dicts have; the library's own values are slow to hash.
            difference = set(datum.values) ^ set(was.values)
            found[name] = before[name] ^ {_text(datum, atom) for atom in difference}
        else:
            found[name] = _plain_value(datum)
    return found


def _plain_value(datum: Any) -> Any:
    kind = datum.type
    if kind.value is not None:
        return {key.value: value.value for key, value in datum.values.items()}
    values = [_text(datum, atom) for atom in datum.values]
    if kind.n_max > 1:
        return frozenset(values)
    return values[0] if values else None


def _text(datum: Any, atom: Any) -> Any:
    return str(atom.value) if datum.type.key.type is ovs.db.types.UuidType else atom.value


async def resolved(remotes: Sequence[str]) -> list[str]:
    """Remotes with addresses in place of host names, which the library cannot look up; every address of a name is one remote."""
    found: list[str] = []
    for remote in remotes:
        method, _, rest = remote.partition(":")
        host, _, port = rest.rpartition(":")
        if method == "unix" or _is_address(host):
            found.append(remote)
            continue
        try:
            answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=1)
        except OSError as error:
            log.warning("the host of %s cannot be looked up: %s", remote, error)
            continue
        for family, *_, address in answers:
            text = f"[{address[0]}]" if family.name == "AF_INET6" else address[0]
            found.append(f"{method}:{text}:{port}")
    return list(dict.fromkeys(found)) or list(remotes)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True

"""Machines on a private OVN: network namespaces behind switch ports, servers in them that say their name, and clients with deadlines.

A machine stands for a switch port that is already in the Northbound database.  Its interface is a port of Open vSwitch itself (userspace
data path), so no kernel module is needed.
"""

import json
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from roadstead.testing.private_ovn import PrivateOvn

PEER = Path(__file__).with_name("peer.py")
MTU = 1400
LIMIT = 30.0  # seconds that a command on the way may take


@dataclass(frozen=True)
class Address:
    """An address with its subnet's prefix length, and the router's address there (empty: none)."""

    address: str
    length: int
    gateway: str = ""

    @property
    def is_v6(self) -> bool:
        return ":" in self.address


class Machine:
    """One network namespace; made by `Machines.add`."""

    def __init__(
        self, name: str, space: str, device: str, port_id: str, addresses: tuple[Address, ...]
    ) -> None:
        self.name = name
        self.space = space
        self.device = device
        self.port_id = port_id
        self.addresses = addresses
        self._servers: dict[tuple[str, int], subprocess.Popen[str]] = {}

    @property
    def address(self) -> str:
        """Its first IPv4 address, else its first one."""
        return next((a.address for a in self.addresses if not a.is_v6), self.addresses[0].address)

    @property
    def address6(self) -> str:
        return next(a.address for a in self.addresses if a.is_v6)

    # ------------------------------------------------------------ servers

    def serve(self, port: int, kind: str = "tcp") -> None:
        """Answer on that port, on all addresses of both families, with this machine's name."""
        process = self._start("serve", kind, str(port), self.name)
        _line_of(process, f"{self.name} {kind}:{port}")
        self._servers[kind, port] = process

    def stop_serving(self, port: int, kind: str = "tcp") -> None:
        """Kill the server; a connection to that port is refused from now on."""
        _end(self._servers.pop((kind, port)))

    # ------------------------------------------------------------ clients

    def ask(
        self, host: str, port: int, times: int = 20, kind: str = "tcp", timeout: float = 1.5
    ) -> Counter[str]:
        """Connect that often, one after the other: who answered, or the error's name, and how often."""
        process = self._start("ask", kind, host, str(port), str(times), str(timeout))
        try:
            out, _ = process.communicate(timeout=times * (timeout + 1) + LIMIT)
        finally:
            _end(process)
        return Counter(json.loads(out))

    def connect(self, host: str, port: int, timeout: float = 5.0) -> "Connection":
        """A TCP connection that stays open until it is closed."""
        process = self._start("keep", host, str(port), str(timeout))
        return Connection(process, _line_of(process, f"{self.name} -> {host}:{port}"))

    def end(self) -> None:
        """Kill everything that runs in it."""
        for process in self._servers.values():
            _end(process)
        self._servers.clear()

    def _start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["ip", "netns", "exec", self.space, sys.executable, "-S", str(PEER), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


class Connection:
    """A kept TCP connection through whatever is between."""

    def __init__(self, process: subprocess.Popen[str], greeting: str) -> None:
        self._process = process
        self.server = greeting

    def echoes(self) -> bool:
        """Send a word, and see whether the same server answers within its time."""
        assert self._process.stdin is not None
        self._process.stdin.write("again\n")
        self._process.stdin.flush()
        return _line_of(self._process, "the kept connection") == self.server

    def close(self) -> None:
        _end(self._process)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Machines:
    """The machines of one OVN; `clean` takes all of them away."""

    def __init__(self, ovn: PrivateOvn) -> None:
        self.ovn = ovn
        self._machines: list[Machine] = []

    def add(self, name: str, port_id: str, mac: str, addresses: Iterable[Address]) -> Machine:
        """A machine for a switch port.  Packets pass once `PrivateOvn.settled` has returned."""
        number = len(self._machines)
        device, space = f"vm{number}", f"{self.ovn.namespace}-{number}"
        made = Machine(name, space, device, port_id, tuple(addresses))
        _run(
            "ovs-vsctl", f"--db={self.ovn.switch}", f"--timeout={LIMIT:.0f}", "add-port", "br-int", device,
            "--", "set", "Interface", device, "type=internal", f"external_ids:iface-id={port_id}",
        )  # fmt: skip
        _run("ip", "netns", "add", space)
        self._machines.append(made)
        _run("ip", "-n", self.ovn.namespace, "link", "set", device, "netns", space)
        lines = ["link set lo up", f"link set {device} address {mac} mtu {MTU} up"]
        for item in made.addresses:
            nodad = " nodad" if item.is_v6 else ""
            lines.append(f"addr add {item.address}/{item.length} dev {device}{nodad}")
        # Routes come after all addresses: a gateway must be reachable when it is named.
        lines += [
            f"{'-6 ' if item.is_v6 else ''}route add default via {item.gateway}"
            for item in made.addresses
            if item.gateway
        ]
        for line in lines:
            _run("ip", "-n", space, *line.split())
        return made

    def clean(self) -> None:
        for machine in self._machines:
            machine.end()
            with suppress(subprocess.SubprocessError):
                _run("ip", "netns", "del", machine.space)
        self._machines.clear()


def within(seconds: float, holds: Callable[[], bool], pause: float = 0.05) -> float | None:
    """Seconds until it holds; None when it never does in that time."""
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        if holds():
            return time.monotonic() - start
        time.sleep(pause)
    return None


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")


def _line_of(process: subprocess.Popen[str], what: str) -> str:
    """The next line that it prints.  RuntimeError when none comes."""
    out: IO[str] | None = process.stdout
    assert out is not None
    ready, _, _ = select.select([out], [], [], LIMIT)
    line = out.readline().strip() if ready else ""
    if not line:
        _end(process)
        raise RuntimeError(f"{what} said nothing")
    return line


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()

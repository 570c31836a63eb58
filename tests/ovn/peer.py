"""What runs inside a machine: a server that says its name, or a client.  Standard library alone, started with -S for speed.

peer.py serve tcp|udp PORT NAME
peer.py ask tcp|udp HOST PORT TIMES TIMEOUT     prints how often who answered, as JSON
peer.py keep HOST PORT TIMEOUT                  prints who answered; then once more for every line that it reads
"""

import collections
import json
import socket
import sys
import threading
from collections.abc import Callable


def _bound(kind: int, family: socket.AddressFamily, port: int) -> socket.socket:
    made = socket.socket(family, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.bind(("", port))
    return made


def _talk(connection: socket.socket, name: bytes) -> None:
    with connection:
        try:
            connection.sendall(name)
            while connection.recv(64):
                connection.sendall(name)
        except OSError:
            return  # the client went away


def _accept(listening: socket.socket, name: bytes) -> None:
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=_talk, args=(connection, name), daemon=True).start()


def _answer(bound: socket.socket, name: bytes) -> None:
    while True:
        _, sender = bound.recvfrom(2048)
        bound.sendto(name, sender)


def serve(kind: str, port: str, name: str) -> None:
    families = (socket.AF_INET, socket.AF_INET6)
    for family in families:
        if kind == "tcp":
            listening = _bound(socket.SOCK_STREAM, family, int(port))
            listening.listen(256)
            threading.Thread(target=_accept, args=(listening, name.encode()), daemon=True).start()
        else:
            bound = _bound(socket.SOCK_DGRAM, family, int(port))
            threading.Thread(target=_answer, args=(bound, name.encode()), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


def _once(kind: str, host: str, port: int, timeout: float) -> str:
    try:
        if kind == "tcp":
            with socket.create_connection((host, port), timeout) as connection:
                return connection.recv(64).decode() or "closed"
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as bound:
            bound.settimeout(timeout)
            bound.connect((host, port))
            bound.send(b"who")
            return bound.recv(64).decode()
    except OSError as error:
        return type(error).__name__


def ask(kind: str, host: str, port: str, times: str, timeout: str) -> None:
    got = collections.Counter(_once(kind, host, int(port), float(timeout)) for _ in range(int(times)))
    print(json.dumps(got), flush=True)


def keep(host: str, port: str, timeout: str) -> None:
    connection = socket.create_connection((host, int(port)), float(timeout))
    print(connection.recv(64).decode() or "closed", flush=True)
    for _ in sys.stdin:
        try:
            connection.sendall(b"x")
            said = connection.recv(64).decode() or "closed"
        except OSError as error:
            said = type(error).__name__
        print(said, flush=True)


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {"serve": serve, "ask": ask, "keep": keep}
    commands[sys.argv[1]](*sys.argv[2:])

"""The HTTP front: answers as bytes, cut connections, delays, and the command that serves it."""

import http.client
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from roadstead.testing.cloudsim import Caller, Cloud, Fault
from roadstead.testing.cloudsim.__main__ import main
from roadstead.testing.cloudsim.http import Front

pytestmark = pytest.mark.integration


@pytest.fixture
def front() -> Iterator[Front]:
    with Front(Cloud()) as running:
        yield running


def send(
    front: Front, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(front.host, front.port, timeout=10)
    try:
        connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def token(front: Front) -> str:
    return Caller.admin(front.cloud).token


def test_a_token_over_http_and_a_call_with_it(front: Front) -> None:
    user = {"name": "admin", "domain": {"name": "Default"}, "password": "admin"}
    auth = {
        "identity": {"methods": ["password"], "password": {"user": user}},
        "scope": {"system": {"all": True}},
    }
    response, body = send(front, "POST", "/identity/v3/auth/tokens", json.dumps({"auth": auth}).encode())
    assert response.status == 201
    held = response.getheader("X-Subject-Token") or ""
    urls = [e["endpoints"][0]["url"] for e in json.loads(body)["token"]["catalog"]]
    assert all(url.startswith(front.url) for url in urls)
    response, body = send(front, "GET", "/identity/v3/projects", X_Auth_Token=held)
    assert (response.status, response.getheader("Content-Type")) == (200, "application/json")
    assert [p["name"] for p in json.loads(body)["projects"]] == ["admin"]
    response, body = send(front, "HEAD", "/identity/v3/projects", X_Auth_Token=held)
    assert (response.status, body) == (200, b"")


@pytest.mark.parametrize(
    ("path", "status", "key"),
    [
        ("/identity", 300, "versions"), ("/identity/v3", 200, "version"), ("/compute", 200, "versions"),
        ("/compute/v2.1", 200, "version"), ("/network/", 200, "versions"), ("/image/versions", 200, "versions"),
        ("/volume/", 300, "versions"), ("/load-balancer/", 200, "versions"), ("/placement/", 200, "versions"),
    ],
)  # fmt: skip
def test_version_documents_need_no_token(front: Front, path: str, status: int, key: str) -> None:
    response, body = send(front, "GET", path)
    assert response.status == status
    assert key in json.loads(body)


def test_image_data_goes_up_and_comes_down_as_bytes(front: Front) -> None:
    held = token(front)
    image = json.dumps({"name": "i", "disk_format": "raw", "container_format": "bare"}).encode()
    _, body = send(
        front, "POST", "/image/v2/images", image, X_Auth_Token=held, Content_Type="application/json"
    )
    path = f"/image/v2/images/{json.loads(body)['id']}/file"
    data = bytes(range(256)) * 300
    response, body = send(
        front, "PUT", path, data, X_Auth_Token=held, Content_Type="application/octet-stream"
    )
    assert (response.status, body) == (204, b"")
    response, _ = send(front, "GET", path.removesuffix("/file"), X_Auth_Token=held)
    assert response.status == 200


@pytest.mark.parametrize(("kind", "made"), [("no_answer_before", False), ("no_answer_after", True)])
def test_a_cut_connection_brings_no_byte_of_an_answer(front: Front, kind: str, made: bool) -> None:
    held = token(front)
    front.cloud.faults.add(Fault(kind, service="identity", method="POST", path="/projects$"))
    body = json.dumps({"project": {"name": "cut"}}).encode()
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        send(front, "POST", "/identity/v3/projects", body, X_Auth_Token=held)
    _, listed = send(front, "GET", "/identity/v3/projects?name=cut", X_Auth_Token=held)
    assert len(json.loads(listed)["projects"]) == made


def test_a_slow_answer_is_held_back_and_others_are_not(front: Front) -> None:
    held = token(front)
    front.cloud.faults.add(Fault("slow", service="identity", path="/projects$", delay=0.5))
    start = time.monotonic()
    response, _ = send(front, "GET", "/identity/v3/projects", X_Auth_Token=held)
    assert response.status == 200
    assert time.monotonic() - start >= 0.5
    start = time.monotonic()
    send(front, "GET", "/identity/v3/projects", X_Auth_Token=held)
    assert time.monotonic() - start < 0.4


def test_admin_calls_over_http(front: Front) -> None:
    response, body = send(front, "POST", "/admin/clock", json.dumps({"freeze": True, "advance": 5}).encode())
    assert (response.status, json.loads(body)["frozen"]) == (200, True)
    response, body = send(front, "POST", "/admin/clock", b"{")
    assert response.status == 400


def test_two_fronts_take_two_free_ports_and_give_them_back() -> None:
    first, second = Front(Cloud()), Front(Cloud())
    with first, second:
        assert first.port != second.port
    with Front(Cloud(), port=first.port) as again:
        assert again.port == first.port


def test_a_port_that_is_taken_is_one_clear_line(front: Front, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", str(front.port)]) == 1
    assert (
        capsys.readouterr().err
        == f"cloudsim: cannot listen on 127.0.0.1:{front.port}: Address already in use\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(["--clouds"], "--clouds needs --port"), (["--pace", "-1"], "--pace must be 0 or more")],
)
def test_options_that_make_no_sense_are_one_clear_line(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert text in capsys.readouterr().err


def test_the_clouds_option_prints_a_clouds_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--clouds", "--port", "5000", "--password", "p"]) == 0
    cloud: dict[str, Any] = yaml.safe_load(capsys.readouterr().out)["clouds"]["sim"]
    assert (cloud["auth"]["auth_url"], cloud["auth"]["password"]) == (
        "http://127.0.0.1:5000/identity/v3",
        "p",
    )


def test_the_module_serves_until_interrupted(tmp_path: Path) -> None:
    clouds = tmp_path / "clouds.yaml"
    command = [
        sys.executable,
        "-m",
        "roadstead.testing.cloudsim",
        "--pace",
        "0",
        "--write-clouds",
        str(clouds),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            auth_url = yaml.safe_load(clouds.read_text())["clouds"]["sim"]["auth"]["auth_url"]
            assert auth_url in line
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
        finally:
            process.kill()

"""The program as a whole: help, mistakes, exit statuses."""

import uuid
from typing import Any

import pytest
import typer

from roadstead.cli.main import app, hoisted, run

LISTED: Any = typer.main.get_command(app)


def commands(command: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(path, command)]
    return [found for name, each in inner.items() for found in commands(each, (*path, name))]


ALL = commands(LISTED)


def test_every_command_of_this_release_is_there() -> None:
    words = {" ".join(path) for path, _ in ALL}
    assert words >= {
        *(
            "up",
            "down",
            "status",
            "logs",
            "apply",
            "get",
            "describe",
            "watch",
            "wait",
            "delete",
            "why",
            "history",
        ),
        *(
            "identity credentials",
            "region configure",
            "region register",
            "region check",
            "region list",
            "doctor",
        ),
        *(
            "dlq list",
            "dlq show",
            "dlq replay",
            "dlq dismiss",
            "migrate",
            "rebuild",
            "version",
            "cloudsim",
            "env",
        ),
        *("id server", "id identity-of", "id new", "id of"),
    }


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) for path, _ in ALL])
def test_every_command_has_help_with_an_example_of_itself(path: tuple[str, ...], command: Any) -> None:
    text = command.help or ""
    assert "Example: " in text
    example = text.rpartition("Example: ")[2].strip()
    assert " ".join(("roadstead", *path)) in example
    assert len(text.strip().splitlines()[0]) >= 15


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) for path, _ in ALL])
def test_every_option_is_explained(path: tuple[str, ...], command: Any) -> None:
    unexplained = [p.name for p in command.params if not getattr(p, "help", None) and p.name != "help"]
    assert unexplained == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bogus"], "No such command 'bogus'"),
        (["get"], "Missing argument"),
        (["get", "castle"], "there is no kind castle"),
        (
            ["wait", "server", "x", "--for", "lunch"],
            "'--for': 'lunch' is not one of 'provisioned', 'deleted'",
        ),
        (["--region", "zzz", "get", "all"], "the region zzz is no id; `roadstead region list`"),
        (["get", "sshcertificateauthority"], "comes with a later release"),
        (
            ["wait", "castle", "x"],
            "there are: region, identity, network, securitygroup, volume, server, loadbalancer",
        ),
        (["apply"], "no file is given: use -f FILE"),
        (["apply", "-f", "none.yaml"], "none.yaml cannot be read"),
        (["delete"], "give KIND and ID, or -f FILE"),
        (["describe", "flavor", "small"], "inventory"),
        (["dlq", "dismiss"], "give the number of one, or --all"),
        (["dlq", "dismiss", "3", "--all"], "give the number of one, or --all"),
        (["id", "server", "nope", "web"], "nope is no UUID"),
        (["up", "--bare", "--quickstart"], "leave one of both out"),
        (["up", "--bare", "--octavia"], "leave one of both out"),
        (["up", "--bare", "--ovn"], "leave one of both out"),
        (["up", "--octavia", "--cloud", "real"], "--octavia goes with the simulated cloud"),
        (["migrate"], "names no database"),
        (["--context", "none", "get", "server"], "there is no context none"),
    ],
)
def test_a_mistake_is_one_line_on_standard_error_and_status_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert said in out.err
    assert len(out.err.splitlines()) == 1
    assert out.err.startswith("roadstead: ")


def test_a_broker_that_is_not_there_is_one_line_with_the_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROADSTEAD_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setenv("ROADSTEAD_REGION", "7377fb11-e0f1-53a2-b166-13fba73ab5a5")
    assert run(["get", "server", "--project", "demo"]) == 1
    err = capsys.readouterr().err
    assert "nats://127.0.0.1:1 does not answer" in err
    assert "roadstead up" in err
    assert len(err.splitlines()) == 1


def test_status_down_and_logs_without_a_stack(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status"]) == 1
    assert "start it with `roadstead up`" in capsys.readouterr().err
    assert run(["down"]) == 0
    assert run(["logs", "compute"]) == 2


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["get", "server", "--project", "p"], ["--project", "p", "get", "server"]),
        (["get", "--region=r", "server", "-o", "json"], ["--region=r", "get", "server", "-o", "json"]),
        (["cloudsim", "--", "--context", "x"], ["cloudsim", "--", "--context", "x"]),
        (["get", "--context"], ["get", "--context"]),
    ],
)
def test_the_program_s_options_may_stand_anywhere(given: list[str], wanted: list[str]) -> None:
    assert hoisted(given) == wanted


def test_ref_037_the_id_of_a_server_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    network = "71b9f21c-972a-508c-8e8f-024510765378"
    assert run(["id", "server", network.upper(), "web-1"]) == 0
    assert capsys.readouterr().out == f"{uuid.uuid5(uuid.UUID(network), 'web-1')}\n"

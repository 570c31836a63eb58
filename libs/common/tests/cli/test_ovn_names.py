"""What a local stack with OVN tells of it: its databases for a shell, and the command that shows a load balancer's rows."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from roadstead.cli.commands.small import env
from roadstead.cli.stack.home import HOME, Home
from roadstead.cli.stack.quickstart import say_next


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A folder whose sockets' paths are short."""
    folder = Path(tempfile.mkdtemp(prefix="rs-", dir="/tmp"))
    monkeypatch.setenv(HOME, str(folder))
    yield Home(folder)
    shutil.rmtree(folder)


def test_env_names_the_databases_that_are_served_and_only_those(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    env()
    assert "OVN_" not in capsys.readouterr().out
    (home.ovn / "run").mkdir(parents=True)
    for side in ("nb", "sb"):
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(home.ovn / f"run/{side}.sock"))
    env()
    lines = capsys.readouterr().out.splitlines()
    assert f"export OVN_NB_DB=unix:{home.ovn}/run/nb.sock" in lines
    assert f"export OVN_SB_DB=unix:{home.ovn}/run/sb.sock" in lines


def test_what_to_try_next_names_the_rows_of_the_load_balancer_where_there_is_an_ovn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_next({"web-1": "server-id"})
    said = capsys.readouterr()
    assert "ovn show" not in said.out + said.err
    say_next({"web-1": "server-id"}, ["balancer-id"])
    said = capsys.readouterr()
    assert "ovn show balancer-id" in said.out + said.err

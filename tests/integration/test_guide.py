"""docs/guide.md followed line by line: its commands as they stand, on a stack that `roadstead up --quickstart` started.

Its `nats` lines run on the `nats` command where one is on PATH, else on a small stand-in of the same words.
"""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.reading import DOCS, blocks, commands, section

from roadstead.testing.paced import paced_environment

pytestmark = [pytest.mark.timeout(420)]

ROOT = Path(__file__).resolve().parents[2]
PAGE = (DOCS / "guide.md").read_text()
BIN = Path(sys.executable).parent
STAND_IN = '''#!{python}
"""`nats pub|sub|req` as far as the guide uses them."""
import asyncio, os, sys
import nats

async def main(verb, *words):
    count = [int(w.partition("=")[2]) for w in words if w.startswith("--count=")]
    plain = [w for w in words if not w.startswith("--")]
    client = await nats.connect(os.environ["NATS_URL"])
    if verb == "pub":
        await client.publish(plain[0], plain[1].encode())
        await client.flush()
    elif verb == "req":
        print((await client.request(plain[0], plain[1].encode(), timeout=5)).data.decode())
    elif verb == "sub":
        subscription = await client.subscribe(plain[0])
        for _ in range(count[0]):
            print((await subscription.next_msg(timeout=60)).data.decode(), flush=True)
    else:
        sys.exit(f"the stand-in knows no nats {{verb}}")
    await client.close()

asyncio.run(main(*sys.argv[1:]))
'''


def environment(folder: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ROADSTEAD_", "OS_", "NATS_"))}
    path = f"{folder / 'bin'}{os.pathsep}{BIN}{os.pathsep}{os.environ['PATH']}"
    return {
        **kept,
        "PATH": path,
        "ROADSTEAD_HOME": str(folder / "run"),
        **paced_environment(0.2),
        "COLUMNS": "200",
    }


def shell(folder: Path, lines: list[str], timeout: float = 240) -> str:
    """The lines one after another in one shell that stops at the first failure; what they printed."""
    script = "set -e\n" + "\n".join(lines)
    done = subprocess.run(
        ["bash", "-c", script],
        check=False,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A person's folder with a stack that is up and has the quickstart in it."""
    place = tmp_path_factory.mktemp("guide")
    os.chmod(place.parent, 0o711)  # PostgreSQL may run as another user
    os.chmod(place, 0o711)
    (place / "bin").mkdir()
    shutil.copytree(ROOT / "examples", place / "examples")
    if shutil.which("nats") is None:
        shim = place / "bin" / "nats"
        shim.write_text(STAND_IN.format(python=sys.executable))
        shim.chmod(shim.stat().st_mode | stat.S_IXUSR)
    try:
        said = shell(place, ["roadstead up --detach --quickstart"])
        assert re.search(
            r"^Everything is provisioned\. Try next .*:\n +roadstead get all$", said, re.MULTILINE
        )
        yield place
    finally:
        shell(place, ["roadstead down --wipe"])


def lines_of(title: str) -> list[str]:
    found = commands(section(PAGE, title))
    assert found, f"the section {title} has no command"
    return found


def test_the_reading_commands_of_the_guide_show_the_quickstart(folder: Path) -> None:
    said = shell(folder, lines_of("Look around"))
    assert re.search(r"^identity +ready", said, re.MULTILINE)
    for name in ("web-1", "web-2", "loadbalancer"):
        assert name in said
    assert "compute POST /servers" in said, "why names the request that made the server"
    assert "ACTIVE" in said, "openstack sees the servers with the identity's own credentials"


def test_a_file_of_the_guide_is_made_again_unchanged_and_taken_away(folder: Path) -> None:
    part = section(PAGE, "Say what you want")
    (folder / "shop.yaml").write_text(blocks(part, "yaml")[0])
    said = shell(folder, lines_of("Say what you want"))
    assert "server till provisioned" in said
    assert "network shop unchanged" in said
    assert "server till unchanged" in said
    assert "network shop deleted" in said
    assert "till" not in shell(folder, ["roadstead get server"])


def test_the_nats_lines_of_the_guide_make_refuse_and_delete_a_network(folder: Path) -> None:
    said = shell(folder, lines_of("The same with the nats command"))
    assert '"web-1"' in said, "the list request was answered"
    assert said.count('"provisioningStatus"') >= 3, "the subscription saw the network on its way"
    assert "PREFIX_TOO_SMALL" in said or "at least a /24 is required" in said
    assert "by-hand" not in shell(folder, ["roadstead get network"])


def test_the_doctor_of_the_guide_finds_nothing_wrong(folder: Path) -> None:
    said = shell(folder, lines_of("When something is wrong"))
    assert "wrong" not in said
    assert "region simulator" in said

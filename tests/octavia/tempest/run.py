"""octavia-tempest-plugin, unmodified, against the Octavia API in the reference cloud.

    python -m tests.octavia.tempest.run [--only REGEX] [--processes N] [--keep]

All API tests of the plug-in run with real Keystone and Neutron and a provider that reports at once and leaves VIP ports to the API.
Exit status 0: each test passed or is skipped for a reason in skips.yaml.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scripts.levels import Machine, cloud_runs, needs_root_on_debian

from roadstead.store.migrate import migrate
from roadstead.testing.servers import PostgresServer
from tests.cloud.octavia.reference import ReferenceCloud, ReferenceService
from tests.conftest import CLOUD_HOME
from tests.octavia.ground import PROVIDERS

from . import configuration, environment
from .configuration import PROVIDER
from .verdict import Verdict, judge, read_skips

SUITE = r"^octavia_tempest_plugin\.tests\.api\.v2\."
WITHIN = 5400.0
PROCESSES = 2


class Judged(ReferenceService):
    """The API in a region of its own; the suite makes its own projects, users and networks."""

    region = "RoadsteadTempest"

    def enter_cloud(self) -> None:
        self.people.log_in()

    def name_service(self) -> None:
        self.add_provider(
            PROVIDER, module="tests.octavia.tempest.provider", refuse="create_vip_port:NotImplemented"
        )
        super().name_service()

    def leave_cloud(self) -> None:
        self.people.log_in()
        self.cloud.forget_region(self.region)


@contextmanager
def reference_cloud() -> Iterator[ReferenceCloud]:
    """The running one, or one that is started now and ended afterwards."""
    root = environment.ROOT
    program = str(root / "deploy/cloud/cloud")
    ours = not cloud_runs(root)
    if ours:
        subprocess.run([program, "up"], check=True, timeout=1200)
    try:
        yield ReferenceCloud(CLOUD_HOME / "etc/clouds.yaml")
    finally:
        if ours:
            subprocess.run([program, "down"], check=True, timeout=300)


@contextmanager
def served(cloud: ReferenceCloud, folder: Path) -> Iterator[Judged]:
    """The API with a database and a broker of its own."""
    folder.chmod(0o711)
    postgres = PostgresServer(folder / "postgres", die_with_parent=True)
    postgres.start()
    try:
        asyncio.run(migrate(postgres.create_database("octavia_tempest"), ["octavia"]))
        service = Judged(cloud, folder / "service", postgres, "octavia_tempest")
        try:
            yield service.start()
        finally:
            service.stop()
    finally:
        postgres.stop()


def run_suite(programs: Path, workspace: Path, regex: str, processes: int) -> Path:
    """The JUnit report.  The suite's own output goes to the terminal."""
    given = {k: v for k, v in os.environ.items() if not k.startswith("OS_")}
    given |= {"PATH": f"{programs}:{given.get('PATH', '/usr/bin:/bin')}"}
    subprocess.run(
        [
            "tempest",
            "run",
            "--config-file",
            "tempest.conf",
            "--regex",
            regex,
            "--concurrency",
            str(processes),
        ],
        cwd=workspace,
        env=given,
        check=False,
        timeout=WITHIN,
    )
    report = workspace / "report.xml"
    last = subprocess.run(
        ["stestr", "last", "--subunit"], cwd=workspace, env=given, check=False, capture_output=True
    )
    made = subprocess.run(
        ["subunit2junitxml", "--output-to", str(report)],
        cwd=workspace,
        env=given,
        check=False,
        input=last.stdout,
        capture_output=True,
    )
    if not report.is_file():
        raise environment.NotHere(
            f"the suite left no report: {made.stderr.decode(errors='replace').strip()[-300:]}"
        )
    return report


def workspace_of(service: Judged, folder: Path) -> Path:
    """A folder with the suite's configuration."""
    folder.mkdir()
    (external,) = service.people.admin("GET", "/network/v2.0/networks?name=external")["networks"]
    configuration.write(
        folder / "tempest.conf",
        auth_url=service.auth_url,
        password=service.admin_password,
        region=service.region,
        external_network=external["id"],
        providers=PROVIDERS,
    )
    return folder


def say(verdict: Verdict) -> None:
    for title, rows in (("failed", verdict.failures), ("skipped without a reason", verdict.unexplained)):
        for name, text in sorted(rows.items()):
            print(f"{title}: {name}: {text}")
    for reason in verdict.needless:
        print(f"nothing is skipped any more because of: {reason}")
    print(
        f"octavia-tempest-plugin: {verdict.passed} passed, {len(verdict.failures)} failed,"
        f" {verdict.skipped} skipped for {len(read_skips())} listed reasons, {len(verdict.unexplained)} skipped without"
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Run octavia-tempest-plugin against the Octavia API.")
    parser.add_argument("--only", default="", metavar="REGEX", help="tests whose names it finds")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="side by side")
    parser.add_argument("--keep", action="store_true", help="leave logs and reports in place")
    options = parser.parse_args(arguments)
    if (obstacle := needs_root_on_debian(Machine.this_one())) is not None:
        print(f"octavia-tempest-plugin: left out: {obstacle}")
        return 0
    folder = Path(tempfile.mkdtemp(prefix="roadstead-tempest-"))
    try:
        programs = environment.installed()
        with reference_cloud() as cloud, served(cloud, folder) as service:
            workspace = workspace_of(service, folder / "suite")
            regex = f"{SUITE}.*(?:{options.only})" if options.only else SUITE
            report = run_suite(programs, workspace, regex, options.processes)
            verdict = judge(report, read_skips(), whole=not options.only)
    except environment.NotHere as reason:
        print(f"octavia-tempest-plugin: {reason}", file=sys.stderr)
        return 1
    finally:
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    say(verdict)
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

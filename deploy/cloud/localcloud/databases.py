"""Fresh databases: MariaDB's own, one of each service with its schema, Keystone's first user."""

import shutil
import threading
import time
from collections.abc import Sequence

from localcloud.console import CloudError, say
from localcloud.lifecycle import environment
from localcloud.services import unix_user
from localcloud.settings import Settings
from localcloud.shell import run

NAMES = (
    "keystone", "placement", "glance", "neutron", "nova_api", "nova_cell0", "nova_cell1", "cinder", "octavia",
    "ironic",
)  # fmt: skip
STEP_LIMIT_SECONDS = 300.0


def create_files(settings: Settings) -> None:
    """Write MariaDB's and OVN's empty databases; MariaDB knows root by password from the start."""
    first_statements = settings.run / "first.sql"
    first_statements.write_text(
        "FLUSH PRIVILEGES;\n"
        f"CREATE OR REPLACE USER 'root'@'127.0.0.1' IDENTIFIED BY '{settings.password}';\n"
        "GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n"
        + "".join(f"CREATE DATABASE `{name}` CHARACTER SET utf8;\n" for name in NAMES)
    )
    shutil.rmtree(settings.data / "mysql", ignore_errors=True)
    _step(
        settings, "create",
        ["mariadb-install-db", f"--defaults-file={settings.etc}/my.cnf", "--skip-test-db",
         "--auth-root-authentication-method=normal", f"--extra-file={first_statements}", f"--user={unix_user()}"],
    )  # fmt: skip
    for name in ("ovn-nb", "ovn-sb"):
        path = settings.data / "ovn" / f"{name}.db"
        path.unlink(missing_ok=True)
        _step(settings, "create", ["ovsdb-tool", "create", str(path), f"/usr/share/ovn/{name}.ovsschema"])


def migrate(settings: Settings) -> None:
    """Bring every schema up to date, in two lanes of about equal length."""
    failures: list[CloudError] = []

    def lane(name: str, steps: Sequence[Sequence[str]]) -> None:
        try:
            for step in steps:
                begun = time.monotonic()
                _step(settings, name, [settings.program(step[0]), *step[1:]])
                say(f"  {step[0]:<20} {' '.join(w for w in step[1:4] if w[:1] not in '-/'):<28}"
                    f" {time.monotonic() - begun:5.1f} s")  # fmt: skip
        except CloudError as error:
            failures.append(error)

    lanes = [
        threading.Thread(target=lane, args=("migrate-1", _first_lane(settings))),
        threading.Thread(target=lane, args=("migrate-2", _second_lane(settings))),
    ]
    for thread in lanes:
        thread.start()
    for thread in lanes:
        thread.join()
    if failures:
        raise failures[0]


def find_compute_hosts(settings: Settings) -> None:
    """Map the compute hosts that have reported into the cell."""
    _step(
        settings, "discover",
        [settings.program("nova-manage"), *_nova(settings), "cell_v2", "discover_hosts", "--by-service"],
    )  # fmt: skip


def migrate_ironic(settings: Settings) -> None:
    """Ironic is optional and brings its schema when it is first started; about five seconds, safe to repeat."""
    _step(
        settings, "ironic",
        [settings.program("ironic-dbsync"), "--config-file", f"{settings.etc}/ironic/ironic.conf", "upgrade"],
    )  # fmt: skip


def _step(settings: Settings, log: str, argv: Sequence[str]) -> None:
    run(argv, log=settings.log / f"{log}.log", environment=environment(settings), limit=STEP_LIMIT_SECONDS)


def _nova(settings: Settings) -> tuple[str, str]:
    return "--config-file", f"{settings.etc}/nova/nova-manage.conf"


def _first_lane(settings: Settings) -> list[list[str]]:
    etc = settings.etc
    keystone = ["--config-file", f"{etc}/keystone/keystone.conf"]
    owner = ["--keystone-user", unix_user(), "--keystone-group", unix_user()]
    bootstrap = [
        "bootstrap",
        "--bootstrap-password",
        settings.password,
        "--bootstrap-region-id",
        settings.region,
    ]
    for interface in ("admin", "internal", "public"):
        bootstrap += [f"--bootstrap-{interface}-url", f"{settings.url('keystone')}/v3"]
    return [
        ["keystone-manage", *keystone, "db_sync"],
        ["keystone-manage", *keystone, "fernet_setup", *owner],
        ["keystone-manage", *keystone, "credential_setup", *owner],
        ["keystone-manage", *keystone, *bootstrap],
        ["placement-manage", "--config-file", f"{etc}/placement/placement.conf", "db", "sync"],
        ["glance-manage", "--config-file", f"{etc}/glance/glance-api.conf", "db_sync"],
        ["cinder-manage", "--config-file", f"{etc}/cinder/cinder-manage.conf", "db", "sync"],
        ["octavia-db-manage", "--config-file", f"{etc}/octavia/octavia-manage.conf", "upgrade", "head"],
    ]


def _second_lane(settings: Settings) -> list[list[str]]:
    etc, nova = settings.etc, _nova(settings)
    cell0 = (
        f"mysql+pymysql://root:{settings.password}@127.0.0.1:{settings.port('mysql')}/nova_cell0?charset=utf8"
    )
    return [
        ["nova-manage", *nova, "api_db", "sync"],
        ["nova-manage", *nova, "cell_v2", "map_cell0", "--database_connection", cell0],
        ["nova-manage", *nova, "db", "sync"],
        ["nova-manage", *nova, "cell_v2", "create_cell", "--name=cell1"],
        ["neutron-db-manage", "--config-file", f"{etc}/neutron/neutron.conf", "--config-file",
         f"{etc}/neutron/ml2_conf.ini", "upgrade", "heads"],
    ]  # fmt: skip

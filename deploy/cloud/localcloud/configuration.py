"""Writes the services' configuration: templates with {{name}} filled in, and the policy files."""

import re
import shutil
from collections.abc import Mapping

from localcloud.services import unix_user, web_servers
from localcloud.settings import (
    BAREMETAL_HOST,
    COMPUTE_HOST,
    PORT_NAMES,
    SECOND_COMPUTE_HOST,
    SOURCE,
    Settings,
)

TEMPLATES = SOURCE / "templates"
POLICY_FILES = SOURCE / "policies"
POLICED = ("keystone", "placement", "glance", "neutron", "nova", "cinder", "octavia", "ironic")

DATA_DIRECTORIES = (
    "keystone/fernet", "keystone/credential", "glance/images", "glance/staging", "glance/tasks", "glance/lock",
    "neutron/lock", "nova/instances", "nova/lock", "nova-2/instances", "nova-baremetal/instances", "cinder/lock",
    "cinder/coordination", "octavia/lock", "ironic/lock", "ironic/http", "ironic/tftp", "ironic/images", "ovn",
    "rabbit",
)  # fmt: skip


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace each {{name}}; {{login:user}} becomes the Keystone login of that service user.  KeyError when unknown."""

    def one(match: re.Match[str]) -> str:
        name = match.group(1)
        if name.startswith("login:"):
            return fill(
                (TEMPLATES / "login.inc").read_text().rstrip(), {**values, "user": name.split(":", 1)[1]}
            )
        return values[name]

    return re.sub(r"\{\{([\w:-]+)\}\}", one, text)


def write(settings: Settings) -> None:
    """Make every directory and write all configuration files; safe to repeat, also while services run."""
    for directory in (settings.etc, settings.run, settings.log, settings.data, settings.sockets):
        directory.mkdir(parents=True, exist_ok=True)
    settings.sockets.chmod(0o700)
    for name in DATA_DIRECTORIES:
        (settings.data / name).mkdir(parents=True, exist_ok=True)
    for name in ("keystone/fernet", "keystone/credential"):
        (settings.data / name).chmod(0o700)  # Keystone refuses keys that others may read
    (settings.data / "rabbit/plugins").write_text("[].\n")
    values = _values(settings)
    for template, target, changes in _files(settings):
        path = settings.etc / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fill((TEMPLATES / template).read_text(), {**values, **changes}))
    for name in ("nova-compute", "nova-compute-2", "nova-compute-baremetal"):
        # A compute service refuses to start when it is told of a database.
        path = settings.etc / f"nova/{name}.conf"
        path.write_text(re.sub(r"(?m)^connection = .*\n", "", path.read_text()))
    shutil.copy(settings.venv / "etc/nova/api-paste.ini", settings.etc / "nova")
    _write_policies(settings)
    # Copied, so that running writes no byte code beside the sources.
    settings.drivers.mkdir(exist_ok=True)
    for source in (SOURCE / "drivers").glob("*.py"):
        shutil.copyfile(source, settings.drivers / source.name)


def _write_policies(settings: Settings) -> None:
    for service in POLICED:
        source = POLICY_FILES / f"{service}.yaml"
        text = source.read_text() if settings.policy == "region" and source.exists() else "{}\n"
        target = settings.etc / service / "policy.yaml"
        # Services read a changed file again while they run: leave an equal one alone.
        if not target.exists() or target.read_text() != text:
            target.write_text(text)


def _files(settings: Settings) -> list[tuple[str, str, dict[str, str]]]:
    """(template, path under etc, values of this file)"""
    files: list[tuple[str, str, dict[str, str]]] = [
        ("my.cnf", "my.cnf", {}),
        ("rabbitmq.conf", "rabbitmq.conf", {}),
        ("clouds.yaml", "clouds.yaml", {}),
        ("openrc", "openrc", {}),
        ("keystone.conf", "keystone/keystone.conf", {}),
        ("placement.conf", "placement/placement.conf", {}),
        ("glance.conf", "glance/glance-api.conf", {}),
        ("ml2_conf.ini", "neutron/ml2_conf.ini", {}),
        ("neutron.conf", "neutron/neutron.conf", {"program": "neutron"}),
        ("neutron.conf", "neutron/neutron-maintenance.conf", {"program": "neutron-maintenance"}),
        ("ironic.conf", "ironic/ironic.conf", {}),
    ]
    nova = {"nova_host": COMPUTE_HOST, "nova_state": "nova", "compute_driver": "pretended.PretendedDriver",
            "inventory_seconds": "60"}  # fmt: skip
    for name in ("nova-api", "nova-conductor", "nova-scheduler", "nova-compute", "nova-manage"):
        files.append(("nova.conf", f"nova/{name}.conf", {**nova, "program": name}))
    second = {"program": "nova-compute-2", "nova_host": SECOND_COMPUTE_HOST, "nova_state": "nova-2"}
    files.append(("nova.conf", "nova/nova-compute-2.conf", {**nova, **second}))
    baremetal = {"program": "nova-compute-baremetal", "nova_host": BAREMETAL_HOST, "nova_state": "nova-baremetal",
                 "compute_driver": "ironic.IronicDriver", "inventory_seconds": "10"}  # fmt: skip
    files.append(("nova.conf", "nova/nova-compute-baremetal.conf", {**nova, **baremetal}))
    for name in ("cinder-api", "cinder-scheduler", "cinder-volume", "cinder-manage"):
        files.append(("cinder.conf", f"cinder/{name}.conf", {"program": name}))
    for name in ("octavia-api", "octavia-driver-agent", "octavia-manage"):
        files.append(("octavia.conf", f"octavia/{name}.conf", {"program": name}))
    for name, server in web_servers(settings).items():
        changes = {"port": str(settings.port(server.port)), "module": server.module,
                   "threads": str(server.threads), "master": "true" if server.master else "false"}  # fmt: skip
        files.append(("uwsgi.ini", f"uwsgi/{name}.ini", changes))
    return files


def _values(settings: Settings) -> dict[str, str]:
    values = {
        "etc": str(settings.etc),
        "run": str(settings.run),
        "log": str(settings.log),
        "data": str(settings.data),
        "venv": str(settings.venv),
        "sockets": str(settings.sockets),
        "clouds_yaml": str(settings.clouds_yaml),
        "password": settings.password,
        "region": settings.region,
        "debug": "true" if settings.debug else "false",
        "token_seconds": str(settings.token_seconds),
        "host": COMPUTE_HOST,
        "unix_user": unix_user(),
        "database": f"mysql+pymysql://root:{settings.password}@127.0.0.1:{settings.port('mysql')}",
        "queue": f"rabbit://roadstead:{settings.password}@127.0.0.1:{settings.port('rabbit')}/",
    }
    for name in PORT_NAMES:
        values[f"port_{name}"] = str(settings.port(name))
        values[f"url_{name}"] = settings.url(name)
    return values

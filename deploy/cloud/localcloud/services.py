"""The catalogue: every process of the cloud, what it needs and how one sees that it answers."""

import getpass
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localcloud.console import CloudError
from localcloud.settings import BAREMETAL_HOST, COMPUTE_HOST, SECOND_COMPUTE_HOST, Settings


@dataclass(frozen=True)
class Listens:
    """Ready when something accepts connections on the port."""

    port: int


@dataclass(frozen=True)
class AnswersHttp:
    """Ready when the port gives any HTTP answer below 500."""

    port: int


@dataclass(frozen=True)
class Logs:
    """Ready when the text appears in the service's log after this start."""

    text: str


@dataclass(frozen=True)
class HasSocket:
    """Ready when the path exists."""

    path: Path


Readiness = Listens | AnswersHttp | Logs | HasSocket | None


@dataclass(frozen=True)
class Service:
    """One process.

    needs: services that have to run as well.  after: those that must answer before this one
    is started; imports take most of a start, so everything else loads side by side.
    optional: started only when named.  lasting: keeps data and so gets time to end well.
    """

    name: str
    argv: tuple[str, ...]
    ready: Readiness
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False
    lasting: bool = False

    @property
    def port(self) -> int | None:
        return self.ready.port if isinstance(self.ready, Listens | AnswersHttp) else None


GROUPS: Mapping[str, tuple[str, ...]] = {
    "identity": ("keystone",),
    "image": ("glance",),
    "network": ("neutron",),
    "compute": (
        "nova-api",
        "nova-conductor",
        "nova-scheduler",
        "nova-compute",
        "placement",
        "glance",
        "neutron",
    ),
    "volume": ("cinder-api", "cinder-scheduler", "cinder-volume"),
    "loadbalancer": ("octavia-api", "octavia-driver-agent"),
    "baremetal": ("ironic",),
    "baremetal-compute": ("ironic", "nova-compute-baremetal"),
}


@dataclass(frozen=True)
class WebServer:
    """A WSGI application as uwsgi runs it: one process, a few threads."""

    module: str
    port: str
    threads: int
    master: bool = False
    arguments: tuple[str, ...] = ()


def web_servers(settings: Settings) -> dict[str, WebServer]:
    etc = settings.etc
    return {
        "keystone": WebServer("keystone.wsgi.api", "keystone", 4),
        "placement": WebServer("placement.wsgi.api", "placement", 3),
        "glance": WebServer("glance.wsgi.api", "glance", 4),
        # Neutron's OVN driver expects a parent process beside its worker.
        "neutron": WebServer("neutron.wsgi.api", "neutron", 6, master=True),
        "nova-api": WebServer("nova.wsgi.osapi_compute", "nova", 6),
        "cinder-api": WebServer(
            "cinder.wsgi.api", "cinder", 4, arguments=("--config-file", f"{etc}/cinder/cinder-api.conf")
        ),
        "octavia-api": WebServer(
            "octavia.wsgi.api", "octavia", 4, arguments=("--config-file", f"{etc}/octavia/octavia-api.conf")
        ),
    }


def catalogue(settings: Settings) -> dict[str, Service]:
    """All services by name, those that others need first."""
    services = [*_infrastructure(settings), *_web(settings), *_workers(settings), *_optional(settings)]
    return {service.name: service for service in services}


def with_needs(names: Iterable[str], services: Mapping[str, Service]) -> list[Service]:
    """The named services and groups with all that they need, in catalogue order; no names mean all but optional ones."""
    wanted: set[str] = set()
    todo = list(names) or [s.name for s in services.values() if not s.optional]
    while todo:
        for name in members(todo.pop(), services):
            if name not in wanted:
                wanted.add(name)
                todo.extend(services[name].needs)
    return [service for service in services.values() if service.name in wanted]


def members(name: str, services: Mapping[str, Service]) -> tuple[str, ...]:
    """The services that a name stands for: itself or a group's."""
    if name in services:
        return (name,)
    if name in GROUPS:
        return GROUPS[name]
    raise CloudError(
        f"no service or group is called {name}; services: {' '.join(services)}; groups: {' '.join(GROUPS)}"
    )


def _infrastructure(settings: Settings) -> list[Service]:
    port, log, sockets = settings.port, settings.log, settings.sockets
    southbound = f"tcp:127.0.0.1:{port('ovn_sb')}"
    in_sockets = {"OVS_RUNDIR": str(sockets), "OVN_RUNDIR": str(sockets)}

    def ovs_options(name: str) -> tuple[str, ...]:
        return (
            f"--unixctl={sockets}/{name}.ctl",
            f"--log-file={log}/{name}.log",
            "-vconsole:off",
            "-vsyslog:off",
        )

    def database(name: str, port_name: str) -> Service:
        argv = ("ovsdb-server", f"--remote=ptcp:{port(port_name)}:127.0.0.1", *ovs_options(name))
        return Service(
            name, (*argv, f"{settings.data}/ovn/{name}.db"), Listens(port(port_name)),
            environment=in_sockets, lasting=True,
        )  # fmt: skip

    return [
        Service(
            "mariadb", ("mariadbd", f"--defaults-file={settings.etc}/my.cnf"), Listens(port("mysql")), lasting=True
        ),
        Service(
            "memcached",
            ("memcached", "-l", "127.0.0.1", "-p", str(port("memcached")), "-U", "0", "-m", "32", "-t", "1",
             "-u", unix_user()),
            Listens(port("memcached")),
        ),
        # RabbitMQ would start a port mapper of its own that outlives it.
        Service("epmd", ("epmd", "-address", "127.0.0.1", "-port", str(port("epmd"))), Listens(port("epmd"))),
        Service(
            "rabbit", ("/usr/lib/rabbitmq/bin/rabbitmq-server",), Listens(port("rabbit")),
            needs=("epmd",), after=("epmd",), environment=_rabbit_environment(settings), lasting=True,
        ),
        database("ovn-nb", "ovn_nb"),
        database("ovn-sb", "ovn_sb"),
        Service(
            "ovn-northd",
            ("ovn-northd", f"--ovnnb-db=tcp:127.0.0.1:{port('ovn_nb')}", f"--ovnsb-db={southbound}",
             *ovs_options("ovn-northd")),
            None, needs=("ovn-nb", "ovn-sb"), after=("ovn-nb", "ovn-sb"), environment=in_sockets,
        ),
        Service(
            "chassis",
            (settings.program("python"), f"{settings.drivers}/chassis.py", "--southbound", southbound,
             "--member-health", settings.member_health, COMPUTE_HOST, SECOND_COMPUTE_HOST, BAREMETAL_HOST),
            None, needs=("ovn-sb",), after=("ovn-sb",),
        ),
    ]  # fmt: skip


def _rabbit_environment(settings: Settings) -> dict[str, str]:
    home = settings.data / "rabbit"
    return {
        "HOME": str(home),
        "RABBITMQ_NODENAME": "roadstead@localhost",
        "RABBITMQ_MNESIA_BASE": f"{home}/mnesia",
        "RABBITMQ_LOG_BASE": str(settings.log),
        "RABBITMQ_LOGS": f"{settings.log}/rabbit.log",
        "RABBITMQ_CONFIG_FILE": f"{settings.etc}/rabbitmq",
        "RABBITMQ_ENABLED_PLUGINS_FILE": f"{home}/plugins",
        "RABBITMQ_DIST_PORT": str(settings.port("rabbit_dist")),
        "RABBITMQ_PID_FILE": f"{settings.run}/rabbit.own.pid",
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "ERL_EPMD_PORT": str(settings.port("epmd")),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        # One scheduler that sleeps rather than spins: the machine is small.
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1"
        " +sbwt none +sbwtdcpu none +sbwtdio none",
    }


def _web(settings: Settings) -> list[Service]:
    etc = settings.etc
    first = ("mariadb", "keystone")
    queue = (*first, "rabbit")
    needs = {
        "keystone": ("mariadb", "memcached"),
        "placement": ("keystone",),
        "glance": ("keystone",),
        "neutron": (*queue, "ovn-northd", "chassis"),
        "nova-api": (*queue, "placement", "glance", "neutron"),
        "cinder-api": (*queue, "glance"),
        "octavia-api": ("keystone", "neutron", "octavia-driver-agent"),
    }
    after = {
        "keystone": ("mariadb",),
        "neutron": (*queue, "ovn-nb", "ovn-sb"),
        "nova-api": queue,
        "cinder-api": queue,
    }
    environment = {
        "keystone": {"OS_KEYSTONE_CONFIG_DIR": f"{etc}/keystone"},
        "placement": {"OS_PLACEMENT_CONFIG_DIR": f"{etc}/placement"},
        "glance": {"OS_GLANCE_CONFIG_DIR": f"{etc}/glance"},
        "neutron": {
            "OS_NEUTRON_CONFIG_DIR": f"{etc}/neutron",
            "OS_NEUTRON_CONFIG_FILES": "neutron.conf;ml2_conf.ini",
            # Its OVN driver leaves files of a former run in the temporary directory and trusts them.
            "TMPDIR": f"{settings.run}/neutron-tmp",
        },
        "nova-api": {
            "OS_NOVA_CONFIG_DIR": f"{etc}/nova",
            "OS_NOVA_CONFIG_FILES": "api-paste.ini;nova-api.conf",
        },
        "octavia-api": {"ROADSTEAD_CLOUD_OCTAVIA_SOCKETS": str(settings.sockets)},
    }
    found = []
    for name, server in web_servers(settings).items():
        argv = [
            settings.program("uwsgi"),
            "--ini",
            f"{etc}/uwsgi/{name}.ini",
            "--virtualenv",
            str(settings.venv),
        ]
        if server.arguments:
            argv += ["--pyargv", " ".join(server.arguments)]
        found.append(
            Service(
                name,
                tuple(argv),
                AnswersHttp(settings.port(server.port)),
                needs=needs[name],
                after=after.get(name, first),
                environment=environment.get(name, {}),
            )
        )
    return found


def _workers(settings: Settings) -> list[Service]:
    # RabbitMQ's own start is short of time when its clients load beside it.
    queue = ("mariadb", "rabbit", "keystone")

    def worker(
        name: str, component: str, log: str, *, needs: tuple[str, ...], after: tuple[str, ...]
    ) -> Service:
        argv = (settings.program(name), "--config-file", f"{settings.etc}/{component}/{name}.conf")
        return Service(name, argv, Logs(log), needs=needs, after=after)

    return [
        worker("nova-conductor", "nova", "Starting conductor node", needs=("nova-api",), after=queue),
        worker("nova-scheduler", "nova", "Starting scheduler node", needs=("nova-api",), after=queue),
        worker("cinder-scheduler", "cinder", "Starting cinder-scheduler node", needs=("cinder-api",), after=queue),
        worker("cinder-volume", "cinder", "Starting cinder-volume node", needs=("cinder-api",), after=queue),
        Service(
            "octavia-driver-agent",
            (settings.program("octavia-driver-agent"), "--config-file",
             f"{settings.etc}/octavia/octavia-driver-agent.conf"),
            HasSocket(settings.sockets / "octavia-status.sock"),
            needs=("mariadb", "ovn-northd"), after=("mariadb", "ovn-nb", "ovn-sb"),
            environment={"ROADSTEAD_CLOUD_OCTAVIA_SOCKETS": str(settings.sockets)},
        ),
        _compute(settings, "nova-compute", optional=False),
    ]  # fmt: skip


def _compute(settings: Settings, name: str, *, optional: bool, extra: tuple[str, ...] = ()) -> Service:
    """A Nova compute service.  It asks the conductor and Placement while it starts, so both come first."""
    return Service(
        name,
        (settings.program("nova-compute"), "--config-file", f"{settings.etc}/nova/{name}.conf"),
        Logs("Starting compute node"),
        needs=("nova-api", "nova-conductor", "nova-scheduler", "placement", "neutron", "glance", *extra),
        after=("nova-conductor", "placement", *extra),
        environment={"ROADSTEAD_CLOUD_NOVA_DRIVER": "1"},
        optional=optional,
    )


def _optional(settings: Settings) -> list[Service]:
    etc = settings.etc
    return [
        Service(
            "ironic", (settings.program("ironic"), "--config-file", f"{etc}/ironic/ironic.conf"),
            AnswersHttp(settings.port("ironic")), needs=("keystone",), after=("keystone",), optional=True,
        ),
        _compute(settings, "nova-compute-2", optional=True),
        _compute(settings, "nova-compute-baremetal", optional=True, extra=("ironic", "nova-api")),
        Service(
            "neutron-maintenance",
            (settings.program("neutron-ovn-maintenance-worker"), "--config-file",
             f"{etc}/neutron/neutron-maintenance.conf", "--config-file", f"{etc}/neutron/ml2_conf.ini"),
            None, needs=("neutron",), after=("neutron",), optional=True,
        ),
    ]  # fmt: skip


def unix_user() -> str:
    """Name of the user we run as; the daemons must not drop to one of their own."""
    return getpass.getuser()

"""The commands.  Those that change something hold a lock, so that two at once take turns."""

import argparse
import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from localcloud import check, configuration, databases, golden, packages, process, seed
from localcloud.console import CloudError, say
from localcloud.lifecycle import Supervisor
from localcloud.rest import administrator
from localcloud.services import catalogue, with_needs
from localcloud.settings import Settings, fix, load

LOCK_LIMIT_SECONDS = 900.0


def install(settings: Settings, options: argparse.Namespace) -> int:
    """Install packages and make the seeded state; quick when nothing has changed."""
    with _locked(settings):
        _install(settings, again=options.again)
    return 0


def up(settings: Settings, options: argparse.Namespace) -> int:
    """Start all services, or the named ones and groups with what they need; installs first when needed."""
    with _locked(settings):
        _install(settings, again=False)
        took = _up(settings, options.services)
    say(f"up in {took:.0f} s; credentials: {settings.clouds_yaml}")
    return 0


def down(settings: Settings, options: argparse.Namespace) -> int:
    """Stop all services, or the named ones and groups."""
    begun = time.monotonic()
    with _locked(settings):
        _supervisor(settings).stop(options.services, hard=options.hard)
    say(f"down in {time.monotonic() - begun:.1f} s")
    return 0


def reset(settings: Settings, options: argparse.Namespace) -> int:
    """Go back to the seeded state; services end up stopped, unless --up."""
    begun = time.monotonic()
    with _locked(settings):
        if not golden.usable(settings):
            raise CloudError(f"no seeded state of this version in {settings.home}; run `cloud install`")
        # What they would save is thrown away, so nobody gets time to save it.
        _supervisor(settings).stop(hard=True)
        golden.restore(settings)
        if not options.keep_logs:
            for path in settings.log.glob("*"):
                path.unlink()
        configuration.write(settings)
        say(f"reset in {time.monotonic() - begun:.1f} s")
        if options.up:
            say(f"up in {_up(settings, []):.0f} s")
    return 0


def status(settings: Settings, options: argparse.Namespace) -> int:
    """Show processes and memory; exit 1 when a service that should run does not, or does not answer."""
    supervisor = _supervisor(settings)
    bad = resident_total = proportional_total = 0
    for service in supervisor.services.values():
        leader = supervisor.running(service.name)
        if leader is None:
            if not service.optional:
                bad += 1
                print(f"{service.name:<24} down")
            continue
        family = process.session(leader)
        memory = [process.memory(one) for one in family]
        resident, proportional = (sum(kib) // 1024 for kib in zip(*memory, strict=True))
        resident_total += resident
        proportional_total += proportional
        word = ""
        if options.check and service.ready is not None:
            answers = supervisor.answers(service, patience=10.0)
            word = "answers" if answers else "NO ANSWER"
            bad += not answers
        print(
            f"{service.name:<24} pid {leader.pid:<8} processes {len(family)}  resident {resident:4d} MiB "
            f" proportional {proportional:4d} MiB  {service.port or '':<6} {word}"
        )
    print(f"{'total':<24} resident {resident_total} MiB  proportional {proportional_total} MiB")
    return 1 if bad else 0


def env(settings: Settings, options: argparse.Namespace) -> int:
    """Print OS_* exports for eval, or with --clouds only the path of clouds.yaml."""
    _require_installed(settings)
    print(settings.clouds_yaml if options.clouds else (settings.etc / "openrc").read_text().rstrip())
    return 0


def check_scopes(settings: Settings, options: argparse.Namespace) -> int:
    """Make the calls of the four credential scopes and say which answered unexpectedly."""
    return 0 if check.run(settings) else 1


def openstack(settings: Settings, options: argparse.Namespace) -> int:
    """Run the openstack command line client as the administrator."""
    _execute(settings, "openstack", options.arguments)


def python(settings: Settings, options: argparse.Namespace) -> int:
    """Run the cloud's own Python, which has openstacksdk."""
    _execute(settings, "python", options.arguments)


def freeze(settings: Settings, options: argparse.Namespace) -> int:
    """Make services hang until `cloud thaw`."""
    _supervisor(settings).signal(options.services, signal.SIGSTOP)
    return 0


def thaw(settings: Settings, options: argparse.Namespace) -> int:
    """Let frozen services go on."""
    _supervisor(settings).signal(options.services, signal.SIGCONT)
    return 0


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    os.environ["PATH"] = packages.search_path()
    command: Callable[[Settings, argparse.Namespace], int] = options.command
    try:
        return command(load(os.environ), options)
    except CloudError as error:
        print(f"cloud: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has ended; Python would complain once more
        return 1
    except KeyboardInterrupt:
        print("cloud: interrupted; repeat the command to go on, or `cloud down` to stop", file=sys.stderr)
        return 130


def _install(settings: Settings, *, again: bool) -> None:
    if golden.usable(settings) and not again:
        return
    begun = time.monotonic()
    fix(settings)
    settings.log.mkdir(parents=True, exist_ok=True)
    packages.install_debian_packages(settings)
    debian = time.monotonic()
    packages.install_environment(settings)
    python_packages = time.monotonic()
    if golden.usable(settings) and not again:
        return
    if settings.data.exists():
        say("the data here is of another version or half made: it goes, and is made anew")
    supervisor = _supervisor(settings)
    supervisor.stop(hard=True)
    golden.discard(settings)
    # Seeding makes the administrator give roles, so it works with either policy; logs may come along.
    configuration.write(settings)
    say("databases")
    databases.create_files(settings)
    supervisor.start([supervisor.services["mariadb"]])
    databases.migrate(settings)
    schemas = time.monotonic()
    say("first start and seeding")
    supervisor.start(with_needs(["identity"], supervisor.services))
    seed.identity(settings, administrator(settings.url("keystone"), settings.password))
    supervisor.start(with_needs([], supervisor.services))
    admin = administrator(settings.url("keystone"), settings.password)
    seed.content(admin)
    seed.wait_until_alive(admin)
    databases.find_compute_hosts(settings)
    supervisor.stop()
    golden.keep(settings)
    done = time.monotonic()
    say(
        f"installed in {done - begun:.0f} s: Debian packages {debian - begun:.0f},"
        f" Python packages {python_packages - debian:.0f}, databases {schemas - python_packages:.0f},"
        f" first start and seed {done - schemas:.0f}"
    )


def _up(settings: Settings, names: Sequence[str]) -> float:
    begun = time.monotonic()
    configuration.write(settings)
    supervisor = _supervisor(settings)
    wanted = with_needs(names, supervisor.services)
    running = {service.name for service in wanted}
    if "ironic" in running:
        _prepare_baremetal(settings, supervisor)
    supervisor.start(wanted)
    if {"nova-compute", "cinder-volume", "neutron"} <= running:
        seed.wait_until_alive(administrator(settings.url("keystone"), settings.password))
    if running & {"nova-compute-2", "nova-compute-baremetal"}:
        databases.find_compute_hosts(settings)
    return time.monotonic() - begun


def _prepare_baremetal(settings: Settings, supervisor: Supervisor) -> None:
    """Schema and catalogue entry of Ironic, which the seeded state leaves out."""
    supervisor.start(with_needs(["identity"], supervisor.services))
    databases.migrate_ironic(settings)
    seed.endpoints(settings, administrator(settings.url("keystone"), settings.password), seed.BAREMETAL)


def _supervisor(settings: Settings) -> Supervisor:
    return Supervisor(settings, catalogue(settings))


def _require_installed(settings: Settings) -> None:
    if not settings.clouds_yaml.exists():
        raise CloudError(f"nothing is installed in {settings.home}; run `cloud up`")


def _execute(settings: Settings, program: str, arguments: Sequence[str]) -> NoReturn:
    _require_installed(settings)
    environment = {**os.environ, "OS_CLIENT_CONFIG_FILE": str(settings.clouds_yaml)}
    environment.setdefault("OS_CLOUD", "roadstead-admin")
    path = settings.program(program)
    os.execve(path, [path, *arguments], environment)


@contextlib.contextmanager
def _locked(settings: Settings) -> Iterator[None]:
    """Hold the home's lock; daemons do not inherit it.  CloudError when another command keeps it too long."""
    settings.home.mkdir(parents=True, exist_ok=True)
    with (settings.home / "lock").open("w") as lock:
        deadline = time.monotonic() + LOCK_LIMIT_SECONDS
        told = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    say(f"another command works on {settings.home}; waiting for it")
                    told = True
                if time.monotonic() > deadline:
                    raise CloudError(
                        f"{settings.home} stays locked by another command; end that one first"
                    ) from None
                time.sleep(0.2)
        yield


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cloud", description="A real OpenStack control plane on one machine."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[Settings, argparse.Namespace], int]) -> argparse.ArgumentParser:
        text = command.__doc__ or ""
        one = commands.add_parser(name, help=text, description=text)
        one.set_defaults(command=command)
        return one

    add("install", install).add_argument("--again", action="store_true", help="make the databases anew")
    add("up", up).add_argument("services", nargs="*", metavar="SERVICE")
    stop = add("down", down)
    stop.add_argument("services", nargs="*", metavar="SERVICE")
    stop.add_argument("--hard", action="store_true", help="kill at once, as a crash would")
    back = add("reset", reset)
    back.add_argument("--up", action="store_true", help="start everything again")
    back.add_argument("--keep-logs", action="store_true")
    add("status", status).add_argument("--check", action="store_true", help="ask each one for an answer")
    add("env", env).add_argument("--clouds", action="store_true", help="only the path of clouds.yaml")
    add("check", check_scopes)
    for name, command in (("freeze", freeze), ("thaw", thaw)):
        add(name, command).add_argument("services", nargs="+", metavar="SERVICE")
    for name, command in (("openstack", openstack), ("python", python)):
        add(name, command).add_argument("arguments", nargs=argparse.REMAINDER)
    return parser

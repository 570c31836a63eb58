"""The state right after seeding, kept beside the live one so that `reset` is a copy."""

import hashlib
import shutil

from localcloud.databases import NAMES
from localcloud.packages import environment_stamp
from localcloud.settings import SOURCE, Settings

# Files that decide what the databases hold; a change of one makes the kept state stale.
SHAPING = ("localcloud/databases.py", "localcloud/seed.py", "templates/my.cnf")
# RabbitMQ makes its files anew; sockets and locks belong to processes.
NOT_KEPT = shutil.ignore_patterns("mnesia", "*.sock", ".erlang.cookie", "*.lock")


def stamp(settings: Settings) -> str:
    """Names the content that the kept state has to have."""
    digest = hashlib.sha256(environment_stamp(settings).encode())
    for name in SHAPING:
        digest.update((SOURCE / name).read_bytes())
    digest.update(f"{NAMES} {settings.port_base} {settings.password} {settings.region}".encode())
    return digest.hexdigest()


def usable(settings: Settings) -> bool:
    """True when a complete kept state of this very content is there."""
    mark = settings.golden / "stamp"
    return mark.exists() and mark.read_text() == stamp(settings)


def keep(settings: Settings) -> None:
    """Copy the data away; every process has to be stopped.  The stamp comes last: without it nothing was kept."""
    shutil.rmtree(settings.golden, ignore_errors=True)
    shutil.copytree(settings.data, settings.golden / "data", symlinks=True, ignore=NOT_KEPT)
    (settings.golden / "stamp").write_text(stamp(settings))


def restore(settings: Settings) -> None:
    """Put the kept data in place of the live data; every process has to be stopped."""
    shutil.rmtree(settings.data, ignore_errors=True)
    shutil.copytree(settings.golden / "data", settings.data, symlinks=True)


def discard(settings: Settings) -> None:
    """Remove live and kept data, before databases are made anew."""
    shutil.rmtree(settings.golden, ignore_errors=True)
    shutil.rmtree(settings.data, ignore_errors=True)

"""`python -m roadstead_ovn`: one replica of the OVN worker.

    python -m roadstead_ovn             serve until SIGTERM
    python -m roadstead_ovn --settings  print every setting with its default

Exit statuses are those of all services; 2: settings that cannot be, one line each on standard error.
"""

import sys

import uvloop

from roadstead.service import Exit
from roadstead.settings import Settings, load_settings, table
from roadstead_ovn.process import NAME, Process
from roadstead_ovn.settings import OvnSettings, load_ovn_settings


def main(arguments: list[str]) -> int:
    if arguments == ["--settings"]:
        for row in table(OvnSettings):
            sys.stdout.write(f"{row['variable']}={row['default']}\n")
        return Exit.DONE
    if arguments:
        sys.stderr.write(f"{NAME}: unknown argument {arguments[0]}; there is --settings\n")
        return Exit.SETTINGS
    try:
        settings, ovn = load_settings(), load_ovn_settings()
    except ValueError as error:
        return _refused(error)
    return uvloop.run(_serve(settings, ovn))


async def _serve(settings: Settings, ovn: OvnSettings) -> int:
    try:
        process = Process(settings, ovn)
    except ValueError as error:
        return _refused(error)
    return await process.main()


def _refused(error: Exception) -> int:
    for line in str(error).splitlines():
        sys.stderr.write(f"{NAME}: {line}\n")
    return Exit.SETTINGS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

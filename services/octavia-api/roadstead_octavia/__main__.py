"""`python -m roadstead_octavia`: one replica of the API.

    python -m roadstead_octavia             serve until SIGTERM
    python -m roadstead_octavia --settings  print every setting with its default

Exit statuses are those of all services; 2: settings that cannot be, one line each on standard error.
"""

import sys

import uvloop

from roadstead.service_life import Exit
from roadstead.settings import Settings, load_settings, table
from roadstead_octavia.http.operations import NoSuchOperation
from roadstead_octavia.process import Process
from roadstead_octavia.settings import OctaviaSettings, load_octavia_settings


def main(arguments: list[str]) -> int:
    if arguments == ["--settings"]:
        for row in table(OctaviaSettings):
            sys.stdout.write(f"{row['variable']}={row['default']}\n")
        return Exit.DONE
    if arguments:
        sys.stderr.write(f"octavia-api: unknown argument {arguments[0]}; there is --settings\n")
        return Exit.SETTINGS
    try:
        settings, octavia = load_settings(), load_octavia_settings()
    except ValueError as error:
        return _refused(error)
    return uvloop.run(_serve(settings, octavia))


async def _serve(settings: Settings, octavia: OctaviaSettings) -> int:
    try:
        process = Process(settings, octavia)
    except (ValueError, NoSuchOperation) as error:
        return _refused(error)
    return await process.main()


def _refused(error: Exception) -> int:
    for line in str(error).splitlines():
        sys.stderr.write(f"octavia-api: {line}\n")
    return Exit.SETTINGS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The toy service as a program: what `python -m roadstead_<name>` is for a real one."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from reconcile.toy import KIND

from roadstead.assembly import Service
from roadstead.service import run

if __name__ == "__main__":
    run(Service("volumes", kinds=(KIND,), follows=("network",)))

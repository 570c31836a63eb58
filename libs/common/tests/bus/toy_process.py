"""The toy service as a program: what `python -m roadstead_<name>` is for a real one."""

import sys
from importlib import import_module
from pathlib import Path

from roadstead.assembly import Service
from roadstead.service import run

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    run(Service("volumes", kinds=(import_module("reconcile.toy").KIND,), follows=("network",)))

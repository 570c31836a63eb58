"""What the options of the program chose, for the one command that a process runs."""

import os
from pathlib import Path

from roadstead.cli.context import LOCAL, VARIABLE, Choice, Context, load_context
from roadstead.cli.stack.home import CONTEXT, Home, find_home

choice = Choice()


def context() -> Context:
    """The context in effect; UserError when there is none of that name."""
    return load_context(choice)


def local_home() -> Home | None:
    """The folder of the local stack that the command means; None for a deployment elsewhere."""
    wanted = choice.context or os.environ.get(VARIABLE)
    if wanted in (None, LOCAL):
        return find_home()
    path = Path(wanted).expanduser().absolute()
    return Home(path.parent) if path.name == CONTEXT else None

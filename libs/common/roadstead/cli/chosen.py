"""What the options of the program chose, for the one command that a process runs."""

from roadstead.cli.context import Choice, Context, load_context

choice = Choice()


def context() -> Context:
    """The context in effect; UserError when there is none of that name."""
    return load_context(choice)

"""What stops an import."""


class ImportRefused(Exception):
    """One line for the person at the terminal: what is wrong, where, and what helps."""

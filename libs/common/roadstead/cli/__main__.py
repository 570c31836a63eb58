"""`python -m roadstead.cli` is the `roadstead` command."""

from roadstead.cli.main import main

main()

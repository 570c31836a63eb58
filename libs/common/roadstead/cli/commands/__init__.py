"""The commands, one group a file; `main.py` hangs them into one program."""

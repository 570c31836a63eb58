"""The `roadstead` command.

A client of the bus like any other: what it shows comes from requests and STATUS messages, what it changes goes through the same
requests.  Only the local stack and the operators' commands know more (processes, database, sealing keys), and only from a context.
"""

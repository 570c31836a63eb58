"""Rows and the few whole operations on them, each one transaction that no session leaves."""

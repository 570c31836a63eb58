"""Sweeps: reads the cloud in paged lists and compares it with the status of everything."""

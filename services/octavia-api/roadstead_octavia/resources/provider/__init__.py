"""Providers: what this deployment can load balance with."""

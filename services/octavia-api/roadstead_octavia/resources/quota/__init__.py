"""Quotas: how many objects of each kind a project may have."""

"""Availability zones, known by their names."""

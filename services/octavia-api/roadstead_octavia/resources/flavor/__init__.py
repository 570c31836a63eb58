"""Flavors: named choices of a flavor profile."""

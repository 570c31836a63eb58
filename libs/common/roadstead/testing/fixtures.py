"""Pytest fixtures of the product, registered as a plugin by the distribution's entry point."""

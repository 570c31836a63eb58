"""Alembic revisions of the worker's schema."""

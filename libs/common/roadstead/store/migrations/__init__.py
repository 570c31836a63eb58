"""Alembic's folder: `versions` holds the revisions, oldest first by their number."""

"""Alembic's folder for the schema `octavia`: `versions` holds the revisions, oldest first by their number."""

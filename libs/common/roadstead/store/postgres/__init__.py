"""The store on PostgreSQL: one database, one schema per service."""

from roadstead.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]

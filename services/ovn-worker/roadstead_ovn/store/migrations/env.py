"""Runs revisions on one schema over a connection that the caller gives; see roadstead.store.migrate.

Revisions name tables without a schema: the search path is the schema under migration.
"""

from alembic import context
from sqlalchemy import Connection, text

connection: Connection | None = context.config.attributes.get("connection")
schema: str | None = context.config.attributes.get("schema")
if connection is None or schema is None:
    raise SystemExit("migrations run with `roadstead migrate`, which gives them a connection and a schema")

connection.execute(text(f"SET search_path TO {schema}"))
connection.commit()  # Alembic begins its own transactions only where none is open
context.configure(connection=connection, version_table_schema=schema, transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()

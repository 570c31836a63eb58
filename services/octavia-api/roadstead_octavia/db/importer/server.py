"""Rows from a running MariaDB or MySQL server, in one consistent snapshot; nothing is written there.

The driver (PyMySQL) is an extra of the distribution: only those who import from a server need it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from roadstead_octavia.db.importer.problem import ImportRefused

WAIT = 30


def rows(url: str, tables: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(table, row) of those tables that the server has.  url: `mysql://user:password@host:port/database`, as the original's
    [database]connection has it."""
    try:
        import pymysql  # type: ignore[import-untyped,unused-ignore,import-not-found]  # an extra that may be missing
        import pymysql.cursors  # type: ignore[import-untyped,unused-ignore,import-not-found]  # an extra that may be missing
    except ImportError:
        raise ImportRefused(
            "reading from a server needs PyMySQL: install roadstead-octavia-api[import], or import a dump"
        ) from None
    address = urlsplit(url)
    if not address.hostname or not address.path.strip("/"):
        raise ImportRefused("the address must be mysql://user:password@host:port/database")
    try:
        connection = pymysql.connect(
            host=address.hostname,
            port=address.port or 3306,
            user=unquote(address.username or ""),
            password=unquote(address.password or ""),
            database=address.path.strip("/"),
            charset="utf8mb4",
            connect_timeout=WAIT,
            read_timeout=WAIT * 10,
            cursorclass=pymysql.cursors.SSDictCursor,
        )
    except pymysql.MySQLError as error:
        raise ImportRefused(f"the server at {address.hostname} cannot be read: {error.args[-1]}") from None
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            cursor.execute("SHOW TABLES")
            there = {next(iter(row.values())) for row in cursor.fetchall()}
            for table in tables:
                if table not in there:
                    continue
                cursor.execute(f"SELECT * FROM `{table}`")  # noqa: S608 - one of our own names
                while batch := cursor.fetchmany(1000):
                    for row in batch:
                        yield table, row
    except pymysql.MySQLError as error:
        raise ImportRefused(f"reading stopped: {error.args[-1]}") from None
    finally:
        connection.close()

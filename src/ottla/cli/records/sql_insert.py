"""`ottla sql "insert into TOPIC select …"`: write the rows of a query to a topic in one transaction."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ottla.cli.options import PATIENCE_SECONDS, admin_settings, client_settings, read_as_usage, usage_error
from ottla.cli.output import echo
from ottla.client.admin.group_timeline import counted
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    import pyarrow as pa

INSERT = re.compile(
    r"""^\s*insert\s+into\s+(?:(['"])(?P<quoted>[^'"]+)\1|(?P<plain>[\w.\-]+))\s*"""
    r"""(?:\(\s*(?P<columns>[^()]*?)\s*\)\s*)?(?P<query>(?:select|with|from|values|table)\b.*)$""",
    re.IGNORECASE | re.DOTALL,
)
COLUMNS = ("key", "value", "headers", "timestamp", "partition")
"""The columns of a topic that can be written."""
READ_ONLY = ("topic", "offset", "timestamp_type")
"""The columns that only a read has: the broker decides them."""


class Insert(NamedTuple):
    """The parts of `insert into TOPIC (COLUMNS) QUERY`."""

    topic: str
    columns: tuple[str, ...]
    """The names in parentheses; empty if there are none."""
    query: str


def parse_insert(statement: str, place: str | None = None) -> Insert | None:
    """Return the parts of an insert statement; None for other statements. `place` is the option `--to`."""
    found = INSERT.match(statement)
    if found is None:
        return None
    if place is not None:
        raise usage_error("--to is for queries: insert writes to a topic")
    names = tuple(name.strip().strip('"') for name in (found["columns"] or "").split(",") if name.strip())
    return Insert(found["quoted"] or found["plain"], names, found["query"])


def insert_rows(insert: Insert, table: pa.Table, bootstrap: str, settings: tuple[str, ...]) -> None:
    """Write the rows in one transaction, and print their number. Readers of committed records see all of them, or none."""
    from ottla.client.admin import Admin
    from ottla.client.work.settings import producer_settings

    rows = checked_rows(insert, table)
    with read_as_usage():
        given = client_settings(bootstrap, settings, default_api_timeout_ms=int(PATIENCE_SECONDS * 1000))
        common = producer_settings(given, {})
    with Admin(admin_settings(given)) as admin:
        admin.describe_topics([insert.topic])  # writing would create an unknown topic
    if rows.num_rows:
        write_rows(insert.topic, rows, common)
    echo(f"{counted(rows.num_rows, 'record')} written to {escape_controls(insert.topic)} in one transaction")


def write_rows(topic: str, rows: pa.Table, settings: Mapping[str, Any]) -> None:
    """Write rows in one transaction, which an error aborts."""
    from ottla.client.producer import Producer

    named: dict[str, Any] = {name: name for name in ("headers", "timestamp", "partition") if name in rows.column_names}
    key = "key" if "key" in rows.column_names else None
    with Producer(settings, transactional_id=f"ottla-sql-{uuid.uuid4()}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        try:
            producer.send_table(topic, rows, key=key, **named)
            producer.commit_transaction()  # raises the error of any row
        except BaseException as error:
            producer.abort_transaction()
            if isinstance(error, ValueError):  # such as a partition that does not exist
                raise click.ClickException(str(error)) from None
            raise


def checked_rows(insert: Insert, table: pa.Table) -> pa.Table:
    """Return the rows with the names of a topic's columns. Raises ClickException if they do not fit a topic."""
    if insert.columns:
        if len(insert.columns) != table.num_columns:
            raise click.ClickException(
                f"insert names {len(insert.columns)} columns ({', '.join(insert.columns)}), and the query returns "
                f"{table.num_columns}: make them as many"
            )
        table = table.rename_columns(list(insert.columns))
    check_names(table.column_names)
    for name in table.column_names:
        check_type(name, str(table.schema.field(name).type))
    return drop_untyped_columns(table)


def check_names(names: Sequence[str]) -> None:
    for name in names:
        if name in READ_ONLY:
            raise click.ClickException(
                f"the column {name} cannot be written: the broker decides it; select only {', '.join(COLUMNS)}"
            )
        if name not in COLUMNS:
            raise click.ClickException(
                f"a topic has no column {name!r}: select {', '.join(COLUMNS)}; several values become one with "
                f"json_object('{name}', …) as value"
            )
        if names.count(name) > 1:
            raise click.ClickException(f"the query returns {name} {names.count(name)} times: select it once")
    if "value" not in names:
        raise click.ClickException("the query returns no column value: name one of its columns with … as value")


def check_type(name: str, kind: str) -> None:
    """Raise an error if a column's type, as Arrow names it, does not fit."""
    fitting, remedy = {
        "key": (("string", "binary", "large_", "null"), "cast(… as varchar) as key"),
        "value": (("string", "binary", "large_", "null"), "to_json(…) as value, or cast(… as varchar) as value"),
        "timestamp": (("timestamp", "int", "null"), "cast(… as timestamp) as timestamp"),
        "partition": (("int", "uint", "null"), "cast(… as integer) as partition"),
        "headers": (("list<", "null"), "a list of {'key': text, 'value': bytes}"),
    }[name]
    if not kind.startswith(fitting):
        raise click.ClickException(f"the column {name} is {kind}, which does not fit: write {remedy}")


def drop_untyped_columns(table: pa.Table) -> pa.Table:
    """Return the table without columns of nulls only, which have no type."""
    empty = [name for name in table.column_names if name != "value" and str(table.schema.field(name).type) == "null"]
    return table.drop_columns(empty) if empty else table

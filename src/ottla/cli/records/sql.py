"""`ottla sql`: query topics as tables with DuckDB."""

from __future__ import annotations

import csv
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.options import (
    PATIENCE_SECONDS,
    bootstrap_server,
    client_settings,
    read_as_usage,
    settings_option,
    usage_error,
)
from ottla.cli.output import echo, to_json
from ottla.cli.records.consume import consumer_at
from ottla.cli.records.moments import moment_of
from ottla.cli.records.reading import StartPosition, offsets_of, partitions_of
from ottla.cli.records.record_format import to_readable
from ottla.cli.tables import format_table
from ottla.extras import extra
from ottla.pipelines.databases.identifiers import quote_identifier

if TYPE_CHECKING:
    from ottla.model import TopicPartition

INTERRUPTED = "Query interrupted"
"""The text of DuckDB's error after Ctrl-C, which is a plain RuntimeError."""
NO_TABLE = re.compile("^Catalog Error: Table with name .* does not exist")
FILES: Mapping[str, Callable[[Any, str], None]] = {
    ".parquet": lambda relation, place: relation.write_parquet(place),
    ".csv": lambda relation, place: relation.write_csv(place),
}
"""The writer of a result, by the suffix of the file."""


@click.command()
@click.argument("query")
@bootstrap_server
@click.option(
    "--format", "form", type=click.Choice(("text", "json")), default="text", show_default=True, help="Format of values."
)
@click.option("--tail", metavar="N", type=click.IntRange(1), help="Read only the last N offsets of each partition.")
@click.option(
    "--from-time", metavar="TIME", help="Read only records from a time on: 2026-01-31T12:00, -10m, or ms since 1970."
)
@click.option("--output", type=click.Choice(("table", "csv", "json")), default="table", show_default=True)
@click.option("--json", "in_json", is_flag=True, help="Same as --output json.")
@click.option(
    "--to", "place", metavar="FILE", type=click.Path(dir_okay=False), help="Write to a .parquet or .csv file."
)
@settings_option("consumer")
def sql(
    query: str,
    bootstrap_server: str,
    form: str,
    tail: int | None,
    from_time: str | None,
    output: str,
    in_json: bool,
    place: str | None,
    settings: tuple[str, ...],
) -> None:
    """Query topics as they are now: ottla sql "select key, count(*) from 'orders' group by key".

    The columns of a topic are topic, partition, offset, timestamp, timestamp_type, key, value and headers. Keys and
    values are text if all of them are UTF-8, else bytes; with --format json a value's fields are value.field.
    The topics of the query are read into memory, from the beginning or from --tail or --from-time.
    """
    with extra("sql"):
        import duckdb
    write = writer_of(place)
    from_ms = None if from_time is None else moment_of("--from-time", from_time, int(time.time() * 1000))
    where = StartPosition(tail=tail, from_ms=from_ms).check()
    session = duckdb.connect()
    try:
        for name, table in topics_in(query, bootstrap_server, settings, where).items():
            session.register(f"{name} of kafka", table)
            session.execute(f"create view {quote_identifier(name)} as {view_of(session, f'{name} of kafka', form)}")
        relation = session.sql(query)
        if relation is None:
            raise usage_error("QUERY must return rows, such as select")
        if write is not None and place is not None:
            write(relation, place)
        else:
            show_rows(relation.columns, relation.fetchall(), "json" if in_json else output)
    except duckdb.InterruptException:
        raise click.Abort from None
    except RuntimeError as error:
        if str(error) != INTERRUPTED:
            raise
        raise click.Abort from None
    except duckdb.Error as error:
        raise click.ClickException(sentence_of(error)) from None
    finally:
        session.close()


def writer_of(place: str | None) -> Callable[[Any, str], None] | None:
    """Return the writer for the file of `--to`."""
    if place is None:
        return None
    if (end := Path(place).suffix) not in FILES:
        raise usage_error(f"--to {place} must end with {' or '.join(FILES)}")
    return FILES[end]


def topics_in(query: str, bootstrap: str, settings: tuple[str, ...], where: StartPosition) -> dict[str, Any]:
    """Return an Arrow table for each topic that follows a `from`, a `join` or a comma."""
    with consumer_at(bootstrap, settings, isolation_level="read_committed") as consumer:
        names = [name for name in sorted(consumer.topics()) if is_named(name, query)]
        starts: dict[TopicPartition, int] = {}
        for name in names if where.is_given else ():
            starts |= offsets_of(consumer, partitions_of(consumer, name, None, bootstrap), where)
    return {name: table_of(name, bootstrap, settings, starts) for name in names}


def is_named(topic: str, query: str) -> bool:
    pattern = rf"""(?:\bfrom|\bjoin|,)\s*(?:(['"]){re.escape(topic)}\1|{re.escape(topic)}(?![\w.'"-]))"""
    return re.search(pattern, query, re.IGNORECASE) is not None


def table_of(topic: str, bootstrap: str, settings: tuple[str, ...], starts: Mapping[TopicPartition, int]) -> Any:
    from ottla.client.consumer.topic_table import read_table

    with read_as_usage():
        given = client_settings(bootstrap, settings, default_api_timeout_ms=int(PATIENCE_SECONDS * 1000))
    mine = {tp: start for tp, start in starts.items() if tp.topic == topic}
    table = read_table(topic, given, start=mine, include_headers=True)
    for name in ("key", "value"):
        table = as_text(table, name)
    return table


def as_text(table: Any, name: str) -> Any:
    """Return the table with the column as text, if all of it is UTF-8."""
    try:
        column = table.column(name).cast("string")
    except ValueError:
        return table
    return table.set_column(table.column_names.index(name), name, column)


def view_of(session: Any, table: str, form: str) -> str:
    """Return the query of a topic's view; with JSON, a value's fields get types that fit all records."""
    whole = f"select * from {quote_identifier(table)}"
    if form != "json":
        return whole
    ((structure,),) = session.sql(f"select json_group_structure(value::json) from {quote_identifier(table)}").fetchall()
    if structure is None:
        return whole
    fields = str(structure).replace("'", "''")
    return f"select * replace (from_json(value, '{fields}') as value) from {quote_identifier(table)}"


def sentence_of(error: Exception) -> str:
    """Return the first line of DuckDB's error; for an unknown table, explain that it is a topic."""
    first = str(error).partition("\n")[0]
    if NO_TABLE.search(first):
        return f"{first.rstrip('!')}: this user can see no topic of that name; ottla topics list prints the topics"
    return first


def show_rows(columns: list[str], rows: Iterable[tuple[Any, ...]], output: str) -> None:
    if output == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([to_plain(cell) for cell in row] for row in rows)
    elif output == "json":
        found = [{name: to_plain(cell) for name, cell in zip(columns, row, strict=True)} for row in rows]
        echo(to_json(found, indent=2, default=str))
    else:
        echo(format_table(columns, [[to_plain(cell) for cell in row] for row in rows]))


def to_plain(cell: Any) -> Any:
    """Return bytes as text if they are UTF-8."""
    return to_readable(cell) if isinstance(cell, bytes) else cell

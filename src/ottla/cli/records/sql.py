"""`ottla sql`: query topics as tables with DuckDB."""

from __future__ import annotations

import csv
import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
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
from ottla.cli.records.registered import open_registry, registry_config_option, registry_option
from ottla.cli.records.sql_insert import insert_rows, parse_insert
from ottla.cli.tables import format_table
from ottla.client.admin.group_timeline import counted
from ottla.escaping import escape_controls
from ottla.extras import extra
from ottla.pipelines.databases.identifiers import quote_identifier

if TYPE_CHECKING:
    from ottla.model import TopicPartition
    from ottla.schemas import SchemaRegistryClient

INTERRUPTED = "Query interrupted"
"""The text of DuckDB's error after Ctrl-C, which is a plain RuntimeError."""
REMEDIES = {
    re.compile("^Catalog Error: Table with name .* does not exist"): (
        "this user can see no topic of that name; ottla topics list prints the topics"
    ),
    re.compile('Cannot extract field .* from expression "(key|value)"'): (
        "the values are text; with --format json, their fields are value.field"
    ),
    re.compile("^Conversion Error: Malformed JSON"): "--format json needs JSON in every value; omit it to read text",
}
"""The remedies for DuckDB's errors, by what their first lines contain."""
WORD_OF_SQL = re.compile(r"""(?<!["'.\w])(offset|partition)(?!["'\w])""", re.IGNORECASE)
CANDIDATES = re.compile(r"^Candidate bindings: (.+)$", re.MULTILINE)
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
@click.option("-o", "--output", type=click.Choice(("table", "csv", "json")), default="table", show_default=True)
@click.option("--json", "in_json", is_flag=True, help="Same as --output json.")
@click.option(
    "--to", "place", metavar="FILE", type=click.Path(dir_okay=False), help="Write to a .parquet or .csv file."
)
@registry_option
@registry_config_option
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
    registry: str | None,
    registry_config: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Query topics as they are now: ottla sql "select key, count(*) from 'orders' group by key".

    The columns of a topic are topic, partition, offset, timestamp, timestamp_type, key, value and headers. Keys and
    values are text if all of them are UTF-8, else bytes; with --format json a value's fields are value.field. With
    --registry, the same holds for keys and values that begin with a schema id: Avro, JSON Schema and Protobuf.
    insert into TOPIC select … as key, … as value writes its rows to a topic, in one transaction.
    The topics of the query are read into memory, from the beginning or from --tail or --from-time.
    """
    with extra("sql"):
        import duckdb
    write, insert = writer_of(place), parse_insert(query, place)
    from_ms = None if from_time is None else moment_of("--from-time", from_time, int(time.time() * 1000))
    where = StartPosition(tail=tail, from_ms=from_ms).check()
    has_registry = registry is not None or registry_config is not None
    client = open_registry(registry, registry_config) if has_registry else None
    session = duckdb.connect()
    try:
        tables = topics_in(query, bootstrap_server, settings, where)
        create_views(session, tables, form, client)
        relation = session.sql(query if insert is None else insert.query)
        if relation is None:
            raise usage_error("QUERY must return rows, such as select")
        if insert is not None:
            insert_rows(insert, relation.to_arrow_table(), bootstrap_server, settings)
        elif write is not None and place is not None:
            write(relation, place)
        else:
            show_rows(relation.columns, rows := relation.fetchall(), "json" if in_json else output)
            report_no_rows(rows, tables)
    except duckdb.InterruptException:
        raise click.Abort from None
    except RuntimeError as error:
        if str(error) != INTERRUPTED:
            raise
        raise click.Abort from None
    except duckdb.Error as error:
        raise click.ClickException(sentence_of(error, query)) from None
    finally:
        session.close()
        if client is not None:
            client.close()


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
        names = choose_spellings([name for name in sorted(consumer.topics()) if is_named(name, query)], query)
        starts: dict[TopicPartition, int] = {}
        for name in names if where.is_given else ():
            starts |= offsets_of(consumer, partitions_of(consumer, name, None, bootstrap), where)
    return {name: table_of(name, bootstrap, settings, starts) for name in names}


def is_named(topic: str, query: str, *, exactly: bool = False) -> bool:
    """Return True if a query reads a topic; without `exactly` in any case, as in SQL."""
    name = re.escape(topic) if exactly else f"(?i:{re.escape(topic)})"
    pattern = rf"""(?:(?i:\bfrom|\bjoin)|,)\s*(?:(['"]){name}\1|{name}(?![\w.'"-]))"""
    return re.search(pattern, query) is not None


def choose_spellings(topics: list[str], query: str) -> list[str]:
    """Return the topics; of several that differ only in case, the one that the query spells."""
    same: dict[str, list[str]] = {}
    for topic in topics:
        same.setdefault(topic.lower(), []).append(topic)
    chosen = []
    for found in same.values():
        spelled = found if len(found) == 1 else [topic for topic in found if is_named(topic, query, exactly=True)]
        if len(spelled) != 1:
            raise click.ClickException(
                f"the topics {' and '.join(map(escape_controls, found))} differ only in case, which SQL ignores: "
                "query one of them, as it is spelled"
            )
        chosen += spelled
    return chosen


def table_of(topic: str, bootstrap: str, settings: tuple[str, ...], starts: Mapping[TopicPartition, int]) -> Any:
    from ottla.client.consumer.topic_table import read_table

    with read_as_usage():
        given = client_settings(bootstrap, settings, default_api_timeout_ms=int(PATIENCE_SECONDS * 1000))
    mine = {tp: start for tp, start in starts.items() if tp.topic == topic}
    return read_table(topic, given, start=mine, include_headers=True)


def create_views(session: Any, tables: Mapping[str, Any], form: str, client: SchemaRegistryClient | None) -> None:
    """Create the view of each topic."""
    for name, table in tables.items():
        shown, json_columns = (table, set[str]()) if client is None else decode_registered(table, name, client)
        if form == "json" and is_binary(shown, "value"):
            json_columns.add("value")
        source = f"{name} of kafka"
        session.register(source, as_texts(shown))
        session.execute(f"create view {quote_identifier(name)} as {view_of(session, source, json_columns)}")


def decode_registered(table: Any, topic: str, client: SchemaRegistryClient) -> tuple[Any, set[str]]:
    """Return the table with registered keys and values decoded, and the columns that are JSON text then."""
    with extra("schemas"):
        from ottla.schemas.registered_topics import RegisteredTopics

    found = RegisteredTopics(client).decode(table, topic)
    return found.table, set(found.in_json)


def as_texts(table: Any) -> Any:
    """Return the table with keys and values as text, if all of them are UTF-8."""
    for name in ("key", "value"):
        table = as_text(table, name)
    return table


def as_text(table: Any, name: str) -> Any:
    """Return the table with the column as text, if all of it is UTF-8."""
    if not is_binary(table, name):
        return table
    try:
        column = table.column(name).cast("string")
    except ValueError:
        return table
    return table.set_column(table.column_names.index(name), name, column)


def is_binary(table: Any, name: str) -> bool:
    return str(table.schema.field(name).type) == "binary"


def view_of(session: Any, table: str, in_json: Iterable[str]) -> str:
    """Return the query of a topic's view; the fields of a JSON column get types that fit all records."""
    replaced: list[str] = []
    for name in sorted(in_json):
        query = f"select json_group_structure({name}::json) from {quote_identifier(table)}"
        ((structure,),) = session.sql(query).fetchall()
        if structure is not None:
            fields = str(structure).replace("'", "''")
            replaced.append(f"from_json({name}, '{fields}') as {name}")
    changes = f" replace ({', '.join(replaced)})" if replaced else ""
    return f"select *{changes} from {quote_identifier(table)}"


def sentence_of(error: Exception, query: str) -> str:
    """Return the first line of DuckDB's error, with the remedy for common ones."""
    first, _, rest = str(error).partition("\n")
    remedy = next((remedy for pattern, remedy in REMEDIES.items() if pattern.search(first)), None)
    if remedy is None and WORD_OF_SQL.search(query) and "Parser Error" in first:
        remedy = 'offset and partition are words of SQL: write "offset" and "partition" in double quotes'
    if remedy is None and (columns := CANDIDATES.search(rest)):
        remedy = f"did you mean {columns[1]}?"
    return first if remedy is None else f"{first.rstrip('!')}: {remedy}"


def report_no_rows(rows: Collection[Any], tables: Mapping[str, Any]) -> None:
    """Print how many records a query without a result has read."""
    if not rows:
        counts = [f"{counted(table.num_rows, 'record')} of {escape_controls(name)}" for name, table in tables.items()]
        echo(f"no rows match; read: {', '.join(counts) or 'no topic'}", err=True)


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

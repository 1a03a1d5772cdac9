"""`ottla bench produce | consume | latency | transactions`: measure any Kafka broker with Ottla's clients."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.benching.latencies import COLUMNS, histogram, summary
from ottla.cli.benching.runs import ProgressCallback, Run, topic_for
from ottla.cli.benching.runs import consume as run_consume
from ottla.cli.benching.runs import latency as run_latency
from ottla.cli.benching.runs import produce as run_produce
from ottla.cli.benching.runs import transactions as run_transactions
from ottla.cli.command_groups import CommandGroup
from ottla.cli.options import (
    PATIENCE_SECONDS,
    admin_settings,
    bootstrap_server,
    client_settings,
    json_option,
    read_as_usage,
    settings_option,
)
from ottla.cli.output import echo
from ottla.cli.tables import format_table, to_objects

if TYPE_CHECKING:
    pass

F = TypeVar("F", bound=Callable[..., Any])
RATES = ("RECORDS", "SECONDS", "RECORDS/S", "MB/S")
TICK = 1000
"""The number of records between two updates of the progress bar."""


@click.group(cls=CommandGroup)
def bench() -> None:
    """Measure the throughput and the latency of a cluster with Ottla's clients.

    Without --topic a topic is created for the run and deleted after it.
    """


def place_options(command: F) -> F:
    """Add the options that all runs have."""
    topic = click.option(
        "-t", "--topic", metavar="TOPIC", help="An existing topic. Its records and those of the run are kept."
    )
    partitions = click.option(
        "-p",
        "--partitions",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="Partitions of the topic that is created for the run.",
    )
    size = click.option(
        "--record-size",
        metavar="BYTES",
        type=click.IntRange(0),
        default=100,
        show_default=True,
        help="Bytes of each value.",
    )
    return bootstrap_server(topic(partitions(size(json_option(command)))))


def count_option(name: str, default: int, what: str) -> Callable[[F], F]:
    return click.option(name, "count", type=click.IntRange(1), default=default, show_default=True, help=what)


@bench.command()
@place_options
@count_option("--num-records", 1_000_000, "Number of records to send.")
@click.option(
    "--throughput", type=click.FloatRange(0, min_open=True), help="Records per second; without it, as many as possible."
)
@settings_option("producer")
def produce(
    bootstrap_server: str, topic: str | None, partitions: int, record_size: int, in_json: bool, count: int,
    throughput: float | None, settings: tuple[str, ...],
) -> None:  # fmt: skip
    """Send records; a latency is the time from `send` to the broker's acknowledgement."""
    from ottla.client.producer import Producer

    with read_as_usage():
        producer = Producer(client_settings(bootstrap_server, settings))
    with (
        topic_at(bootstrap_server, settings, topic, partitions) as name,
        producer,
        progress("sending", count) as on_progress,
    ):
        run = run_produce(producer, name, count, record_size, throughput, on_progress)
    show(RATES + COLUMNS, [format_rates(run) + summary(run.latencies)], run.latencies, in_json=in_json)


@bench.command()
@place_options
@count_option("--num-records", 1_000_000, "Maximum number of records to read; without --topic they are sent first.")
@click.option("--arrow", is_flag=True, help="Read Arrow columns (poll_arrow) instead of records (poll).")
@settings_option("consumer")
def consume(
    bootstrap_server: str, topic: str | None, partitions: int, record_size: int, in_json: bool, count: int,
    arrow: bool, settings: tuple[str, ...],
) -> None:  # fmt: skip
    """Read records from the beginning of a topic."""
    from ottla.client.consumer import Consumer

    with read_as_usage():
        consumer = Consumer(client_settings(bootstrap_server, settings, enable_auto_commit=False))
    with topic_at(bootstrap_server, settings, topic, partitions) as name, consumer:
        if topic is None:
            produce_records(bootstrap_server, settings, name, count, record_size)
        with progress("reading", count) as on_progress:
            run = run_consume(consumer, name, count, arrow=arrow, on_progress=on_progress)
    show(RATES, [format_rates(run)], [], in_json=in_json)


@bench.command()
@place_options
@count_option("--num-records", 1000, "Number of records, sent one after the other.")
@settings_option("client")
def latency(
    bootstrap_server: str, topic: str | None, partitions: int, record_size: int, in_json: bool, count: int,
    settings: tuple[str, ...],
) -> None:  # fmt: skip
    """Send one record at a time; measure the time to the acknowledgement and to its arrival at a consumer."""
    from ottla.client.consumer import Consumer
    from ottla.client.producer import Producer

    with read_as_usage():
        producer = Producer(client_settings(bootstrap_server, settings, linger_ms=0))
        consumer = Consumer(client_settings(bootstrap_server, settings, enable_auto_commit=False))
    topic_of_run, progress_bar = (
        topic_at(bootstrap_server, settings, topic, partitions),
        progress("sending", count, tick=1),
    )
    with topic_of_run as name, producer, consumer, progress_bar as on_progress:
        taken, seen = run_latency(producer, consumer, name, count, record_size, on_progress)
    rows = [("acknowledged", count, *summary(taken.latencies)), ("consumed", count, *summary(seen.latencies))]
    show(("UNTIL", "RECORDS", *COLUMNS), rows, seen.latencies, in_json=in_json)


@bench.command()
@place_options
@count_option("--num-transactions", 1000, "Number of transactions, one after the other.")
@click.option("--records", type=click.IntRange(1), default=100, show_default=True, help="Records in each transaction.")
@settings_option("producer")
def transactions(
    bootstrap_server: str, topic: str | None, partitions: int, record_size: int, in_json: bool, count: int,
    records: int, settings: tuple[str, ...],
) -> None:  # fmt: skip
    """Send records in transactions; a latency is the time from the begin to the commit of a transaction."""
    from uuid import uuid4

    from ottla.client.producer import Producer

    with read_as_usage():
        own = f"ottla-bench-{uuid4().hex[:8]}"
        producer = Producer(client_settings(bootstrap_server, settings, transactional_id=own))
    topic_of_run, progress_bar = (
        topic_at(bootstrap_server, settings, topic, partitions),
        progress("committing", count, tick=1),
    )
    with topic_of_run as name, producer, progress_bar as on_progress:
        run = run_transactions(producer, name, count, records, record_size, on_progress)
    row = (count, *format_rates(run._replace(number=count * records)), round(run.rate, 1), *summary(run.latencies))
    columns = ("TRANSACTIONS", *RATES, "TRANSACTIONS/S", *COLUMNS)
    show(columns, [row], run.latencies, in_json=in_json)


@contextmanager
def topic_at(bootstrap: str, settings: tuple[str, ...], given: str | None, partitions: int) -> Iterator[str]:
    """Yield the topic of a run.

    Close the clients inside this context: a producer that still has records would create the topic again.
    """
    from ottla.client.admin import Admin

    patience_ms = int(PATIENCE_SECONDS * 1000)
    way = admin_settings(client_settings(bootstrap, settings, default_api_timeout_ms=patience_ms))
    with Admin(way) as admin, topic_for(admin, given, partitions) as name:
        yield name


def produce_records(bootstrap: str, settings: tuple[str, ...], topic: str, count: int, size: int) -> None:
    from ottla.client.producer import Producer

    way = admin_settings(client_settings(bootstrap, settings))
    with Producer(way) as producer, progress("sending", count) as on_progress:
        run_produce(producer, topic, count, size, None, on_progress)


def format_rates(run: Run) -> tuple[Any, ...]:
    return run.number, round(run.seconds, 3), round(run.rate), round(run.mb_rate, 1)


@contextmanager
def progress(what: str, total: int, tick: int = TICK) -> Iterator[ProgressCallback]:
    """Show a progress bar with rate and remaining time on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda count: None
        return
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    waiting = done = 0
    started = time.monotonic()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total, rate="")

        def on_progress(count: int) -> None:
            nonlocal waiting, done
            waiting += count
            if waiting >= tick:
                done += waiting
                bar.update(task, completed=done, rate=f"{done / (time.monotonic() - started):,.0f}/s")
                waiting = 0

        yield on_progress


def show(columns: Sequence[str], rows: Sequence[Sequence[Any]], spread: Sequence[float], *, in_json: bool) -> None:
    """Print a table and a histogram of the latencies below it."""
    if in_json:
        echo(json.dumps(to_objects(columns, rows), indent=2))
        return
    echo(format_table(columns, rows))
    lines = histogram(spread)
    if lines:
        echo("\n" + "\n".join(lines))

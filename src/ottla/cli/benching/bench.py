"""`ottla bench produce | consume | latency | transactions`: against any broker, by our own clients."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.benching.latencies import COLUMNS, histogram, summary
from ottla.cli.benching.runs import Run, Tell, topic_for
from ottla.cli.benching.runs import consume as run_consume
from ottla.cli.benching.runs import latency as run_latency
from ottla.cli.benching.runs import produce as run_produce
from ottla.cli.benching.runs import transactions as run_transactions
from ottla.cli.options import (
    PATIENCE_SECONDS,
    bootstrap_server,
    client_settings,
    json_option,
    of_an_admin,
    read_as_usage,
    settings_option,
)
from ottla.cli.output import echo
from ottla.cli.tables import aligned, objects
from ottla.cli.verbs import Verbs

if TYPE_CHECKING:
    pass

F = TypeVar("F", bound=Callable[..., Any])
RATES = ("RECORDS", "SECONDS", "RECORDS/S", "MB/S")
TICK = 1000
"""So many records the progress is told of at a time."""


@click.group(cls=Verbs)
def bench() -> None:
    """Measure how quickly a cluster takes records and hands them out, by our own clients.

    Without --topic a topic is made for the run, and deleted after it.
    """


def place_options(command: F) -> F:
    """What all of them take."""
    topic = click.option(
        "--topic", metavar="TOPIC", help="One that is there; its records stay, and so do those that are sent."
    )
    partitions = click.option(
        "--partitions",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="Of the topic that is made for the run.",
    )
    size = click.option(
        "--record-size", metavar="BYTES", type=click.IntRange(0), default=100, show_default=True, help="Of a value."
    )
    return bootstrap_server(topic(partitions(size(json_option(command)))))


def count_option(name: str, default: int, what: str) -> Callable[[F], F]:
    return click.option(name, "count", type=click.IntRange(1), default=default, show_default=True, help=what)


@bench.command()
@place_options
@count_option("--num-records", 1_000_000, "How many are sent.")
@click.option(
    "--throughput", type=click.FloatRange(0, min_open=True), help="Records a second, instead of as many as may be."
)
@settings_option("producer")
def produce(
    bootstrap_server: str, topic: str | None, partitions: int, record_size: int, in_json: bool, count: int,
    throughput: float | None, settings: tuple[str, ...],
) -> None:  # fmt: skip
    """Send records; a latency is the time from `send` until the broker has one."""
    from ottla.client.producer import Producer

    with read_as_usage():
        producer = Producer(client_settings(bootstrap_server, settings))
    with topic_at(bootstrap_server, settings, topic, partitions) as name, producer, progress("sending", count) as tell:
        run = run_produce(producer, name, count, record_size, throughput, tell)
    show(RATES + COLUMNS, [rates(run) + summary(run.latencies)], run.latencies, in_json=in_json)


@bench.command()
@place_options
@count_option("--num-records", 1_000_000, "How many are read at most; without --topic they are sent first.")
@click.option("--arrow", is_flag=True, help="As Arrow columns (poll_arrow), not as records (poll).")
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
            fill(bootstrap_server, settings, name, count, record_size)
        with progress("reading", count) as tell:
            run = run_consume(consumer, name, count, arrow=arrow, tell=tell)
    show(RATES, [rates(run)], [], in_json=in_json)


@bench.command()
@place_options
@count_option("--num-records", 1000, "How many, one after the other.")
@settings_option("client")
def latency(
    bootstrap_server: str, topic: str | None, partitions: int, record_size: int, in_json: bool, count: int,
    settings: tuple[str, ...],
) -> None:  # fmt: skip
    """Send one record at a time; how long until the broker has it, and until a consumer does."""
    from ottla.client.consumer import Consumer
    from ottla.client.producer import Producer

    with read_as_usage():
        producer = Producer(client_settings(bootstrap_server, settings, linger_ms=0))
        consumer = Consumer(client_settings(bootstrap_server, settings, enable_auto_commit=False))
    topic_of_run, told = topic_at(bootstrap_server, settings, topic, partitions), progress("sending", count, tick=1)
    with topic_of_run as name, producer, consumer, told as tell:
        taken, seen = run_latency(producer, consumer, name, count, record_size, tell)
    rows = [("acknowledged", count, *summary(taken.latencies)), ("consumed", count, *summary(seen.latencies))]
    show(("UNTIL", "RECORDS", *COLUMNS), rows, seen.latencies, in_json=in_json)


@bench.command()
@place_options
@count_option("--num-transactions", 1000, "How many, one after the other.")
@click.option("--records", type=click.IntRange(1), default=100, show_default=True, help="In each of them.")
@settings_option("producer")
def transactions(
    bootstrap_server: str, topic: str | None, partitions: int, record_size: int, in_json: bool, count: int,
    records: int, settings: tuple[str, ...],
) -> None:  # fmt: skip
    """Send records in transactions; a latency is that of a whole one, from its begin until it is committed."""
    from uuid import uuid4

    from ottla.client.producer import Producer

    with read_as_usage():
        own = f"ottla-bench-{uuid4().hex[:8]}"
        producer = Producer(client_settings(bootstrap_server, settings, transactional_id=own))
    topic_of_run, told = topic_at(bootstrap_server, settings, topic, partitions), progress("committing", count, tick=1)
    with topic_of_run as name, producer, told as tell:
        run = run_transactions(producer, name, count, records, record_size, tell)
    row = (count, *rates(run._replace(number=count * records)), round(run.rate, 1), *summary(run.latencies))
    columns = ("TRANSACTIONS", *RATES, "TRANSACTIONS/S", *COLUMNS)
    show(columns, [row], run.latencies, in_json=in_json)


@contextmanager
def topic_at(bootstrap: str, settings: tuple[str, ...], given: str | None, partitions: int) -> Iterator[str]:
    """The topic of a run. Clients are to be closed before its end: what a producer still has would make the topic again."""
    from ottla.client.admin import Admin

    patience_ms = int(PATIENCE_SECONDS * 1000)
    way = of_an_admin(client_settings(bootstrap, settings, default_api_timeout_ms=patience_ms))
    with Admin(way) as admin, topic_for(admin, given, partitions) as name:
        yield name


def fill(bootstrap: str, settings: tuple[str, ...], topic: str, count: int, size: int) -> None:
    from ottla.client.producer import Producer

    way = of_an_admin(client_settings(bootstrap, settings))
    with Producer(way) as producer, progress("sending", count) as tell:
        run_produce(producer, topic, count, size, None, tell)


def rates(run: Run) -> tuple[Any, ...]:
    return run.number, round(run.seconds, 3), round(run.rate), round(run.mb_rate, 1)


@contextmanager
def progress(what: str, total: int, tick: int = TICK) -> Iterator[Tell]:
    """A bar on standard error where that is a terminal, with how many a second and how long still."""
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
    begun = time.monotonic()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total, rate="")

        def tell(count: int) -> None:
            nonlocal waiting, done
            waiting += count
            if waiting >= tick:
                done += waiting
                bar.update(task, completed=done, rate=f"{done / (time.monotonic() - begun):,.0f}/s")
                waiting = 0

        yield tell


def show(columns: Sequence[str], rows: Sequence[Sequence[Any]], spread: Sequence[float], *, in_json: bool) -> None:
    """A table, and a picture of the latencies below it."""
    if in_json:
        echo(json.dumps(objects(columns, rows), indent=2))
        return
    echo(aligned(columns, rows))
    lines = histogram(spread)
    if lines:
        echo("\n" + "\n".join(lines))

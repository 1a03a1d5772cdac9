"""`ottla records produce | consume | head | tail | count | delete`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.options import bootstrap_server, json_lines_option, json_option, settings_option
from ottla.cli.records.consume import consume, consumer_at, print_records, where_option
from ottla.cli.records.delete import delete
from ottla.cli.records.produce import produce
from ottla.cli.records.reading import PartitionEnds, StartPosition, partitions_of, seek_to_start
from ottla.cli.records.record_format import heading_of, renderer
from ottla.cli.records.where import parse_condition
from ottla.cli.tables import show

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer
    from ottla.model import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])
COUNTS = ("TOPIC", "PARTITION", "RECORDS")
UPDATE_SECONDS = 1.0


@click.group(cls=CommandGroup)
def records() -> None:
    """Write, read, count and delete records."""


def read_options(command: F) -> F:
    """Add the options that `head` and `tail` share."""
    for option in (
        settings_option("consumer"),
        json_lines_option,
        where_option,
        click.option("--keys", is_flag=True, help="Print key, tab, value instead of only the value."),
        click.option(
            "--format", "form", metavar="text|json|csv|FORMAT", default="text", show_default=True, help="As in consume."
        ),
        click.option("-p", "--partition", type=click.IntRange(0), help="Only this partition."),
        click.option(
            "-n", "--count", "count", type=click.IntRange(1), default=10, show_default=True, help="Number of records."
        ),
        bootstrap_server,
        click.argument("topics", metavar="TOPIC...", nargs=-1, required=True),
    ):
        command = option(command)
    return command


def printer(
    form: str, keys: bool, in_json: bool, condition_text: str | None
) -> Callable[[Consumer, int | None, PartitionEnds | None], None]:
    """Return a function that prints a number of matching records, or those before an end. Invalid options raise now."""
    render = renderer(form, keys=keys, in_json=in_json)
    is_meant = None if condition_text is None else parse_condition(condition_text)

    def prints(consumer: Consumer, count: int | None, end: PartitionEnds | None) -> None:
        sys.stdout.buffer.write(heading_of(form))
        print_records(consumer, render, count, None, end, is_meant=is_meant)

    return prints


@records.command()
@read_options
def head(
    topics: tuple[str, ...],
    bootstrap_server: str,
    count: int,
    partition: int | None,
    form: str,
    keys: bool,
    condition_text: str | None,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Print the oldest records of topics."""
    prints = printer(form, keys, in_json, condition_text)
    with consumer_of_present_records(bootstrap_server, settings, topics, partition) as (consumer, _, end):
        prints(consumer, count, end)


@records.command()
@read_options
@click.option("-f", "--follow", is_flag=True, help="Continue with new records until Ctrl-C.")
def tail(
    topics: tuple[str, ...],
    bootstrap_server: str,
    count: int,
    partition: int | None,
    form: str,
    keys: bool,
    condition_text: str | None,
    in_json: bool,
    settings: tuple[str, ...],
    follow: bool,
) -> None:
    """Print the latest records of topics, --count of each partition."""
    prints = printer(form, keys, in_json, condition_text)
    with consumer_at_start(bootstrap_server, settings, topics, partition, StartPosition(tail=count)) as (
        consumer,
        chosen,
    ):
        prints(consumer, None, None if follow else PartitionEnds(consumer, chosen))


@records.command("count")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@bootstrap_server
@click.option("-p", "--partition", type=click.IntRange(0), help="Only this partition.")
@json_option
@settings_option("consumer")
def count_records(
    topics: tuple[str, ...], bootstrap_server: str, partition: int | None, in_json: bool, settings: tuple[str, ...]
) -> None:
    """Read topics to their ends and print the number of records of each partition.

    Offsets are not sufficient: compaction and transactions leave gaps.
    """
    counts: Counter[TopicPartition] = Counter()
    with consumer_of_present_records(bootstrap_server, settings, topics, partition) as (consumer, chosen, end):
        while not end.is_reached():
            for record in consumer.poll(UPDATE_SECONDS):
                counts[record.topic, record.partition] += 1  # type: ignore[index]
    show(COUNTS, [(*tp, counts[tp]) for tp in chosen], in_json=in_json)


@contextmanager
def consumer_of_present_records(
    bootstrap: str, settings: tuple[str, ...], topics: Sequence[str], partition: int | None
) -> Iterator[tuple[Consumer, list[TopicPartition], PartitionEnds]]:
    """Yield a consumer of all records that topics have now."""
    with consumer_at_start(bootstrap, settings, topics, partition, StartPosition(from_beginning=True)) as (
        consumer,
        chosen,
    ):
        yield consumer, chosen, PartitionEnds(consumer, chosen)


@contextmanager
def consumer_at_start(
    bootstrap: str, settings: tuple[str, ...], topics: Sequence[str], partition: int | None, where: StartPosition
) -> Iterator[tuple[Consumer, list[TopicPartition]]]:
    """Yield a consumer of topics that starts at `where`."""
    with consumer_at(bootstrap, settings) as consumer:
        chosen = [tp for topic in dict.fromkeys(topics) for tp in partitions_of(consumer, topic, partition, bootstrap)]
        consumer.assign(chosen)
        seek_to_start(consumer, chosen, where)
        yield consumer, chosen


for command in (produce, consume, delete):
    records.add_command(command)

"""`ottla records produce | consume | head | tail | count | delete`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.options import bootstrap_server, json_lines_option, json_option, settings_option
from ottla.cli.records.consume import consume, consumer_at, print_records, where_option
from ottla.cli.records.delete import delete
from ottla.cli.records.produce import produce
from ottla.cli.records.reading import Beginning, End, begin, partitions_of
from ottla.cli.records.record_format import heading_of, renderer
from ottla.cli.records.where import condition
from ottla.cli.tables import show
from ottla.cli.verbs import Verbs

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer
    from ottla.model import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])
COUNTS = ("TOPIC", "PARTITION", "RECORDS")
TURN_SECONDS = 1.0


@click.group(cls=Verbs)
def records() -> None:
    """Write, read, count and delete records."""


def look_options(command: F) -> F:
    """What `head` and `tail` have in common."""
    for option in (
        settings_option("consumer"),
        json_lines_option,
        where_option,
        click.option("--keys", is_flag=True, help="Key, tab, value instead of the value alone."),
        click.option(
            "--format", "form", metavar="text|json|csv|FORMAT", default="text", show_default=True, help="As of consume."
        ),
        click.option("--partition", type=click.IntRange(0), help="Only this partition."),
        click.option("-n", "--count", "count", type=click.IntRange(1), default=10, show_default=True, help="How many."),
        bootstrap_server,
        click.argument("topics", metavar="TOPIC...", nargs=-1, required=True),
    ):
        command = option(command)
    return command


def printer(
    form: str, keys: bool, in_json: bool, condition_text: str | None
) -> Callable[[Consumer, int | None, End | None], None]:
    """What prints so many of the records that are meant, or those up to an end; what of its options makes no sense is told now."""
    render = renderer(form, keys=keys, in_json=in_json)
    is_meant = None if condition_text is None else condition(condition_text)

    def prints(consumer: Consumer, count: int | None, end: End | None) -> None:
        sys.stdout.buffer.write(heading_of(form))
        print_records(consumer, render, count, None, end, is_meant=is_meant)

    return prints


@records.command()
@look_options
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
    """Print the oldest records of topics, and end."""
    prints = printer(form, keys, in_json, condition_text)
    with from_first_to_last(bootstrap_server, settings, topics, partition) as (consumer, _, end):
        prints(consumer, count, end)


@records.command()
@look_options
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes from now on, until Ctrl-C.")
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
    """Print the latest records of topics, so many of each partition, and end."""
    prints = printer(form, keys, in_json, condition_text)
    with of_topics(bootstrap_server, settings, topics, partition, Beginning(tail=count)) as (consumer, chosen):
        prints(consumer, None, None if follow else End(consumer, chosen))


@records.command("count")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@bootstrap_server
@click.option("--partition", type=click.IntRange(0), help="Only this partition.")
@json_option
@settings_option("consumer")
def count_records(
    topics: tuple[str, ...], bootstrap_server: str, partition: int | None, in_json: bool, settings: tuple[str, ...]
) -> None:
    """Read topics to their ends and print how many records each partition has.

    Offsets alone do not tell: compaction and transactions leave gaps.
    """
    counts: Counter[TopicPartition] = Counter()
    with from_first_to_last(bootstrap_server, settings, topics, partition) as (consumer, chosen, end):
        while not end.is_reached():
            for record in consumer.poll(TURN_SECONDS):
                counts[record.topic, record.partition] += 1  # type: ignore[index]
    show(COUNTS, [(*tp, counts[tp]) for tp in chosen], in_json=in_json)


@contextmanager
def from_first_to_last(
    bootstrap: str, settings: tuple[str, ...], topics: Sequence[str], partition: int | None
) -> Iterator[tuple[Consumer, list[TopicPartition], End]]:
    """A consumer of all that is in topics now."""
    with of_topics(bootstrap, settings, topics, partition, Beginning(from_beginning=True)) as (consumer, chosen):
        yield consumer, chosen, End(consumer, chosen)


@contextmanager
def of_topics(
    bootstrap: str, settings: tuple[str, ...], topics: Sequence[str], partition: int | None, where: Beginning
) -> Iterator[tuple[Consumer, list[TopicPartition]]]:
    """A consumer of topics that begins there."""
    with consumer_at(bootstrap, settings) as consumer:
        chosen = [tp for topic in dict.fromkeys(topics) for tp in partitions_of(consumer, topic, partition, bootstrap)]
        consumer.assign(chosen)
        begin(consumer, chosen, where)
        yield consumer, chosen


for command in (produce, consume, delete):
    records.add_command(command)

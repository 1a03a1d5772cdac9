"""`ottla dead-letters show | resend`: show records that could not be processed, and send them back to their origin.

Which dead letters were sent back is kept as the committed offsets of a group, with the finished offsets above them in the
metadata of the commit, as a worker does. Records and offsets are committed in one transaction, so each is sent back once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.consent import confirm, yes_option
from ottla.cli.options import bootstrap_server, client_settings, json_option, read_as_usage, settings_option
from ottla.cli.output import echo
from ottla.cli.records.consume import consumer_at, where_option
from ottla.cli.records.reading import PartitionEnds, partitions_of
from ottla.cli.records.where import as_text, parse_condition
from ottla.cli.tables import format_table, show

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer, ConsumerRecord
    from ottla.client.work.dead_letters import DeadLetter
    from ottla.model import OffsetAndMetadata, TopicPartition

F = TypeVar("F", bound=Callable[..., Any])
COLUMNS = ("PARTITION", "OFFSET", "ORIGIN", "KEY", "ATTEMPTS", "ERROR", "MESSAGE")
SENT = ("TOPIC", "PARTITION", "RECORDS")
GROUP = "ottla-dead-letters"
POLL_SECONDS = 1.0
MESSAGE_CHARACTERS = 80
"""The maximum length of a message in a table."""


@click.group(cls=CommandGroup)
def dead_letters() -> None:
    """Show the records that workers and pipelines could not process, and send them back to their origin."""


def selection_options(command: F) -> F:
    """Add the options of both commands."""
    for option in (
        settings_option("consumer"),
        json_option,
        click.option("--all", "everything", is_flag=True, help="Include those that were sent back before."),
        click.option(
            "-g", "--group", default=GROUP, show_default=True, help="The group whose offsets say what was sent back."
        ),
        where_option,
        click.option("-p", "--partition", type=click.IntRange(0), help="Only this partition."),
        bootstrap_server,
        click.argument("topic"),
    ):
        command = option(command)
    return command


@dead_letters.command("show")
@selection_options
def show_dead_letters(
    topic: str,
    bootstrap_server: str,
    partition: int | None,
    condition_text: str | None,
    group: str,
    everything: bool,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Print the dead letters of a topic that were not sent back, with their origin and the last error."""
    is_meant = None if condition_text is None else parse_condition(condition_text)
    with consumer_at(bootstrap_server, settings, group_id=group, enable_auto_commit=False) as consumer:
        letters = DeadLetterTopic(consumer, partitions_of(consumer, topic, partition, bootstrap_server), everything)
        rows = [row_of(record, about, in_json=in_json) for record, about in letters.select(is_meant)]
    show(COLUMNS, rows, in_json=in_json)


@dead_letters.command()
@selection_options
@yes_option
def resend(
    topic: str,
    bootstrap_server: str,
    partition: int | None,
    condition_text: str | None,
    group: str,
    everything: bool,
    in_json: bool,
    settings: tuple[str, ...],
    agreed: bool,
) -> None:
    """Send dead letters back to the topic and partition that they came from, each once. Ask for confirmation first.

    Key, value and the original headers are sent; the headers about the failure are left out. Dead letters without an
    origin are skipped with a warning.
    """
    is_meant = None if condition_text is None else parse_condition(condition_text)
    with consumer_at(bootstrap_server, settings, group_id=group, enable_auto_commit=False) as consumer:
        letters = DeadLetterTopic(consumer, partitions_of(consumer, topic, partition, bootstrap_server), everything)
        selected = list(letters.select(is_meant))
        chosen = [(record, about) for record, about in selected if about.topic]
        if len(chosen) < len(selected):
            echo(f"skipped without an origin in their headers: {len(selected) - len(chosen)} records", err=True)
        counts: dict[tuple[str, int | None], int] = {}
        for _, about in chosen:
            counts[about.topic or "", about.partition] = counts.get((about.topic or "", about.partition), 0) + 1
        rows = [(*origin, count) for origin, count in sorted(counts.items(), key=str)]
        if rows:
            echo(format_table(SENT, rows), err=True)
            confirm("Send them back?", agreed=agreed)
            commits = letters.commits_after(record for record, _ in chosen)
            with producer_at(bootstrap_server, settings, f"{group}-{topic}") as producer:
                producer.init_transactions()
                with producer.transaction():
                    send_back(producer, chosen)
                    producer.send_offsets_to_transaction(commits, consumer.group_metadata())
        else:
            echo("nothing to send back", err=True)
    if rows or in_json:
        show(SENT, rows, in_json=in_json)


class DeadLetterTopic:
    """The dead letters that a topic has now, and which of them were sent back."""

    def __init__(self, consumer: Consumer, partitions: list[TopicPartition], everything: bool) -> None:
        """`everything` includes those that were sent back."""
        from ottla.client.work.consumer_group import read_finished

        self._consumer = consumer
        self._ends = consumer.end_offsets(partitions)
        self._everything = everything
        self._sent_before: dict[TopicPartition, list[tuple[int, int]]] = {tp: [] for tp in partitions}
        """Runs of offsets that were sent back, in ascending order."""
        for tp, committed in consumer.committed(partitions).items():
            if committed is not None:
                self._sent_before[tp] = [(0, committed.offset), *read_finished(tp, committed)]
        self._open: dict[TopicPartition, list[int]] = {tp: [] for tp in partitions}
        """The offsets that were not sent back, in ascending order."""

    def select(self, is_meant: Callable[[ConsumerRecord], bool] | None) -> Iterator[tuple[ConsumerRecord, DeadLetter]]:
        """Yield the matching dead letters, and what their headers state."""
        from ottla.client.work.dead_letters import read_dead_letter
        from ottla.model import TopicPartition

        self._consumer.assign(list(self._open))
        self._consumer.seek_to_beginning()
        end = PartitionEnds(self._consumer, list(self._open))
        while not end.is_reached():
            for record in self._consumer.poll(POLL_SECONDS):
                tp = TopicPartition(record.topic, record.partition)
                is_sent = any(start <= record.offset < stop for start, stop in self._sent_before[tp])
                if not is_sent:
                    self._open[tp].append(record.offset)
                if (self._everything or not is_sent) and (is_meant is None or is_meant(record)):
                    yield record, read_dead_letter(record.headers)

    def commits_after(self, records: Iterator[ConsumerRecord]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what to commit when these records are sent back. All records must have been read by `select`.

        Raises ClickException if the metadata of a commit is too small for that.
        """
        from ottla.client.work.state.finished_offsets import decode_finished, encode_finished
        from ottla.model import OffsetAndMetadata

        sent = {(record.topic, record.partition, record.offset) for record in records}
        commits = {}
        for tp, offsets in self._open.items():
            bounds = [*(offset for offset in offsets if (*tp, offset) not in sent), self._ends[tp]]
            runs = [(one + 1, other) for one, other in pairwise(bounds) if one + 1 < other]
            metadata = encode_finished(bounds[0], runs)
            if decode_finished(bounds[0], metadata) != runs:
                raise click.ClickException(
                    f"nothing was sent back: the commit cannot list {len(runs)} separate parts of {tp}, and the same records "
                    "would be sent back again later; select fewer with --partition, or more by another --where"
                )
            commits[tp] = OffsetAndMetadata(bounds[0], metadata)
        return commits


@contextmanager
def producer_at(bootstrap: str, settings: tuple[str, ...], transactional_id: str) -> Iterator[Any]:
    """Yield a transactional producer with those of the settings that every client has."""
    from ottla.client.config.common_config import select_common_settings
    from ottla.client.producer import Producer

    with read_as_usage():
        chosen = select_common_settings(client_settings(bootstrap, settings))
        producer = Producer({**chosen, "transactional.id": transactional_id})
    with producer:
        yield producer


def send_back(producer: Any, chosen: list[tuple[ConsumerRecord, DeadLetter]]) -> None:
    """Send the records to their origins."""
    for record, about in chosen:
        known = {each.partition for each in producer.partitions_for(about.topic)}
        place = about.partition if about.partition in known else None
        producer.send(about.topic, record.raw_value, key=record.raw_key, partition=place, headers=about.headers)


def row_of(record: ConsumerRecord, about: DeadLetter, *, in_json: bool) -> tuple[Any, ...]:
    """Return the row of a dead letter."""
    origin = None if about.topic is None else f"{about.topic}-{about.partition}@{about.offset}"
    message = about.message
    if message is not None and not in_json and len(message) > MESSAGE_CHARACTERS:
        message = message[: MESSAGE_CHARACTERS - 1] + "…"
    return record.partition, record.offset, origin, as_text(record.raw_key), about.attempts, about.error, message

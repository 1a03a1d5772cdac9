"""`ottla consume`: print records as lines of standard output."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.options import (
    PATIENCE_SECONDS,
    bootstrap_server,
    client_settings,
    json_lines_option,
    read_as_usage,
    settings_option,
    topics_argument,
    usage_error,
)
from ottla.cli.output import WaitingNotice, echo, is_closed_by_reader, wait_seconds
from ottla.cli.records.moments import moment_of
from ottla.cli.records.reading import PartitionEnds, StartPosition, partitions_of, seek_to_start
from ottla.cli.records.record_format import Render, heading_of, lines_of, renderer
from ottla.cli.records.registered import format_options, open_registry, readers
from ottla.cli.records.where import Condition, parse_condition
from ottla.errors import RecordDeserializationError

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer, ConsumerRecord
    from ottla.model import TopicPartition

where_option = click.option(
    "--where",
    "condition_text",
    metavar="EXPRESSION",
    help="Print only matching records: \"value.amount > 10 and key != 'x'\".",
)


@click.command()
@topics_argument
@bootstrap_server
@click.option("--from-beginning", is_flag=True, help="Start with the oldest record instead of the next new one.")
@click.option("-p", "--partition", type=click.IntRange(0), help="Only this partition.")
@click.option(
    "-o",
    "--offset",
    metavar="OFFSET",
    help="Start at this offset of --partition; or beginning, end, or -N for the last N of each partition.",
)
@click.option("--tail", metavar="N", type=click.IntRange(0), help="Start N offsets before the end of each partition.")
@click.option("--from-time", metavar="TIME", help="Start at a time: 2026-01-31T12:00, -10m, or ms since 1970.")
@click.option("-e", "--exit", "until_end", is_flag=True, help="End at the partitions' present ends.")
@click.option("-g", "--group", metavar="GROUP", help="Read as a member of this group, and commit printed records.")
@click.option("-n", "--max-messages", type=click.IntRange(1), help="End after this many records.")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(0), help="End after this time without a record.")
@click.option(
    "-f",
    "--format",
    "form",
    metavar="text|json|csv|arrow|parquet|FORMAT",
    default="text",
    show_default=True,
    help="FORMAT is as in kcat: '%t %o %s\\n'.",
)
@click.option("--keys", is_flag=True, help="Print key, tab, value instead of only the value.")
@where_option
@format_options
@json_lines_option
@settings_option("consumer")
def consume(
    topics: tuple[str, ...],
    bootstrap_server: str,
    from_beginning: bool,
    partition: int | None,
    offset: str | None,
    tail: int | None,
    from_time: str | None,
    until_end: bool,
    group: str | None,
    max_messages: int | None,
    timeout: float | None,
    form: str,
    keys: bool,
    condition_text: str | None,
    value_format: str | None,
    key_format: str | None,
    registry: str | None,
    registry_config: Path | None,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Print the records of topics, one per line, until Ctrl-C or a limit of the options.

     With --json (or --format json) a record is an object; a key or value that is not UTF-8 becomes {"base64": "..."}.
    With arrow (a stream) or parquet the output is a table, for a file or a pipe. Fields of a format: %s value, %k key,
    %t topic, %p partition, %o offset, %T timestamp, %h headers, %S and %K lengths. With --max-messages the exit status
    is 1 if fewer records were received within --timeout or before --exit. With --value-format, values with a schema id
    are printed as JSON.
    """
    from_ms = None if from_time is None else moment_of("--from-time", from_time, int(time.time() * 1000))
    where = StartPosition(from_beginning, None, tail, from_ms).check(offset)
    in_tables = form in ("arrow", "parquet")
    if in_tables:
        refuse_lines(form, keys=keys, in_json=in_json, of_records=group is not None or condition_text is not None)
    render = renderer("text" if in_tables else form, keys=keys, in_json=in_json)
    refuse_contradictions(topics, partition, where, until_end=until_end, group=group)
    if group is not None and condition_text is not None:
        raise usage_error("--where and --group exclude each other: a member commits what is printed")
    is_meant = None if condition_text is None else parse_condition(condition_text)
    is_registered = value_format is not None or key_format is not None
    if is_registered and in_tables:
        raise usage_error(
            f"--value-format and --key-format print JSON, and --format {form} has no JSON: read tables with poll_arrow"
        )
    client = open_registry(registry, registry_config) if is_registered else None
    of_group: dict[str, Any] = {} if client is None else readers(key_format, value_format, client)
    if group is not None:
        of_group |= {"group_id": group, "enable_auto_commit": False}
    if group is not None and where.from_beginning:
        of_group["auto_offset_reset"] = "earliest"
    with (
        client or nullcontext(),
        consumer_at(bootstrap_server, settings, **of_group) as consumer,
        explain_unreadable_record(group),
    ):
        chosen = [tp for topic in topics for tp in partitions_of(consumer, topic, partition, bootstrap_server)]
        logging.getLogger("ottla").setLevel(
            logging.WARNING
        )  # from here on a lost broker is retried and worth a warning
        if group is not None:
            consumer.subscribe(list(topics))
        else:
            consumer.assign(chosen)
            seek_to_start(consumer, chosen, where)
        end = PartitionEnds(consumer, chosen) if until_end else None
        keep = Commits(consumer) if group is not None else None
        notice = WaitingNotice(waiting_text(topics, len(chosen), group, where))
        if in_tables:
            from ottla.cli.records.table_output import print_tables

            printed = print_tables(consumer, form, max_messages, timeout, end)
        elif form == "text" and not in_json and keep is None and is_meant is None and client is None:
            printed = print_columns(consumer, max_messages, timeout, end, notice, keys=keys)
        else:
            sys.stdout.buffer.write(heading_of(form))
            printed = print_records(consumer, render, max_messages, timeout, end, keep, is_meant, notice)
    if max_messages is not None and printed < max_messages:
        why = f"then none for {timeout:g} s" if end is None or not end.reached else "then the end"
        raise click.ClickException(f"{printed} of {max_messages} records received, {why}")


def refuse_lines(form: str, *, keys: bool, in_json: bool, of_records: bool) -> None:
    """Reject options for lines in combination with table formats."""
    if keys or in_json:
        raise usage_error(f"--keys and --json are for lines: --format {form} has all columns")
    if of_records:
        raise usage_error(
            f"--format {form} writes fetched batches: --where and --group are for lines; ottla sql can filter"
        )
    if sys.stdout.isatty():
        raise usage_error(f"--format {form} is not for a terminal: write it to a file, > records.{form}")


def refuse_contradictions(
    topics: tuple[str, ...], partition: int | None, where: StartPosition, *, until_end: bool, group: str | None
) -> None:
    """Reject options that contradict each other."""
    if where.offset is not None and partition is None:
        raise usage_error("--offset needs --partition")
    if where.offset is not None and len(topics) > 1:
        raise usage_error("--offset needs exactly one topic")
    if len(set(topics)) < len(topics):
        raise usage_error("a topic is given twice: give it once")
    if group is not None and (partition is not None or until_end or (where.is_given and not where.from_beginning)):
        raise usage_error(
            "--group assigns the partitions: it can only be combined with --from-beginning, for a new group"
        )
    if until_end and not where.is_given:
        raise usage_error("--exit needs a start: --from-beginning, --offset, --tail or --from-time")


def consumer_at(bootstrap: str, settings: tuple[str, ...], **others: Any) -> Consumer:
    """Return a consumer that does not create topics; `others` are settings of the command."""
    from ottla.client.consumer import Consumer

    with read_as_usage():
        return Consumer(
            client_settings(
                bootstrap,
                settings,
                allow_auto_create_topics=False,
                default_api_timeout_ms=int(PATIENCE_SECONDS * 1000),
                **others,
            )
        )


@contextmanager
def explain_unreadable_record(group: str | None) -> Iterator[None]:
    """Replace the remedy for programs in the error about a record that cannot be deserialized."""
    try:
        yield
    except RecordDeserializationError as error:
        topic, partition = error.partition
        fault = str(error).partition("; to skip this record")[0]
        remedy = (
            f"--partition {partition} --offset {error.offset + 1} reads what follows"
            if group is None
            else f"ottla groups reset-offsets {group} --topic {topic}:{partition} --to-offset {error.offset + 1} skips it"
        )
        raise click.ClickException(f"{fault}; {remedy}") from None


class Commits:
    """Commit the offsets of printed records; records that are not committed in time are printed again.

    Ctrl-C and SIGTERM are held while a batch is printed and noted, so that exactly the printed records are committed. A
    second Ctrl-C is not held, because the output may be blocked.
    """

    def __init__(self, consumer: Consumer) -> None:
        from ottla.client.runtime.exits import EXITS

        self._consumer = consumer
        self._exits = EXITS
        self._printed: dict[TopicPartition, int] = {}
        self._is_held = self._is_interrupted = False
        if threading.current_thread() is threading.main_thread():
            self._replace_handler(signal.default_int_handler, self._handle_interrupt)

    def __enter__(self) -> None:
        """Hold Ctrl-C and SIGTERM until the batch is printed and noted."""
        self._is_held = True
        self._exits.hold()

    def __exit__(self, *_: object) -> None:
        self._is_held = False
        self._exits.release()
        if self._is_interrupted:
            raise KeyboardInterrupt

    def _handle_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._is_held and not self._is_interrupted:
            self._is_interrupted = True
        else:
            raise KeyboardInterrupt

    def _replace_handler(self, before: Any, after: Any) -> None:
        if signal.getsignal(signal.SIGINT) == before:  # otherwise SIGINT is ignored, as in the background of a shell
            signal.signal(signal.SIGINT, after)

    def commit(self, records: Iterable[ConsumerRecord]) -> None:
        """Commit the offsets after records that were printed and flushed."""
        from ottla.model import TopicPartition

        fresh = {TopicPartition(each.topic, each.partition): each.offset + 1 for each in records}
        if fresh:
            self._printed.update(fresh)
            self._consumer.commit_async(fresh)

    def close(self) -> None:
        """Commit the last offsets of partitions that are still assigned."""
        if threading.current_thread() is threading.main_thread():
            self._replace_handler(self._handle_interrupt, signal.default_int_handler)
        ours = self._consumer.assignment()
        if last := {tp: offset for tp, offset in self._printed.items() if tp in ours}:
            self._consumer.commit(last)


def print_records(
    consumer: Consumer,
    render: Render,
    max_messages: int | None,
    timeout: float | None,
    end: PartitionEnds | None = None,
    keep: Commits | None = None,
    is_meant: Condition | None = None,
    notice: WaitingNotice | None = None,
) -> int:
    """Print until the limit, the timeout, the end, or until the reader closes; return the number of records."""
    output = sys.stdout.buffer
    printed = 0
    last_record_at = time.monotonic()
    try:
        while (max_messages is None or printed < max_messages) and not (end and end.is_reached()):
            patience = wait_seconds(timeout, last_record_at)
            if patience < 0:
                break
            records = consumer.poll(patience)
            wanted = list(
                islice(
                    filter(is_meant, records) if is_meant else records,
                    None if max_messages is None else max_messages - printed,
                )
            )
            with keep or nullcontext():
                output.writelines(map(render, wanted))
                output.flush()
                if is_closed_by_reader(output.fileno()):
                    raise BrokenPipeError
                if keep is not None:
                    keep.commit(wanted)
            if wanted:
                printed += len(wanted)
                last_record_at = time.monotonic()
            if notice is not None:
                notice.print_if_due(printed)
    finally:
        if keep is not None:
            keep.close()
    if is_meant is not None and (reason := is_meant.explain()) is not None:
        echo(reason, err=True)
    return printed


def print_columns(
    consumer: Consumer,
    max_messages: int | None,
    timeout: float | None,
    end: PartitionEnds | None,
    notice: WaitingNotice,
    *,
    keys: bool,
) -> int:
    """Print text like `print_records`, faster: no record objects are created."""
    output = sys.stdout.buffer
    printed = 0
    last_record_at = time.monotonic()
    columns = ("key", "value") if keys else ("value",)
    while (max_messages is None or printed < max_messages) and not (end and end.is_reached()):
        patience = wait_seconds(timeout, last_record_at)
        if patience < 0:
            break
        for _, chunk in consumer.poll_columns(patience, columns=columns):
            count = chunk.count if max_messages is None else min(chunk.count, max_messages - printed)
            output.writelines(lines_of(chunk, count, keys=keys))
            printed += count
            last_record_at = time.monotonic()
        output.flush()
        if is_closed_by_reader(output.fileno()):
            raise BrokenPipeError
        notice.print_if_due(printed)
    return printed


def waiting_text(topics: tuple[str, ...], partition_count: int, group: str | None, where: StartPosition) -> str:
    """Return the notice about an idle `ottla consume`, with a hint about older records."""
    partitions = "1 partition" if partition_count == 1 else f"{partition_count} partitions"
    of_group = "" if group is None else f" as a member of group {group}"
    older = "" if where.is_given or group is not None else "; --from-beginning prints existing records"
    return f"waiting for new records of {', '.join(topics)} ({partitions}){of_group}; stop with Ctrl-C{older}"

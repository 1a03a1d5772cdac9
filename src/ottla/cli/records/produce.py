"""`ottla produce`: send the lines of standard input as records."""

from __future__ import annotations

import difflib
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ottla.cli.options import (
    PATIENCE_SECONDS,
    admin_settings,
    bootstrap_server,
    client_settings,
    read_as_usage,
    settings_option,
    topic_argument,
    usage_error,
)
from ottla.cli.records.record_lines import LAST_PARTITION, Lines, RecordLine, headers_of, of_csv, of_json, of_text
from ottla.cli.records.registered import format_options, open_registry, writers
from ottla.errors import OttlaError

if TYPE_CHECKING:
    from ottla.client.producer import Producer
    from ottla.model import RecordMetadata

LISTING_MS = 1_000
"""The time limit of the request for the existing topics."""
INTERRUPTED_SECONDS = 2.0
"""The time for which Ctrl-C waits for records that were already read."""
PIECE_BYTES = 64 * 1024
"""The number of bytes of a line that are read at a time."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Outcomes:
    """The results of the records; called by the producer's thread."""

    def __init__(self) -> None:
        self.first_error: Exception | None = None

    def __call__(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        self.first_error = self.first_error or error

    def check(self) -> None:
        """Raise the error of the first record that was not delivered, if any."""
        if self.first_error is not None:
            raise self.first_error


@click.command()
@topic_argument
@bootstrap_server
@click.option(
    "--key-separator", metavar="SEP", help="The separator of key and value in each line; without it, no keys."
)
@click.option("--null-marker", metavar="TEXT", help="A key or value that is this text is null: a tombstone.")
@click.option("--format", "form", type=click.Choice(("text", "json", "csv")), default="text", show_default=True)
@click.option("--key", metavar="KEY", help="The key of records without a key of their own.")
@click.option("-H", "--header", "headers", metavar="NAME=VALUE", multiple=True, help="A header of every record.")
@click.option("-p", "--partition", type=click.IntRange(0, LAST_PARTITION), help="The partition of every record.")
@click.option("--keep-partitions", is_flag=True, help="With --format json or csv: use the partition of each record.")
@click.option("--compression-type", type=click.Choice(CODECS), help="The codec of batches.")
@format_options
@settings_option("producer")
def produce(
    topic: str,
    bootstrap_server: str,
    key_separator: str | None,
    null_marker: str | None,
    form: str,
    key: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    keep_partitions: bool,
    compression_type: str | None,
    value_format: str | None,
    key_format: str | None,
    registry: str | None,
    registry_config: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Send the lines of standard input to TOPIC, one record per line.

     The exit status is 0 only if the broker acknowledged all of them. If the broker creates the topic, this is reported
    on standard error. With --format json, a line is an object as printed by ottla consume --format json, with key,
    value, headers and timestamp; its partition is used with --keep-partitions. With --format csv, the first row names
    such columns. With --value-format, a value is JSON, and is written with the newest schema of the topic's subject.
    """
    from ottla.client.producer import Producer

    if key_separator == "":
        raise usage_error("--key-separator must not be empty")
    refuse_contradictions(form, key_separator, null_marker)
    if keep_partitions and (form == "text" or partition is not None):
        raise usage_error("--keep-partitions needs --format json or csv, and no --partition")
    common = headers_of(headers)
    is_registered = value_format is not None or key_format is not None
    client = open_registry(registry, registry_config) if is_registered else None
    with read_as_usage():
        given = client_settings(
            bootstrap_server,
            settings,
            compression_type=compression_type,
            max_block_ms=int(PATIENCE_SECONDS * 1000),
        )
        producer = Producer({**given, **({} if client is None else writers(key_format, value_format, client))})
    logging.getLogger("ottla.client.producer.retries").setLevel(
        logging.WARNING
    )  # a full disk may keep records for minutes
    outcomes = Outcomes()
    with client or nullcontext(), producer:
        report_new_topic(producer, topic, given)
        if sys.stdin.isatty() and sys.stderr.isatty():
            print("ottla: each line is a record; end with Ctrl-D", file=sys.stderr)
        try:
            lines = lines_of(sys.stdin.buffer, producer.config.max_record_bytes)
            for line in records_of(form, lines, key_separator, null_marker):
                producer.send(
                    topic,
                    line.value,
                    key=line.key if line.key is not None or key is None else os.fsencode(key),
                    partition=line.partition if keep_partitions else partition,
                    timestamp=line.timestamp,
                    headers=(*common, *line.headers),
                    on_delivery=outcomes,
                )
                outcomes.check()
            producer.flush()
        except KeyboardInterrupt:
            producer.close(INTERRUPTED_SECONDS)  # logs the records that it could not deliver
            raise
    outcomes.check()


def refuse_contradictions(form: str, key_separator: str | None, null_marker: str | None) -> None:
    """Reject options for text in combination with JSON or CSV; CSV allows --null-marker."""
    if form == "json" and (key_separator is not None or null_marker is not None):
        raise usage_error("--key-separator and --null-marker are for text: in JSON there are a key and null")
    if form == "csv" and key_separator is not None:
        raise usage_error("--key-separator is for text: in CSV the key is a column")


def records_of(form: str, lines: Lines, key_separator: str | None, null_marker: str | None) -> Iterator[RecordLine]:
    """Yield the record of each line, or of each row if a quoted cell spans several lines."""
    if form == "json":
        return of_json(lines)
    return of_csv(lines, null_marker) if form == "csv" else of_text(lines, key_separator, null_marker)


def report_new_topic(producer: Producer, topic: str, given: Mapping[str, Any]) -> None:
    """Report that the topic is new, and suggest a similar existing name."""
    there = topics_at(given)
    if there is None or topic in there:
        return
    partition_count = len(producer.partitions_for(topic))
    close = difflib.get_close_matches(topic, there, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    partitions = "1 partition" if partition_count == 1 else f"{partition_count} partitions"
    print(f"ottla: topic {topic!r} is new: the broker created it with {partitions}{meant}", file=sys.stderr)


def topics_at(given: Mapping[str, Any]) -> set[str] | None:
    """Return the existing topics; None on an error, which the producer will report."""
    from ottla.client.admin import Admin

    try:
        with Admin({**admin_settings(given), "default.api.timeout.ms": LISTING_MS}) as admin:
            return set(admin.list_topics(internal=True))
    except OttlaError:
        return None


def lines_of(stream: BinaryIO, most: int) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number.

    Raise ClickException for a line of more than `most` bytes, which exceeds a record.
    """
    for number in count(1):
        line = stream.readline(PIECE_BYTES)
        if not line:
            return
        if not line.endswith(b"\n"):
            line = read_rest(line, stream, most)
        if len(line) - line.endswith(b"\n") > most:
            raise click.ClickException(
                f"line {number} of standard input is longer than max.request.size or buffer.memory allow, {most} bytes; "
                f"cut it, or raise them with --set"
            )
        yield number, line


def read_rest(line: bytes, stream: BinaryIO, most: int) -> bytes:
    """Return the line to its end, or a part that is too long for a record.

    Pieces allow Python to handle Ctrl-C in between.
    """
    pieces, size = [line], len(line)
    while size < most + 2 and (more := stream.readline(min(PIECE_BYTES, most + 2 - size))):
        pieces.append(more)
        size += len(more)
        if more.endswith(b"\n"):
            break
    return b"".join(pieces)

"""`ottla produce`: lines of standard input become records."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

import click

from ottla.cli.options import (
    PATIENCE_SECONDS,
    bootstrap_server,
    client_settings,
    read_as_usage,
    senseless,
    settings_option,
)

if TYPE_CHECKING:
    from ottla.model import RecordMetadata

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Outcomes:
    """What became of the records, told by the producer's thread."""

    def __init__(self) -> None:
        self.first_error: Exception | None = None

    def __call__(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        self.first_error = self.first_error or error

    def check(self) -> None:
        """Raise the first thing that went wrong."""
        if self.first_error is not None:
            raise self.first_error


@click.command()
@click.argument("topic")
@bootstrap_server
@click.option(
    "--key-separator", metavar="SEP", help="What stands between key and value in each line; without it no keys."
)
@click.option("--compression-type", type=click.Choice(CODECS), help="The codec of batches.")
@settings_option("producer")
def produce(
    topic: str,
    bootstrap_server: str,
    key_separator: str | None,
    compression_type: str | None,
    settings: tuple[str, ...],
) -> None:
    """Send the lines of standard input to TOPIC, one record each, until its end.

    The exit status is 0 only when the broker has taken every one of them.
    """
    from ottla.client.producer import Producer

    if key_separator == "":
        raise senseless("--key-separator must not be empty")
    with read_as_usage():
        producer = Producer(
            client_settings(
                bootstrap_server,
                settings,
                compression_type=compression_type,
                max_block_ms=int(PATIENCE_SECONDS * 1000),
            )
        )
    outcomes = Outcomes()
    with producer:
        for key, value in records(sys.stdin.buffer, key_separator):
            producer.send(topic, value, key=key, on_delivery=outcomes)
            outcomes.check()
        producer.flush()
    outcomes.check()


def records(lines: BinaryIO, key_separator: str | None) -> Iterator[tuple[bytes | None, bytes]]:
    """Key and value of each line."""
    separator = None if key_separator is None else key_separator.encode()
    for number, line in enumerate(lines, 1):
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        if separator is None:
            yield None, text
            continue
        key, found, value = text.partition(separator)
        if not found:
            raise click.ClickException(f"line {number} of standard input has no key separator {key_separator!r}")
        yield key, value

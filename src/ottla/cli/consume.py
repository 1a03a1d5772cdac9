"""`ottla consume`: records become lines of standard output."""

from __future__ import annotations

import base64
import json
import logging
import select
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
    from ottla.client.consumer import Consumer, ConsumerRecord
    from ottla.model import TopicPartition

TURN_SECONDS = 0.2
"""How long to wait for records before looking whether anybody still reads our output."""


@click.command()
@click.argument("topic")
@bootstrap_server
@click.option("--from-beginning", is_flag=True, help="Begin with the oldest record instead of the next new one.")
@click.option("--partition", type=click.IntRange(0), help="Only this partition.")
@click.option("--offset", type=click.IntRange(0), help="Begin at this offset of --partition.")
@click.option("--max-messages", type=click.IntRange(1), help="End after this many records.")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(0), help="End when nothing comes for this long.")
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("--keys", is_flag=True, help="Key, tab, value instead of the value alone.")
@settings_option("consumer")
def consume(
    topic: str,
    bootstrap_server: str,
    from_beginning: bool,
    partition: int | None,
    offset: int | None,
    max_messages: int | None,
    timeout: float | None,
    form: str,
    keys: bool,
    settings: tuple[str, ...],
) -> None:
    """Print the records of TOPIC, one a line, until Ctrl-C or what the options say.

    As JSON a record is an object; a key or value that is not UTF-8 is {"base64": "..."} there.
    With --max-messages the exit status is 1 when fewer came within --timeout.
    """
    if offset is not None and partition is None:
        raise senseless("--offset needs --partition")
    if offset is not None and from_beginning:
        raise senseless("--offset and --from-beginning exclude each other")
    render = as_json if form == "json" else with_key if keys else value_only
    with consumer_at(bootstrap_server, settings) as consumer:
        chosen = partitions_of(consumer, topic, partition, bootstrap_server)
        logging.getLogger("ottla").setLevel(logging.WARNING)  # from here on nothing ends when a broker is lost
        consumer.assign(chosen)
        if offset is not None:
            check_offset(consumer, chosen[0], offset)
            consumer.seek(chosen[0], offset)
        elif from_beginning:
            consumer.seek_to_beginning()
        printed = print_records(consumer, render, max_messages, timeout)
    if max_messages is not None and printed < max_messages:
        raise click.ClickException(f"{printed} of {max_messages} records came, then none for {timeout:g} s")


def consumer_at(bootstrap: str, settings: tuple[str, ...]) -> Consumer:
    """A consumer that makes no topics."""
    from ottla.client.consumer import Consumer

    with read_as_usage():
        return Consumer(
            client_settings(
                bootstrap,
                settings,
                allow_auto_create_topics=False,
                default_api_timeout_ms=int(PATIENCE_SECONDS * 1000),
            )
        )


def partitions_of(consumer: Consumer, topic: str, partition: int | None, bootstrap: str) -> list[TopicPartition]:
    """What to read; a topic or partition that is not there is an error."""
    from ottla.model import TopicPartition

    known = sorted(info.partition for info in consumer.partitions_for(topic))
    if not known:
        raise click.ClickException(
            f"topic {topic!r} does not exist at {bootstrap}; make it with: ottla topics create {topic}"
        )
    if partition is None:
        return [TopicPartition(topic, p) for p in known]
    if partition not in known:
        raise click.ClickException(f"topic {topic!r} has no partition {partition}, only 0 to {known[-1]}")
    return [TopicPartition(topic, partition)]


def check_offset(consumer: Consumer, partition: TopicPartition, offset: int) -> None:
    """Refuse an offset that is not there, from which the consumer would turn to `auto.offset.reset` and may wait."""
    (first,), (end,) = (found([partition]).values() for found in (consumer.beginning_offsets, consumer.end_offsets))
    if not first <= offset <= end:
        raise click.ClickException(f"{partition} has no offset {offset}, only {first} to {end}")


def print_records(
    consumer: Consumer, render: Callable[[ConsumerRecord], bytes], max_messages: int | None, timeout: float | None
) -> int:
    """Print until the limit, the timeout or the reader's end; return how many."""
    output = sys.stdout.buffer
    printed = 0
    last_heard = time.monotonic()
    while max_messages is None or printed < max_messages:
        patience = TURN_SECONDS if timeout is None else min(TURN_SECONDS, last_heard + timeout - time.monotonic())
        if patience < 0:
            break
        for record in consumer.poll(patience):
            output.write(render(record))
            printed += 1
            last_heard = time.monotonic()
            if printed == max_messages:
                break
        output.flush()
        if nobody_reads(output.fileno()):
            raise BrokenPipeError
    return printed


def nobody_reads(fd: int) -> bool:
    """Whether `fd` is a pipe that was closed at the other end; known without writing to it."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(flags & (select.POLLERR | select.POLLNVAL) for _, flags in poll.poll(0))


def value_only(record: ConsumerRecord) -> bytes:
    return shown(record.value) + b"\n"


def with_key(record: ConsumerRecord) -> bytes:
    return shown(record.key) + b"\t" + shown(record.value) + b"\n"


def as_json(record: ConsumerRecord) -> bytes:
    """The record as one line of JSON."""
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": readable(record.key),
        "value": readable(record.value),
        "headers": [[name, readable(value)] for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def shown(data: bytes | None) -> bytes:
    return b"null" if data is None else data


def readable(data: bytes | None) -> Any:
    """Text where it is text; JSON has no bytes."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        assert data is not None
        return {"base64": base64.b64encode(data).decode()}

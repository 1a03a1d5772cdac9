"""`ottla trace produce`: sends lines of standard input as records, and shows the internals of the producer."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from ottla.cli.live import LiveView
from ottla.cli.options import (
    PATIENCE_SECONDS,
    bootstrap_server,
    client_settings,
    json_lines_option,
    read_as_usage,
    settings_option,
    usage_error,
)
from ottla.cli.records.produce import Outcomes, lines_of, report_new_topic
from ottla.cli.records.record_lines import RecordLine, of_text

if TYPE_CHECKING:
    from ottla.client.producer import Producer
    from ottla.trace import Trace

UPDATE_SECONDS = 0.1
"""The longest time between two updates of the picture."""
MOST_AHEAD = 1_000
"""The number of lines read ahead of sending."""


@click.command()
@click.argument("topic")
@bootstrap_server
@click.option("--key-separator", metavar="SEP", help="The text between key and value in each line.")
@click.option("--events", is_flag=True, help="Show every event, including each batch in flight.")
@json_lines_option
@settings_option("producer")
def produce(
    topic: str,
    bootstrap_server: str,
    key_separator: str | None,
    events: bool,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Send the lines of standard input to TOPIC, and show the internals of the producer.

    In a terminal the view is redrawn and has keys (? lists them) if the lines come from a pipe or a file; elsewhere it
    prints a line for each event. The exit status is 0 only if the broker acknowledged every line.
    """
    from ottla.client.producer import Producer

    if key_separator == "":
        raise usage_error("--key-separator must not be empty")
    with read_as_usage():
        given = client_settings(bootstrap_server, settings, max_block_ms=int(PATIENCE_SECONDS * 1000))
        producer = Producer(given)
    outcomes = Outcomes()
    with producer, producer.trace() as moments:
        report_new_topic(producer, topic, given)
        watch = Watch(producer, moments, every_event=events, in_json=in_json)
        with watch.view.open():
            for line in watch.through(InputLines(lambda: records_of(producer, key_separator))):
                producer.send(topic, line.value, key=line.key, on_delivery=outcomes)
                outcomes.check()
            watch.until_sent()
    outcomes.check()


def records_of(producer: Producer, key_separator: str | None) -> Iterator[RecordLine]:
    # A separate file object: at exit Python locks that of sys.stdin, which a thread that reads it would hold.
    lines = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115 - read to the end of the process
    return of_text(lines_of(lines, producer.config.max_record_bytes), key_separator, None)


class InputLines:
    """Reads lines in a thread, while the main thread draws."""

    def __init__(self, lines: Callable[[], Iterator[RecordLine]]) -> None:
        self._lines = lines
        self._read: queue.Queue[RecordLine | Exception | None] = queue.Queue(MOST_AHEAD)
        threading.Thread(target=self._run, name="ottla-lines", daemon=True).start()

    def next_within(self, seconds: float) -> RecordLine | None:
        """Return the next line, or None at the end. Raise queue.Empty after `seconds`, and an error of reading."""
        line = self._read.get(timeout=seconds)
        if isinstance(line, Exception):
            raise line
        return line

    def _run(self) -> None:
        try:
            for line in self._lines():
                self._read.put(line)
            self._read.put(None)
        except Exception as error:
            self._read.put(error)


class Watch:
    """The picture of a producer and its time line, updated between records."""

    def __init__(self, producer: Producer, moments: Trace, *, every_event: bool, in_json: bool) -> None:
        # Imported here for start-up time.
        from ottla.cli.tracing.producer_picture import ProducerTotals, draw_producer
        from ottla.client.producer.events import FREQUENT

        self._producer, self._moments = producer, moments
        self._left_out = () if every_event else FREQUENT
        self._totals = ProducerTotals()
        self.view = LiveView(
            lambda whole: draw_producer(producer.snapshot(), self._totals, whole=whole),
            in_json=in_json,
            stdin_is_data=True,
        )
        self._drawn = 0.0

    def through(self, reading: InputLines) -> Iterator[RecordLine]:
        """Yield each line until their end, or until the user quits; update the picture meanwhile."""
        while not self.view.has_ended:
            try:
                line = reading.next_within(UPDATE_SECONDS)
            except queue.Empty:
                self.draw()
                continue
            if line is None:
                return
            yield line
            if time.monotonic() - self._drawn >= UPDATE_SECONDS:
                self.draw()

    def until_sent(self) -> None:
        """Send the remaining records, and update the picture meanwhile."""
        from ottla.errors import KafkaTimeoutError

        flushed = False
        while not flushed:
            try:
                self._producer.flush(UPDATE_SECONDS)
                flushed = True
            except KafkaTimeoutError:
                pass
            self.draw()

    def draw(self) -> None:
        """Show the events since the last call."""
        from ottla.tracing.plain import plain_moment

        self._drawn = time.monotonic()
        for moment in self._moments.take():
            self._totals.count(moment.event)
            if not isinstance(moment.event, self._left_out):
                self.view.add_event(**plain_moment(moment))
        self.view.refresh()

"""`ottla trace produce`: lines of standard input become records, and their producer is watched from inside."""

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
    senseless,
    settings_option,
)
from ottla.cli.records.produce import Outcomes, lines_of, tell_if_new
from ottla.cli.records.record_lines import Line, of_text

if TYPE_CHECKING:
    from ottla.client.producer import Producer
    from ottla.trace import Trace

TURN_SECONDS = 0.1
"""How often the picture is drawn at least."""
MOST_AHEAD = 1_000
"""Lines that are read before they are sent."""


@click.command()
@click.argument("topic")
@bootstrap_server
@click.option("--key-separator", metavar="SEP", help="What stands between key and value in each line.")
@click.option("--events", is_flag=True, help="Every event in the time line, each batch on its way too.")
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
    """Send the lines of standard input to TOPIC, and show what goes on inside the producer, until their end.

    In a terminal a picture that is drawn anew, with keys (? tells them) where the lines come out of a pipe or a file;
    elsewhere a line for each event. The exit status is 0 only when the
    broker has taken every line.
    """
    from ottla.client.producer import Producer

    if key_separator == "":
        raise senseless("--key-separator must not be empty")
    with read_as_usage():
        given = client_settings(bootstrap_server, settings, max_block_ms=int(PATIENCE_SECONDS * 1000))
        producer = Producer(given)
    outcomes = Outcomes()
    with producer, producer.trace() as heard:
        tell_if_new(producer, topic, given)
        watch = Watch(producer, heard, every_event=events, in_json=in_json)
        with watch.view.open():
            for line in watch.through(Reading(lambda: records_of(producer, key_separator))):
                producer.send(topic, line.value, key=line.key, on_delivery=outcomes)
                outcomes.check()
            watch.until_sent()
    outcomes.check()


def records_of(producer: Producer, key_separator: str | None) -> Iterator[Line]:
    # A reader of its own: Python's end takes that of sys.stdin, for which it cannot wait while a thread is at it.
    lines = open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115 - read to the end of the process
    return of_text(lines_of(lines, producer.config.max_record_bytes), key_separator, None)


class Reading:
    """Lines read by a thread, for who has to look elsewhere meanwhile."""

    def __init__(self, lines: Callable[[], Iterator[Line]]) -> None:
        self._lines = lines
        self._read: queue.Queue[Line | Exception | None] = queue.Queue(MOST_AHEAD)
        threading.Thread(target=self._run, name="ottla-lines", daemon=True).start()

    def next_within(self, seconds: float) -> Line | None:
        """The next line; queue.Empty where it takes longer, None at the end, and what was wrong is raised."""
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
    """What the producer tells, drawn between its records."""

    def __init__(self, producer: Producer, heard: Trace, *, every_event: bool, in_json: bool) -> None:
        from ottla.cli.tracing.producer_picture import Totals, picture
        from ottla.client.producer.events import FREQUENT

        self._producer, self._heard = producer, heard
        self._left_out = () if every_event else FREQUENT
        self._totals = Totals()
        self.view = LiveView(
            lambda whole: picture(producer.snapshot(), self._totals, whole=whole), in_json=in_json, stdin_is_data=True
        )
        self._drawn = 0.0

    def through(self, reading: Reading) -> Iterator[Line]:
        """Each line as it comes, until their end or until who looks has seen enough; meanwhile the picture is kept up."""
        while not self.view.ended:
            try:
                line = reading.next_within(TURN_SECONDS)
            except queue.Empty:
                self.draw()
                continue
            if line is None:
                return
            yield line
            if time.monotonic() - self._drawn >= TURN_SECONDS:
                self.draw()

    def until_sent(self) -> None:
        """Have the rest sent, and show how it goes."""
        from ottla.errors import KafkaTimeoutError

        flushed = False
        while not flushed:
            try:
                self._producer.flush(TURN_SECONDS)
                flushed = True
            except KafkaTimeoutError:
                pass
            self.draw()

    def draw(self) -> None:
        """What happened since the last time."""
        from ottla.tracing.plain import plain_moment

        self._drawn = time.monotonic()
        for moment in self._heard.take():
            self._totals.count(moment.event)
            if not isinstance(moment.event, self._left_out):
                self.view.tell(**plain_moment(moment))
        self.view.refresh()

"""`ottla trace`: a client that is watched from inside; `consume` here, while it reads, `produce` and `broker` in files of their own."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.live import LiveView
from ottla.cli.options import bootstrap_server, json_lines_option, senseless, settings_option
from ottla.cli.records.consume import consumer_at
from ottla.cli.tracing.trace_broker import broker
from ottla.cli.tracing.trace_produce import produce
from ottla.cli.verbs import Verbs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.client.consumer import Consumer
    from ottla.trace import Moment, Trace

TURN_SECONDS = 0.1
"""How long a poll waits, and so how often the picture is drawn at least."""
RATE_SECONDS = 3.0
"""Over how long records a second are counted."""


@click.group(cls=Verbs)
def trace() -> None:
    """Watch a client, or a broker, from inside."""


trace.add_command(produce)
trace.add_command(broker)


@trace.command()
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@bootstrap_server
@click.option("--group", help="Share the topics with this consumer group; without one, all partitions are read.")
@click.option("--from-beginning", is_flag=True, help="Where nothing is committed, begin with the oldest record.")
@click.option("--work", metavar="SECONDS", type=click.FloatRange(0), default=0.0, help="Work so long between polls.")
@click.option("--events", is_flag=True, help="Every event in the time line, fetches and heartbeats too.")
@click.option("--seconds", type=click.FloatRange(0), help="End after so long; otherwise with Ctrl-C.")
@json_lines_option
@settings_option("consumer")
def consume(
    topics: tuple[str, ...],
    bootstrap_server: str,
    group: str | None,
    from_beginning: bool,
    work: float,
    events: bool,
    seconds: float | None,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Read TOPICs, print no records, and show what goes on inside the consumer.

    In a terminal a picture that is drawn anew, with keys (? tells them); elsewhere a line for each event.
    """
    if any(text.startswith("group.id=") for text in settings):
        raise senseless("name the group by --group")
    named = (f"group.id={group}",) if group else ()
    reset = ("auto.offset.reset=earliest",) if from_beginning else ()
    with consumer_at(bootstrap_server, (*reset, *named, *settings)) as consumer:
        check_topics(consumer, topics, bootstrap_server)
        if group:
            consumer.subscribe(topics)
        else:
            consumer.assign(partitions_of(consumer, topics))
        with consumer.trace() as heard:
            follow(consumer, heard, work, seconds, every_event=events, in_json=in_json)


def check_topics(consumer: Consumer, topics: Iterable[str], bootstrap: str) -> None:
    """A topic that is not there would be waited for in silence."""
    missing = [topic for topic in topics if not consumer.partitions_for(topic)]
    if missing:
        raise click.ClickException(
            f"topic {missing[0]!r} does not exist at {bootstrap}; make it with: ottla topics create {missing[0]}"
        )


def partitions_of(consumer: Consumer, topics: Iterable[str]) -> list[Any]:
    from ottla.model import TopicPartition

    return [TopicPartition(topic, info.partition) for topic in topics for info in consumer.partitions_for(topic)]


def follow(
    consumer: Consumer, heard: Trace, work: float, seconds: float | None, *, every_event: bool, in_json: bool
) -> None:
    """Poll, work, draw, until the time is up."""
    from ottla.cli.tracing.consumer_picture import picture
    from ottla.client.consumer.events import REBALANCE, Committed

    wanted = () if every_event else (*REBALANCE, Committed)
    pace = Pace()
    view = LiveView(lambda whole: picture(consumer.snapshot(), pace, whole=whole), in_json=in_json)
    end = time.monotonic() + (float("inf") if seconds is None else seconds)
    with view.open():
        while time.monotonic() < end and not view.ended:
            consumer.poll(TURN_SECONDS)
            tell_all(heard.take(), pace, view, wanted)
            view.refresh()
            work_until = min(end, time.monotonic() + work)
            while (left := work_until - time.monotonic()) > 0 and not view.ended:
                view.wait(min(TURN_SECONDS, left))
                tell_all(heard.take(), pace, view, wanted)
                view.refresh()


def tell_all(moments: list[Moment], pace: Pace, view: LiveView, wanted: tuple[type[Any], ...]) -> None:
    """What happened since the last time: counted, and told where it belongs in the time line."""
    from ottla.tracing.plain import plain_moment

    for moment in moments:
        pace.count(moment)
        if not wanted or isinstance(moment.event, wanted):
            view.tell(**plain_moment(moment))


class Pace:
    """What came and when, for the picture."""

    def __init__(self) -> None:
        self.records = 0
        self.fetches = 0
        self.heartbeats = 0
        self.longest_gap_ms = 0.0
        self._recent: deque[tuple[int, int]] = deque()

    def count(self, moment: Moment) -> None:
        from ottla.client.consumer import events

        match moment.event:
            case events.HandedOut(records=records):
                self.records += records
                self._recent.append((moment.at_ms, records))
            case events.FetchCompleted(error=""):
                self.fetches += 1
            case events.HeartbeatAnswered(error=""):
                self.heartbeats += 1
            case events.Polled(gap_ms=gap_ms):
                self.longest_gap_ms = max(self.longest_gap_ms, gap_ms)

    def rate(self, now_ms: float) -> float:
        """Records a second, of late."""
        while self._recent and self._recent[0][0] < now_ms - RATE_SECONDS * 1000:
            self._recent.popleft()
        return sum(records for _, records in self._recent) / RATE_SECONDS

"""`ottla trace`: the internals of a client or a broker, shown while it works; `consume` is in this module."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.live import LiveView
from ottla.cli.options import bootstrap_server, json_lines_option, settings_option, usage_error
from ottla.cli.records.consume import consumer_at
from ottla.cli.tracing.trace_broker import broker
from ottla.cli.tracing.trace_produce import produce

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.cli.tracing.consumer_picture import EventRate
    from ottla.client.consumer import Consumer
    from ottla.trace import Moment, Trace

UPDATE_SECONDS = 0.1
"""The wait of a poll, and so the longest time between two updates of the picture."""


@click.group(cls=CommandGroup)
def trace() -> None:
    """Show the internals of a client or a broker while it works."""


trace.add_command(produce)
trace.add_command(broker)


@trace.command()
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@bootstrap_server
@click.option("-g", "--group", help="Share the topics with this consumer group; without one, all partitions are read.")
@click.option(
    "--from-beginning", is_flag=True, help="Start with the oldest record of partitions without a committed offset."
)
@click.option("--work", metavar="SECONDS", type=click.FloatRange(0), default=0.0, help="Time to sleep between polls.")
@click.option("--events", is_flag=True, help="Show every event, including fetches and heartbeats.")
@click.option("--seconds", type=click.FloatRange(0), help="End after this time; default: at Ctrl-C.")
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
    """Read TOPICs, print no records, and show the internals of the consumer.

    In a terminal the view is redrawn and has keys (? lists them); elsewhere it prints a line for each event.
    """
    if any(text.startswith("group.id=") for text in settings):
        raise usage_error("group.id cannot be set here: use --group")
    named = (f"group.id={group}",) if group else ()
    reset = ("auto.offset.reset=earliest",) if from_beginning else ()
    with consumer_at(bootstrap_server, (*reset, *named, *settings)) as consumer:
        check_topics(consumer, topics, bootstrap_server)
        if group:
            consumer.subscribe(topics)
        else:
            consumer.assign(partitions_of(consumer, topics))
        with consumer.trace() as events_of_consumer:
            follow(consumer, events_of_consumer, work, seconds, every_event=events, in_json=in_json)


def check_topics(consumer: Consumer, topics: Iterable[str], bootstrap: str) -> None:
    """Raise an error for a topic that does not exist; the consumer would wait for it silently."""
    missing = [topic for topic in topics if not consumer.partitions_for(topic)]
    if missing:
        raise click.ClickException(
            f"topic {missing[0]!r} does not exist at {bootstrap}; create it with: ottla topics create {missing[0]}"
        )


def partitions_of(consumer: Consumer, topics: Iterable[str]) -> list[Any]:
    from ottla.model import TopicPartition

    return [TopicPartition(topic, info.partition) for topic in topics for info in consumer.partitions_for(topic)]


def follow(
    consumer: Consumer, moments: Trace, work: float, seconds: float | None, *, every_event: bool, in_json: bool
) -> None:
    """Poll, work and draw until the time is up."""
    from ottla.cli.tracing.consumer_picture import EventRate, draw_consumer  # for start-up time
    from ottla.client.consumer.events import REBALANCE, Committed

    wanted = () if every_event else (*REBALANCE, Committed)
    pace = EventRate()
    view = LiveView(lambda whole: draw_consumer(consumer.snapshot(), pace, whole=whole), in_json=in_json)
    end = time.monotonic() + (float("inf") if seconds is None else seconds)
    with view.open():
        while time.monotonic() < end and not view.has_ended:
            consumer.poll(UPDATE_SECONDS)
            show_events(moments.take(), pace, view, wanted)
            view.refresh()
            work_until = min(end, time.monotonic() + work)
            while (left := work_until - time.monotonic()) > 0 and not view.has_ended:
                view.wait(min(UPDATE_SECONDS, left))
                show_events(moments.take(), pace, view, wanted)
                view.refresh()


def show_events(moments: list[Moment], pace: EventRate, view: LiveView, wanted: tuple[type[Any], ...]) -> None:
    """Count the new events, and add those that the time line shows."""
    from ottla.tracing.plain import plain_moment

    for moment in moments:
        pace.count(moment)
        if not wanted or isinstance(moment.event, wanted):
            view.add_event(**plain_moment(moment))

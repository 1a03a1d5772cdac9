"""Compact events on a socket, and their reconstruction by the observer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.consumer import events as consumed
from ottla.client.producer import batch_events
from ottla.client.producer import events as produced
from ottla.clock import ManualClock
from ottla.console.traced import complete_line
from ottla.model import TopicPartition
from ottla.trace import MAKERS, EventStream
from ottla.tracing.frames import encode_line, facts_by_kind, frame_of, restore_frame, shorten_moment
from ottla.tracing.plain import plain_moment

A, B = TopicPartition("a", 0), TopicPartition("b", 7)
FREQUENT = [
    (consumed.POLLED, (12.5,), consumed.Polled(12.5)),
    (consumed.SENT, (1, *A, 5, *B, 6), consumed.FetchSent(1, {A: 5, B: 6})),
    (consumed.COMPLETED, (1, 0, "reset"), consumed.FetchCompleted(1, 0, "reset")),
    (consumed.BUFFERED, (*B, 5, 100), consumed.Buffered(B, 5, 100)),
    (consumed.HANDED_OUT, (*B, 5, 3), consumed.HandedOut(B, 5, 3)),
    (produced.BEGUN, (*B,), produced.BatchBegun(B)),
    (batch_events.DRAINED, (*B, 3, 100, 4.5, 1), produced.BatchDrained(B, 3, 100, 4.5, 1)),
    (batch_events.SENT, (1, 200, *A, *B), produced.ProduceSent(1, (A, B), 200)),
    (batch_events.COMPLETED, (1, 4.5, ""), produced.ProduceCompleted(1, 4.5, "")),
    (batch_events.ACKNOWLEDGED, (*B, 44, 3, 4.5), produced.Acknowledged(B, 44, 3, 4.5)),
]
"""The method that reports the event, its arguments, and the event."""


def through_the_socket(emit: Callable[[EventStream], None]) -> tuple[Any, Any]:
    """Return the event from the socket and its reconstruction."""
    stream = EventStream(ManualClock())
    with stream.trace() as trace:
        emit(stream)
        send_line = encode_line(
            {"at_ms": 5, "events": shorten_moment(trace.take_recorded()), "dropped": 0, "snapshot": {}}
        )
    return json.loads(send_line)["events"][0], restore_frame(frame_of(send_line))["events"][0]


@pytest.mark.parametrize(("kind", "facts", "event"), FREQUENT, ids=[kind for kind, _, _ in FREQUENT])
def test_frequent_events_are_sent_as_facts_and_rebuilt_completely(
    kind: str, facts: tuple[Any, ...], event: Any
) -> None:
    stream = EventStream(ManualClock())
    came, made = through_the_socket(lambda stream: stream.publish_kind(kind, *facts))
    with stream.trace() as trace:
        stream.publish(event)
    (heard,) = trace
    assert came == [heard.at_ms, type(event).__name__, list(facts)]
    assert made == plain_moment(heard)


def test_every_compact_event_type_is_tested() -> None:
    assert {kind for kind, _, _ in FREQUENT} == set(MAKERS)


def test_the_first_line_names_the_facts() -> None:
    facts = facts_by_kind()
    assert facts["Acknowledged"] == ["topic", "partition", "base_offset", "records", "took_ms"]
    assert facts["FetchSent"] == ["node_id", "*places"]


def test_rare_events_are_sent_in_full() -> None:
    came, made = through_the_socket(lambda stream: stream.publish(consumed.Revoked((A,))))
    assert came == made
    assert (made["event"], made["text"], made["facts"]) == ("Revoked", "revoked a 0", {"partitions": ["a-0"]})


@pytest.mark.parametrize(("kind", "facts"), [("Teleported", ["a", 0]), ("Polled", ["a", 0])])
def test_an_event_of_a_later_version_keeps_its_facts(kind: str, facts: list[Any]) -> None:
    frame = restore_frame({"events": [[5, kind, facts]]})
    assert frame["events"] == [{"at_ms": 5, "event": kind, "text": f"{kind}: a, 0", "facts": {"facts": ["a", 0]}}]


def test_a_page_gets_whole_lines_and_no_names_of_facts() -> None:
    hello = {"kind": "producer", "pid": 1, "facts": facts_by_kind()}
    assert json.loads(complete_line(encode_line(hello))) == {"kind": "producer", "pid": 1}
    reported = {"at_ms": 5, "events": [[5, "Polled", [0.0]]], "dropped": 0, "snapshot": {"name": "\udc80"}}
    assert json.loads(complete_line(encode_line(reported))) == {
        **reported,
        "events": [{"at_ms": 5, "event": "Polled", "text": "poll after 0 ms", "facts": {"gap_ms": 0.0}}],
    }

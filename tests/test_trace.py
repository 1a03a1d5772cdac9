"""Ring buffers of trace events."""

from __future__ import annotations

import threading

import pytest

from ottla.clock import ManualClock
from ottla.trace import EventStream, Trace


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def stream(clock: ManualClock) -> EventStream:
    return EventStream(clock)


def test_events_are_stored_with_their_time_while_there_is_a_listener(stream: EventStream, clock: ManualClock) -> None:
    stream.publish("before")
    with stream.trace() as trace:
        stream.publish("first")
        clock.advance(0.25)
        stream.publish("second")
    stream.publish("after")
    (first, second) = trace
    assert (first.event, second.event) == ("first", "second")
    assert second.at_ms - first.at_ms == 250


def test_a_full_ring_drops_the_oldest_and_counts_them(stream: EventStream) -> None:
    trace = stream.trace(capacity=3)
    for n in range(10):
        stream.publish(n)
    assert [moment.event for moment in trace.events()] == [7, 8, 9]
    assert (trace.recorded_count, trace.dropped, len(trace)) == (10, 7, 3)


def test_read_events_are_removed_and_count_as_seen(stream: EventStream) -> None:
    trace = stream.trace(capacity=2)
    stream.publish(1)
    assert [moment.event for moment in trace.take()] == [1]
    assert trace.take() == []
    stream.publish(2)
    assert (len(trace), trace.dropped) == (1, 0)


def test_a_stream_is_active_while_it_has_a_listener(stream: EventStream) -> None:
    one, two = stream.trace(), stream.trace()
    one.close()
    one.close()
    active = [stream.active]
    two.close()
    assert [*active, stream.active] == [True, False]


def test_every_listener_receives_every_event(stream: EventStream) -> None:
    traces = [stream.trace() for _ in range(3)]
    stream.publish("x")
    assert [trace.events()[0].event for trace in traces] == ["x"] * 3


def test_a_ring_of_size_zero_is_rejected(stream: EventStream) -> None:
    with pytest.raises(ValueError, match="capacity = 0: must be at least 1"):
        stream.trace(0)


def test_concurrent_reading_returns_events_in_order(stream: EventStream) -> None:
    trace = stream.trace(capacity=50)

    def emit() -> None:
        for n in range(20_000):
            stream.publish(n)

    teller = threading.Thread(target=emit)
    teller.start()
    while teller.is_alive():
        assert_in_order(trace)
    teller.join()
    assert [moment.event for moment in trace.events()] == list(range(19_950, 20_000))


def assert_in_order(trace: Trace) -> None:
    seen = [moment.event for moment in trace.events()]
    assert seen == sorted(seen)

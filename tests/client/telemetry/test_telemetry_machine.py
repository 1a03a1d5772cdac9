"""Transcripts of a client that pushes metrics: lines with `>` are events, all other lines are the expected results."""

from __future__ import annotations

from random import Random
from textwrap import dedent
from uuid import UUID

import pytest

from ottla.client.telemetry.telemetry_machine import PushSubscription, TelemetryMachine, TelemetryState
from ottla.errors import ErrorCode
from ottla.model import FOREVER
from ottla.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse

ID = UUID(int=7)
SAID = {
    TelemetryState.SUBSCRIPTION_NEEDED: "asks",
    TelemetryState.PUSH_NEEDED: "pushes",
    TelemetryState.TERMINATING_PUSH_NEEDED: "pushes for the last time",
}


def play(transcript: str) -> TelemetryMachine:
    """Compare the results with the transcript; a difference shows all of it."""
    machine, now, came = TelemetryMachine(0.0), 0.0, []
    for line in dedent(transcript).strip().splitlines():
        if not line.startswith("> "):
            continue
        came.append(line)
        verb, *words = line[2:].split()
        if verb == "later":
            now += float(words[0])
        else:
            came += apply_event(machine, verb, words, now)
        machine.assert_invariants()
    assert "\n".join(came) == dedent(transcript).strip()
    return machine


def apply_event(machine: TelemetryMachine, verb: str, words: list[str], now: float) -> list[str]:
    """Apply one event and return the lines of its results."""
    match verb:
        case "look":
            state = machine.start_request(now)
            if state is not None:
                return [f"  {SAID[state]}"]
        case "wants":
            facts = dict(word.split("=") for word in words)
            metrics = [name for name in facts["metrics"].split(",") if name]
            wanted = GetTelemetrySubscriptionsResponse(
                client_instance_id=ID, push_interval_ms=int(facts["every"]) * 1000, requested_metrics=metrics
            )
            machine.handle_subscription(wanted, now, float(facts["chance"]))
        case "refuses":
            refusal = GetTelemetrySubscriptionsResponse(error_code=ErrorCode[words[0]])
            machine.handle_subscription(refusal, now, 0.5)
        case "answers":
            machine.handle_push_response(ErrorCode[words[0]], now, compression=4)
        case "lost":
            machine.handle_disconnect(now)
        case "closes":
            machine.close(now)
        case _:
            raise AssertionError(f"{verb} is none of the words")
    waits = "" if machine.due == FOREVER else f", again in {machine.due - now:g}"
    return [f"  {machine.state.value}{waits}"]


def test_metrics_are_pushed_at_their_interval_and_once_more_at_the_end() -> None:
    machine = play(
        """
        > look
          asks
        > look
          subscription in progress
        > wants metrics=* every=10 chance=0.25
          push needed, again in 7.5
        > later 7
        > look
          push needed, again in 0.5
        > later 0.5
        > look
          pushes
        > later 1
        > answers NONE
          push needed, again in 10
        > later 4
        > closes
          terminating push needed, again in 0
        > look
          pushes for the last time
        > answers NONE
          terminated
        > look
          terminated
        """
    )
    assert machine.client_instance_id == ID


@pytest.mark.parametrize(("chance", "wait"), [(0, 5), (0.5, 10), (1, 15)])
def test_first_pushes_are_spread_over_an_interval(chance: float, wait: int) -> None:
    play(f"""
        > look
          asks
        > wants metrics=* every=10 chance={chance}
          push needed, again in {wait}
        """)


def test_a_client_with_an_empty_subscription_polls_it_and_sends_no_last_push() -> None:
    play(
        """
        > look
          asks
        > wants metrics= every=300 chance=0
          subscription needed, again in 300
        > later 300
        > look
          asks
        > wants metrics= every=0 chance=0
          subscription needed, again in 300
        > closes
          terminated
        """
    )


def test_a_changed_subscription_is_requested_at_once() -> None:
    machine = play(
        """
        > look
          asks
        > wants metrics=* every=10 chance=0
          push needed, again in 5
        > later 5
        > look
          pushes
        > answers UNKNOWN_SUBSCRIPTION_ID
          subscription needed, again in 0
        > look
          asks
        > wants metrics=a,b every=60 chance=1
          push needed, again in 90
        > later 90
        > look
          pushes
        > answers UNSUPPORTED_COMPRESSION_TYPE
          subscription needed, again in 0
        """
    )
    assert machine.rejected_codecs == {4}


@pytest.mark.parametrize("error", ["THROTTLING_QUOTA_EXCEEDED", "TELEMETRY_TOO_LARGE"])
def test_a_throttled_client_waits_for_an_interval(error: str) -> None:
    play(f"""
        > look
          asks
        > refuses {error}
          subscription needed, again in 300
        > later 300
        > look
          asks
        > wants metrics=* every=10 chance=0
          push needed, again in 5
        > later 5
        > look
          pushes
        > answers {error}
          subscription needed, again in 10
        """)


def test_after_a_lost_connection_the_subscription_is_requested_after_an_interval() -> None:
    play(
        """
        > look
          asks
        > lost
          subscription needed, again in 300
        > later 300
        > look
          asks
        > wants metrics=* every=10 chance=0
          push needed, again in 5
        > later 5
        > look
          pushes
        > lost
          subscription needed, again in 10
        """
    )


@pytest.mark.parametrize("error", ["INVALID_RECORD", "INVALID_REQUEST", "UNSUPPORTED_VERSION", "UNKNOWN_SERVER_ERROR"])
def test_a_permanent_error_ends_telemetry(error: str) -> None:
    play(f"""
        > look
          asks
        > refuses {error}
          terminated
        """)
    play(f"""
        > look
          asks
        > wants metrics=* every=10 chance=0
          push needed, again in 5
        > later 5
        > look
          pushes
        > answers {error}
          terminated
        """)


@pytest.mark.parametrize(
    ("end", "after"),
    [
        ("answers NONE", "terminating push needed, again in 0"),
        ("answers UNKNOWN_SUBSCRIPTION_ID", "terminated"),
        ("lost", "terminated"),
    ],
)
def test_a_push_that_is_under_way_at_the_end_is_waited_for(end: str, after: str) -> None:
    play(f"""
        > look
          asks
        > wants metrics=* every=10 chance=0
          push needed, again in 5
        > later 5
        > look
          pushes
        > closes
          push in progress
        > {end}
          {after}
        """)


def test_no_push_follows_the_last_one_whatever_the_response() -> None:
    for end in ("answers UNKNOWN_SUBSCRIPTION_ID", "answers NONE", "lost"):
        play(f"""
            > look
              asks
            > wants metrics=* every=10 chance=0
              push needed, again in 5
            > closes
              terminating push needed, again in 0
            > look
              pushes for the last time
            > {end}
              terminated
            """)


def test_a_client_without_a_subscription_response_sends_no_last_push() -> None:
    play(
        """
        > look
          asks
        > closes
          terminated
        """
    )


@pytest.mark.parametrize(
    ("metrics", "wanted"),
    [
        (("*",), True),
        (("",), True),
        (("org.apache.kafka.producer.",), True),
        (("org.apache.kafka.consumer.", "org.apache.kafka.prod"), True),
        (("org.apache.kafka.consumer.",), False),
        ((), False),
    ],
)
def test_metrics_are_subscribed_by_name_prefix(metrics: tuple[str, ...], wanted: bool) -> None:
    subscription = PushSubscription(1, (), 10.0, 1000, True, metrics)
    assert subscription.is_subscribed("org.apache.kafka.producer.record.send.total") is wanted


def test_for_any_sequence_of_events_telemetry_is_in_a_defined_state() -> None:
    """Any order of events: `assert_invariants` holds, and there is an end."""
    for seed in range(200):
        random, machine, now = Random(seed), TelemetryMachine(0.0), 0.0
        for _ in range(30):
            now += random.choice([0.0, 1.0, 400.0])
            machine.start_request(now)
            if random.random() < 0.1:
                machine.close(now)
            answer(machine, random, now)
            machine.assert_invariants()
        machine.close(now)
        for _ in range(3):
            machine.start_request(now)
            answer(machine, random, now)
        assert machine.state is TelemetryState.TERMINATED


def answer(machine: TelemetryMachine, random: Random, now: float) -> None:
    """Return a random response to the request in flight, if there is one."""
    error = random.choice([0, 0, *[ErrorCode[name] for name in ("UNKNOWN_SUBSCRIPTION_ID", "TELEMETRY_TOO_LARGE")]])
    if "in progress" in machine.state.value and random.random() < 0.2:
        machine.handle_disconnect(now)
    elif machine.state is TelemetryState.SUBSCRIPTION_IN_PROGRESS:
        metrics = random.choice([[], ["*"]])
        wanted = GetTelemetrySubscriptionsResponse(
            error_code=error, client_instance_id=ID, push_interval_ms=1000, requested_metrics=metrics
        )
        machine.handle_subscription(wanted, now, random.random())
    elif "push in progress" in machine.state.value:
        machine.handle_push_response(error, now)

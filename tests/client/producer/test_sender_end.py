"""The start, the sleep and the end of the sender, and the errors of callers that timed out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.producer.sender import Sender
from ottla.client.runtime.exits import EXITS
from ottla.errors import IllegalStateError, KafkaTimeoutError
from ottla.protocol.messages.produce import ProduceRequest
from tests.client.producer.test_sender import Story
from tests.patience import eventually

FOR_EVER_MS = 2**31 - 1


def counting(story: Story) -> list[None]:
    """Return a list that grows by one at each wake-up of the sender."""
    woken: list[None] = []
    wake = story.selector.wakeup

    def wakeup() -> None:
        woken.append(None)
        wake()

    story.selector.wakeup = wakeup  # type: ignore[method-assign]
    return woken


def test_a_sender_without_trace_listeners_sends_records() -> None:
    story = Story()
    story.sender = Sender(story.config, story.sender._client, story.accumulator, "p", story.manager)
    (future,) = story.send(1)
    story.run()
    assert future.exception(0) is None


def test_a_producer_that_was_never_closed_keeps_no_process_from_ending() -> None:
    assert Story().sender.thread.daemon


def test_a_sleeping_sender_is_woken_once_for_any_number_of_records() -> None:
    story = Story()
    woken = counting(story)
    poll = story.selector.poll

    def sleep(timeout: float | None) -> None:
        story.sender.wakeup()
        story.sender.wakeup()
        poll(timeout)

    story.selector.poll = sleep  # type: ignore[method-assign]
    story.sender.run_once()
    assert len(woken) == 1
    story.sender.wakeup()
    assert len(woken) == 1, "it is busy, and sees what has come"


Complaint = Callable[[Sender], Exception]
IN_VAIN: list[Any] = [
    pytest.param(
        lambda sender: sender.missing_topic_error("t", None, None), "topic 't' not found within", id="a topic"
    ),
    pytest.param(lambda sender: sender.timeout_error("flush", 1), r"flush\(\) did not finish within 1 s", id="a call"),
]


@pytest.mark.behaviour("P4")
@pytest.mark.parametrize(("complaint", "text"), IN_VAIN)
def test_a_timeout_error_names_the_bootstrap_servers_until_one_has_answered(complaint: Complaint, text: str) -> None:
    story = Story()
    with pytest.raises(KafkaTimeoutError, match=r"max\.block\.ms") as caught:
        raise complaint(story.sender)
    assert not caught.match(text) if text in str(caught.value) else True
    assert "h:1" in str(caught.value)
    story.send(1)
    story.run()
    assert story.metadata.version == 1
    with pytest.raises(KafkaTimeoutError, match=text):
        raise complaint(story.sender)


def test_a_transaction_call_that_times_out_reports_the_transaction_state() -> None:
    story = Story(transactional_id="x")
    story.begin()
    assert "commit_transaction() did not finish within 2 s [IN_TRANSACTION]; call it again" in str(
        story.sender.timeout_error("commit_transaction", 2)
    )


def test_a_timeout_of_a_producer_without_idempotence_reports_no_state() -> None:
    story = Story(enable_idempotence=False)
    story.send(1)
    story.run()
    assert "flush() did not finish within 2 s; call it again" in str(story.sender.timeout_error("flush", 2))


def test_a_closing_sender_accepts_no_more_records() -> None:
    story = Story()
    story.sender.initiate_close()
    with pytest.raises(IllegalStateError, match="closed"):
        story.send(1)


@pytest.mark.behaviour("P2")
def test_accepted_records_are_sent_before_the_sender_ends() -> None:
    story = Story()
    (future,) = story.send(1)
    story.sender.start()
    story.sender.close(20)
    assert future.exception(0) is None
    assert story.sender._finish_at_exit not in EXITS._closers


def test_after_the_close_timeout_the_sender_ends_and_fails_remaining_records() -> None:
    story = Story(delivery_timeout_ms=FOR_EVER_MS, request_timeout_ms=20_000)
    story.silent = True
    (future,) = story.send(1)
    woken = counting(story)
    story.sender.start()
    story.sender.close(0.01)
    assert not story.sender.thread.is_alive()
    assert future.exception(0) is not None
    assert len(woken) >= 2, "it might sleep again by then"


def test_a_stuck_sender_is_not_waited_for_again_at_process_exit() -> None:
    story, going, stuck = Story(request_timeout_ms=1, retry_backoff_ms=1), threading.Event(), threading.Event()
    serve = story.selector.handler

    def answer(header: Any, request: Any) -> Any:
        if isinstance(request, ProduceRequest):
            stuck.set()
            going.wait()
        return serve(header, request)

    story.selector.handler = answer
    story.send(1)
    story.sender.start()
    eventually(stuck.is_set)
    try:
        story.sender.close(0)
        assert story.sender.thread.is_alive()
        assert story.sender._finish_at_exit not in EXITS._closers
    finally:
        going.set()
        story.sender.thread.join()


def test_a_sender_that_has_ended_is_not_closed_again_at_process_exit() -> None:
    story = Story()
    story.sender.start()
    story.sender.initiate_close()
    story.sender.thread.join()
    assert story.sender._finish_at_exit not in EXITS._closers

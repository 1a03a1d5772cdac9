"""The sender's beginning, its sleep and its end, and what it says to who waited in vain."""

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
    """One for each time that the sender is woken from now on."""
    woken: list[None] = []
    wake = story.selector.wakeup

    def wakeup() -> None:
        woken.append(None)
        wake()

    story.selector.wakeup = wakeup  # type: ignore[method-assign]
    return woken


def test_a_sender_that_nobody_watches_sends_all_the_same() -> None:
    story = Story()
    story.sender = Sender(story.config, story.sender._client, story.accumulator, "p", story.manager)
    (future,) = story.send(1)
    story.run()
    assert future.exception(0) is None


def test_a_producer_that_was_never_closed_keeps_no_process_from_ending() -> None:
    assert Story().sender.thread.daemon


def test_who_sleeps_is_woken_once_however_many_records_come_meanwhile() -> None:
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
    pytest.param(lambda sender: sender.missing("t", None, None), "topic 't' did not appear within", id="a topic"),
    pytest.param(lambda sender: sender.late("flush", 1), r"flush\(\) did not finish within 1 s", id="a call"),
]


@pytest.mark.behaviour("P4")
@pytest.mark.parametrize(("complaint", "text"), IN_VAIN)
def test_who_waited_in_vain_is_told_of_the_servers_until_one_has_answered(complaint: Complaint, text: str) -> None:
    story = Story()
    with pytest.raises(KafkaTimeoutError, match=r"max\.block\.ms") as told:
        raise complaint(story.sender)
    assert not told.match(text) if text in str(told.value) else True
    assert "h:1" in str(told.value)
    story.send(1)
    story.run()
    assert story.metadata.version == 1
    with pytest.raises(KafkaTimeoutError, match=text):
        raise complaint(story.sender)


def test_of_a_step_that_is_late_the_state_of_the_transaction_is_told() -> None:
    story = Story(transactional_id="x")
    story.begin()
    assert "commit_transaction() did not finish within 2 s [IN_TRANSACTION]; call it again" in str(
        story.sender.late("commit_transaction", 2)
    )


def test_of_a_producer_without_numbers_no_state_is_told() -> None:
    story = Story(enable_idempotence=False)
    story.send(1)
    story.run()
    assert "flush() did not finish within 2 s; call it again" in str(story.sender.late("flush", 2))


def test_nothing_is_taken_any_more_by_one_that_is_to_end() -> None:
    story = Story()
    story.sender.initiate_close()
    with pytest.raises(IllegalStateError, match="closed"):
        story.send(1)


@pytest.mark.behaviour("P2")
def test_what_was_taken_is_sent_before_it_ends() -> None:
    story = Story()
    (future,) = story.send(1)
    story.sender.start()
    story.sender.close(20)
    assert future.exception(0) is None
    assert story.sender._finish_at_exit not in EXITS._closers


def test_after_the_time_that_close_has_it_ends_at_once_and_what_is_left_fails() -> None:
    story = Story(delivery_timeout_ms=FOR_EVER_MS, request_timeout_ms=20_000)
    story.silent = True
    (future,) = story.send(1)
    woken = counting(story)
    story.sender.start()
    story.sender.close(0.01)
    assert not story.sender.thread.is_alive()
    assert future.exception(0) is not None
    assert len(woken) >= 2, "it might sleep again by then"


def test_one_that_is_stuck_is_not_waited_for_again_at_the_end_of_the_process() -> None:
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


def test_one_that_has_ended_by_itself_is_not_asked_again_at_the_end_of_the_process() -> None:
    story = Story()
    story.sender.start()
    story.sender.initiate_close()
    story.sender.thread.join()
    assert story.sender._finish_at_exit not in EXITS._closers

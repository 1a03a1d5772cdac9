"""User code in a producer's or consumer's own thread: it cannot end the thread, nor wait there for what only the thread does."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from ottla import Consumer, IllegalStateError, Producer, aio
from tests.client.conftest import NewTopicName, eventually, fresh_name

CALLS: dict[str, Callable[[Producer, str, str], Any]] = {
    "send to a topic that is not known": lambda producer, known, new: producer.send(new, b"v"),
    "send to a partition that is not there": lambda producer, known, new: producer.send(known, b"v", partition=99),
    "partitions_for": lambda producer, known, new: producer.partitions_for(new),
    "send_many": lambda producer, known, new: producer.send_many(new, [b"v"]),
    "send_table": lambda producer, known, new: producer.send_table(new, a_table()),
    "client_instance_id": lambda producer, known, new: producer.client_instance_id(),
    "result": lambda producer, known, new: producer.send(known, b"v").result(),
    "exception": lambda producer, known, new: producer.send(known, b"v").exception(30),
    "result of a receipt": lambda producer, known, new: producer.send_many(known, [b"v"]).result(),
}
"""Calls that wait, of a producer, a topic that it knows and one that it does not."""


def a_table() -> Any:
    import pyarrow as pa

    return pa.table({"value": [b"v"]})


class Exit(BaseException):
    """A BaseException that is not an Exception."""


RAISED = [Exit("over"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()]
raised = pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)


def raiser(error: BaseException) -> Callable[..., None]:
    def raise_error(*_: object) -> None:
        raise error

    return raise_error


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("way", ["on_delivery", "add_done_callback", "on_acknowledgement"])
def test_a_call_in_a_callback_that_would_wait_for_its_own_thread_is_refused_at_once(
    servers: str, topic: str, call: Callable[[Producer, str, str], Any], way: str
) -> None:
    seen: list[tuple[BaseException | None, float]] = []

    def called_back(*_: object) -> None:
        if not seen:
            began, failure = time.monotonic(), None
            seen.append((None, 0.0))
            try:
                call(producer, topic, fresh_name())
            except IllegalStateError as error:
                failure = error
            seen.append((failure, time.monotonic() - began))

    class Interceptor:
        on_acknowledgement = staticmethod(called_back)

    interceptors = [Interceptor()] if way == "on_acknowledgement" else []
    with Producer(bootstrap_servers=servers, linger_ms=100, interceptor_classes=interceptors) as producer:
        future = producer.send(topic, b"v", on_delivery=called_back if way == "on_delivery" else None)
        if way == "add_done_callback":
            future.add_done_callback(called_back)
        eventually(lambda: len(seen) == 2)
    error, took = seen[1]
    assert isinstance(error, IllegalStateError)
    assert any(
        text in str(error) for text in ("the thread that runs this code", "would deadlock", "would wait for itself")
    )
    assert took < 5


def test_a_callback_may_send_to_a_known_topic_and_read_a_future_without_waiting(servers: str, topic: str) -> None:
    sent: list[Any] = []

    def send_again(*_: object) -> None:
        sent.append(producer.send(topic, b"again"))
        sent.append(len(producer.partitions_for(topic)))
        sent.append(sent[0].done())

    with Producer(bootstrap_servers=servers, linger_ms=0) as producer:
        producer.send(topic, b"first", on_delivery=send_again)
        eventually(lambda: len(sent) == 3)
        assert sent[0].result(20).offset == 1
    assert sent[1:] == [1, False]


@raised
def test_nothing_that_a_callback_raises_ends_the_sender(
    servers: str, topic: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    class Interceptor:
        on_acknowledgement = staticmethod(raiser(error))

    with Producer(
        bootstrap_servers=servers,
        linger_ms=0,
        interceptor_classes=[Interceptor()],
        on_statistics=raiser(error),
        statistics_interval_ms=10,
    ) as producer:
        heard: list[Any] = []
        futures = [producer.send(topic, b"v", on_delivery=raiser(error)) for _ in range(3)]
        futures[0].add_done_callback(raiser(error))
        futures[2].add_done_callback(heard.append)
        assert [future.result(20).topic for future in futures] == [topic] * 3
        eventually(lambda: heard)
        eventually(lambda: "on.statistics raised" in caplog.text)
        assert producer._core.sender.thread.is_alive()
        assert producer.send(topic, b"after").result(20).offset == 3
    assert "a callback raised an error" in caplog.text


def test_a_callback_that_ends_an_asyncio_program_does_so_after_all_outcomes_are_known(servers: str, topic: str) -> None:
    outcomes: list[Any] = []

    async def story() -> None:
        async with aio.Producer(bootstrap_servers=servers, linger_ms=20) as producer:
            await producer.send(topic, b"a", on_delivery=raiser(SystemExit(3)))
            await producer.send(topic, b"b", on_delivery=lambda metadata, error: outcomes.append(metadata))
            await asyncio.Event().wait()

    with pytest.raises(SystemExit) as ended:
        asyncio.run(story())
    assert ended.value.code == 3
    assert [each.offset for each in outcomes] == [1]


def test_waiting_for_a_result_of_the_same_event_loop_is_rejected(servers: str, topic: str) -> None:
    async def story() -> None:
        async with aio.Producer(bootstrap_servers=servers) as producer:
            future = await producer.send(topic, b"v")
            with pytest.raises(IllegalStateError, match="await it in asyncio"):
                future.result()
            assert (await future).offset == 0

    asyncio.run(story())


@raised
def test_nothing_that_an_assignor_or_a_listener_of_events_raises_ends_the_heartbeat_thread(
    servers: str, new_topic: NewTopicName, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "ottla.client.consumer.group")

    class Interceptor:
        def on_event(self, event: object) -> None:
            if threading.current_thread() is not threading.main_thread():
                raise error

    topic, faults = new_topic(), [error]

    def assign(members: Any, partitions: Any, owned: Any) -> dict[str, list[Any]]:
        if faults:
            raise faults.pop()
        return {member: [(topic, 0)] for member in members}

    with Consumer(
        bootstrap_servers=servers,
        group_id=fresh_name(),
        interceptor_classes=[Interceptor()],
        partition_assignment_strategy=[assign],
    ) as consumer:
        consumer.subscribe([topic])
        failures: list[BaseException] = []

        def assigned() -> bool:
            try:
                consumer.poll(0.1)
            except Exception as failure:
                failures.append(failure)
            return bool(consumer.assignment())

        eventually(assigned)
        assert failures
        assert type(error).__name__ in str(failures[0])

"""Retries and concurrent calls of a processor, with threads and with asyncio."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

import ottla
from ottla import Backoff, ConsumerRecord
from ottla.errors import ConfigError
from tests.client.conftest import NewTopicName, eventually
from tests.client.process.running import consumer_of, filled, records_of, running, settled, upper, values_of

SOON = Backoff(3, base=0.001, cap=0.002)
SECONDS = 30.0


class FailsSometimes:
    """Fails on the first calls with the values that it is given."""

    def __init__(self, failures: dict[bytes, int]) -> None:
        self._left = dict(failures)
        self.calls: list[bytes] = []

    def __call__(self, record: ConsumerRecord) -> bytes:
        value = bytes(record.value or b"")
        self.calls.append(value)
        if self._left.get(value, 0):
            self._left[value] -= 1
            raise OSError(f"{value!r} fails")
        return value.upper()


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_failed_call_is_retried_before_the_next_record_and_its_result_is_sent_once(
    servers: str, new_topic: NewTopicName, exactly_once: bool, concurrency: int
) -> None:
    source, target = new_topic(), new_topic()
    function = FailsSometimes({b"b": 3})
    filled(servers, source, ["a", "b", "c"])
    how: dict[str, Any] = {"retries": SOON, "exactly_once": exactly_once, "concurrency": concurrency}
    with running(servers, source, function, to=target, **how):
        eventually(settled(servers, source, source, 3))
    assert function.calls == [b"a", b"b", b"b", b"b", b"b", b"c"]
    assert values_of(servers, target) == [b"A", b"B", b"C"]


def test_after_the_last_retry_the_record_becomes_a_dead_letter(servers: str, new_topic: NewTopicName) -> None:
    source, target, letters = new_topic(), new_topic(), new_topic()
    function = FailsSometimes({b"b": 9})
    filled(servers, source, ["a", "b", "c"])
    with running(servers, source, function, to=target, retries=SOON, dead_letter_topic=letters):
        eventually(settled(servers, source, source, 3))
    assert function.calls.count(b"b") == 4
    assert values_of(servers, target) == [b"A", b"C"]
    assert values_of(servers, letters) == [b"b"]


def test_without_dead_letters_the_exception_ends_the_processor(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, ["a", "b"])
    with (
        pytest.raises(OSError, match="fails"),
        running(servers, source, FailsSometimes({b"b": 9}), to=target, retries=SOON, concurrency=2) as processor,
    ):
        eventually(lambda: processor.is_over)
    assert records_of(servers, target) == []


def test_an_exception_that_a_retry_cannot_repair_is_not_retried(servers: str, new_topic: NewTopicName) -> None:
    source, letters = new_topic(), new_topic()
    function = FailsSometimes({b"a": 1})
    filled(servers, source, ["a"])
    never = Backoff(3, base=0.001, cap=0.002, give_up_on=(OSError,))
    with running(servers, source, function, to=letters, retries=never, dead_letter_topic=letters):
        eventually(settled(servers, source, source, 1))
    assert function.calls == [b"a"]


def keyed(servers: str, topic: str, pairs: list[tuple[bytes, bytes]]) -> None:
    with ottla.Producer(bootstrap_servers=servers) as producer:
        for key, value in pairs:
            producer.send(topic, value, key=key)


PAIRS = [(key, b"%s%d" % (key, number)) for number in range(20) for key in (b"a", b"b", b"c")]


def test_records_of_different_keys_are_processed_at_a_time_and_results_keep_their_order(
    servers: str, new_topic: NewTopicName
) -> None:
    source, target = new_topic(), new_topic()
    keyed(servers, source, PAIRS)
    together = threading.Barrier(3)
    by_key: dict[bytes, list[bytes]] = defaultdict(list)

    def function(record: ConsumerRecord) -> bytes:
        together.wait(SECONDS)  # passes only if three calls run at a time
        assert record.key is not None
        by_key[record.key].append(bytes(record.value or b""))
        return upper(record)

    with running(servers, source, function, to=target, concurrency=3):
        eventually(settled(servers, source, source, len(PAIRS)))
    assert values_of(servers, target) == [value.upper() for _, value in PAIRS]
    assert by_key == {key: [value for k, value in PAIRS if k == key] for key in (b"a", b"b", b"c")}


def test_a_stop_ends_the_wait_for_a_retry_and_the_record_is_processed_by_the_next_processor(
    servers: str, new_topic: NewTopicName
) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, ["a"])
    called = threading.Event()

    def fails(record: ConsumerRecord) -> bytes:
        called.set()
        raise OSError("later")

    started = time.monotonic()
    with running(servers, source, fails, to=target, retries=Backoff(1, base=50, cap=50)):
        assert called.wait(SECONDS)
    assert time.monotonic() - started < SECONDS
    assert not settled(servers, source, source, 1)()
    with running(servers, source, upper, to=target):
        eventually(settled(servers, source, source, 1))
    assert values_of(servers, target) == [b"A"]


def test_with_asyncio_calls_are_retried_and_made_concurrently(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    keyed(servers, source, PAIRS)
    inner = FailsSometimes({b"b7": 2, b"c3": 1})
    running_calls = most = 0

    async def function(record: ConsumerRecord) -> bytes:
        nonlocal running_calls, most
        running_calls += 1
        most = max(most, running_calls)
        try:
            await asyncio.sleep(0)
            return inner(record)
        finally:
            running_calls -= 1

    asyncio.run(process_until(servers, source, function, settled(servers, source, source, len(PAIRS)), to=target))
    assert values_of(servers, target) == [value.upper() for _, value in PAIRS]
    assert [value for value in inner.calls if value.startswith(b"b")][7:10] == [b"b7", b"b7", b"b7"]
    assert most == 2


def test_with_asyncio_a_stop_ends_the_wait_for_a_retry(servers: str, new_topic: NewTopicName) -> None:
    source, target = new_topic(), new_topic()
    filled(servers, source, ["a"])
    called = threading.Event()

    async def fails(record: ConsumerRecord) -> bytes:
        called.set()
        raise OSError("later")

    asyncio.run(process_until(servers, source, fails, called.is_set, to=target, retries=Backoff(1, base=50, cap=50)))
    assert not settled(servers, source, source, 1)()


async def process_until(servers: str, source: str, function: Any, condition: Callable[[], bool], **how: Any) -> None:
    """Run a processor until the condition holds. The condition may block and runs in a thread."""
    reads: dict[str, Any] = {"group_id": source, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    async with (
        ottla.aio.Consumer(bootstrap_servers=servers, isolation_level="read_committed", **reads) as consumer,
        ottla.aio.Producer(bootstrap_servers=servers, transactional_id=source) as producer,
    ):
        settings = {"topics": [source], "commit_interval_ms": 20, "concurrency": 2, "retries": SOON, **how}
        processor = ottla.aio.Processor(consumer, producer, function, **settings)
        task = asyncio.create_task(processor.run())
        await asyncio.to_thread(eventually, condition)
        processor.stop()
        await asyncio.wait_for(task, SECONDS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"concurrency": 0}, "invalid value 0 for concurrency: expected a whole number from 1 on"),
        ({"retries": "often"}, "expected a number or a Backoff"),
        ({"retries": 1, "batches": True}, "retries and concurrency with batches or arrow"),
        ({"concurrency": 2, "arrow": True}, "retries and concurrency with batches or arrow"),
        ({"retries": Backoff(7)}, "reach transaction.timeout.ms = 60000"),
        ({"retries": Backoff(12), "exactly_once": False}, "reach max.poll.interval.ms = 300000"),
    ],
)
def test_settings_that_break_the_contract_are_rejected(servers: str, settings: dict[str, Any], message: str) -> None:
    ids: dict[str, Any] = {"transactional_id": "t"} if settings.get("exactly_once", True) else {}
    with (
        consumer_of(servers, "group") as consumer,
        ottla.Producer(bootstrap_servers=servers, **ids) as producer,
        pytest.raises(ConfigError, match=message),
    ):
        ottla.Processor(consumer, producer, upper, topics=["t"], **settings)

"""Exceptions at any point of a consumer's calls, as from a signal handler: the consumer continues and loses nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition, aio
from ottla.errors import KafkaError
from tests.client.conftest import fresh_name
from tests.client.consumer.conftest import fill_topic
from tests.interrupts import Interrupted, every_point
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An exception may be raised where Python only reports it: in a generator that is closed, or before a socket is stored."""
COUNT = 200
PER_BATCH = 5
QUICK = 20.0
"""Seconds for a call after an interrupted one: less than any request's timeout, so that nothing waits for a lost answer."""


@pytest.fixture
def tp(group_admin: Admin, group_producer: Producer) -> TopicPartition:
    """A partition with records in small batches."""
    tp = TopicPartition(fresh_name(), 0)
    group_admin.create_topics([NewTopic(tp.topic, 1)])
    for _ in range(COUNT // PER_BATCH):
        fill_topic(group_producer, tp.topic, PER_BATCH, partitions=1)
    return tp


def settings_for(broker: Broker, **others: Any) -> dict[str, Any]:
    quick = {
        "retry_backoff_ms": 20,
        "reconnect_backoff_ms": 20,
        "max_poll_records": 3,
        "max_partition_fetch_bytes": 200,
    }
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        **quick,
        **others,
    }


RETURNED = ("/client/consumer/records.py",)
"""The module of the records that a poll has returned. An exception while the test iterates over them is not the consumer's."""
POLLS: dict[str, tuple[Callable[[Consumer], Any], Callable[[Any], list[Any]]]] = {
    "poll": (lambda consumer: consumer.poll(QUICK), lambda found: [record.offset for record in found]),
    "loop": (lambda consumer: next(iter(consumer)), lambda found: [found.offset]),
    "arrow": (lambda consumer: consumer.poll_arrow(QUICK, max_bytes=1), lambda found: found["offset"].to_pylist()),
    "columns": (
        lambda consumer: consumer.poll_columns(QUICK, max_bytes=1),
        lambda found: [offset for _, columns in found for offset in columns.offsets],
    ),
}


@pytest.mark.behaviour("C19")
@pytest.mark.parametrize("error", [KeyboardInterrupt, Interrupted])
@pytest.mark.parametrize("form", POLLS)
def test_a_poll_that_an_exception_ends_at_any_point_loses_and_repeats_no_record(
    group_broker: Broker, tp: TopicPartition, form: str, error: type[BaseException]
) -> None:
    poll, offsets_of = POLLS[form]
    seen: list[int] = []
    interruptions = 0
    with Consumer(settings_for(group_broker)) as consumer:
        consumer.assign([tp])
        for interrupter in every_point(step=6, misses=4, error=error):
            if len(seen) > COUNT // 2:
                consumer.seek(tp, 0)
                seen = []
            try:
                with interrupter:
                    found = poll(consumer)
            except error:
                interruptions += 1
                found = poll(consumer)
            seen += offsets_of(found)
            assert seen == list(range(len(seen))), interrupter.place
    assert interruptions > 20


@pytest.mark.behaviour("C6")
def test_a_commit_succeeds_after_one_interrupted_at_any_point(
    group_broker: Broker, group_id: str, tp: TopicPartition
) -> None:
    interruptions = 0
    with Consumer(settings_for(group_broker, group_id=group_id)) as consumer:
        consumer.assign([tp])
        for number, interrupter in enumerate(every_point(step=5, error=KeyboardInterrupt)):
            try:
                with interrupter:
                    consumer.commit_async({tp: number})
                    consumer.commit({tp: number}, QUICK)
            except KeyboardInterrupt:
                interruptions += 1
                consumer.commit({tp: number}, QUICK)
            committed = consumer.committed([tp])[tp]
            assert committed is not None
            assert committed.offset == number, interrupter.place
    assert interruptions > 50


@pytest.mark.behaviour("C6")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_joins_reads_and_commits_after_an_exception_at_any_point(
    group_broker: Broker, group_id: str, tp: TopicPartition, protocol: str
) -> None:
    for number, interrupter in enumerate(every_point(step=149, error=KeyboardInterrupt)):
        settings = settings_for(group_broker, group_id=f"{group_id}-{number}", group_protocol=protocol)
        with Consumer(settings) as consumer:
            consumer.subscribe([tp.topic])
            found: list[Any] = []

            def read(consumer: Consumer = consumer, found: list[Any] = found) -> None:
                deadline = time.monotonic() + PATIENCE
                while not found:
                    assert time.monotonic() < deadline, "no record arrived"
                    found.extend(consumer.poll(QUICK))
                consumer.commit(timeout=QUICK)

            try:
                with interrupter:
                    read()
            except KeyboardInterrupt:
                read()
            assert [record.offset for record in found] == [0, 1, 2], interrupter.place
            committed = consumer.committed([tp])[tp]
            assert committed is not None
            assert committed.offset == 3, interrupter.place


@pytest.mark.behaviour("C6")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_close_that_an_exception_ends_at_any_point_leaves_the_group_when_it_is_called_again(
    group_broker: Broker, group_admin: Admin, group_id: str, tp: TopicPartition, protocol: str
) -> None:
    for number, interrupter in enumerate(every_point(step=19, error=KeyboardInterrupt)):
        name = f"{group_id}-{number}"
        consumer = Consumer(settings_for(group_broker, group_id=name, group_protocol=protocol, enable_auto_commit=True))
        consumer.subscribe([tp.topic])
        eventually(partial(consumer.poll, QUICK))
        try:
            with interrupter:
                consumer.close()
        except KeyboardInterrupt:
            consumer.close()
        wait_until_empty(group_admin, name, interrupter.place)


@pytest.mark.behaviour("C6", "C10")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_leaves_the_group_after_ctrl_c_at_any_point_of_a_commit(
    group_broker: Broker, group_admin: Admin, group_id: str, tp: TopicPartition, protocol: str
) -> None:
    for number, interrupter in enumerate(every_point(step=13, error=KeyboardInterrupt)):
        name = f"{group_id}-{number}"
        settings = settings_for(group_broker, group_id=name, group_protocol=protocol, enable_auto_commit=True)
        with suppress(KeyboardInterrupt), Consumer(settings) as consumer:
            consumer.subscribe([tp.topic])
            eventually(lambda: consumer.poll(QUICK) or consumer.assignment())
            with interrupter:
                consumer.commit({tp: 1}, QUICK)
        wait_until_empty(group_admin, name, interrupter.place)


def wait_until_empty(admin: Admin, group: str, place: str) -> None:
    """Wait until a group has no members: after Ctrl-C, `close` sends the leave request, but does not wait long for its response."""
    deadline = time.monotonic() + PATIENCE
    while admin.describe_consumer_groups([group])[group].members:
        assert time.monotonic() < deadline, place


async def one_after_the_other(settings: dict[str, Any], tp: TopicPartition) -> int:
    """Poll and commit, interrupted at one point after the other; returns how often."""
    interruptions = 0
    seen: list[int] = []
    async with aio.Consumer(settings) as consumer:
        consumer.assign([tp])

        async def turn() -> list[int]:
            found = await consumer.poll(QUICK)
            offsets.extend(record.offset for record in found)
            await consumer.commit(timeout=QUICK)
            return offsets

        # Without compiled modules the records are made in record.py, while the test iterates over them.
        for interrupter in every_point(step=5, misses=4, skip=(*RETURNED, "/client/consumer/record.py")):
            if len(seen) > COUNT // 2:
                consumer.seek(tp, 0)
                seen = []
            offsets: list[int] = []
            try:
                with interrupter:
                    await turn()
            except (Interrupted, KafkaError):  # which of both depends on whether the event loop was at work
                interruptions += 1
                if not offsets:
                    await turn()
            seen += offsets
            assert seen == list(range(len(seen))), interrupter.place
    return interruptions


@pytest.mark.behaviour("C19")
def test_a_consumer_of_asyncio_loses_and_repeats_no_record_after_an_exception_at_any_point(
    group_broker: Broker, group_id: str, tp: TopicPartition
) -> None:
    assert asyncio.run(one_after_the_other(settings_for(group_broker, group_id=group_id), tp)) > 30

"""The processor of asyncio: functions that are awaited, tasks that are cancelled, members that share a loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import ottla
from ottla import ConsumerRecord
from ottla.aio import Consumer, Processor, Producer
from ottla.client.process import processor_face
from ottla.clock import ManualClock
from tests.aio.conftest import play
from tests.client.conftest import NewTopicName, fresh_name
from tests.client.conftest import admin as admin
from tests.client.conftest import new_topic as new_topic
from tests.client.conftest import servers as servers
from tests.client.process.running import filled, values_of

FOREVER_MS = 60_000


@pytest.fixture
def source(new_topic: NewTopicName) -> str:
    return new_topic()


@pytest.fixture
def target(new_topic: NewTopicName) -> str:
    return new_topic()


@pytest.fixture
def halves(servers: str, new_topic: NewTopicName) -> str:
    """A topic of two partitions, with ten records in each."""
    topic = new_topic(2)
    with ottla.Producer(bootstrap_servers=servers) as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number, partition=number % 2)
    return topic


def remembering() -> tuple[list[bytes], Callable[[ConsumerRecord], bytes]]:
    """A function that records its arguments and returns them."""
    seen: list[bytes] = []

    def noted(record: ConsumerRecord) -> bytes:
        seen.append(record.value or b"")
        return seen[-1]

    return seen, noted


@asynccontextmanager
async def made(
    servers: str,
    source: str,
    function: Any,
    *,
    session_timeout_ms: int = 45_000,
    make: type[Producer] = Producer,
    **how: Any,
) -> AsyncIterator[Processor]:
    """A processor that is not started yet, and its clients."""
    transactional_id = fresh_name() if how.get("exactly_once", True) else None
    reads: dict[str, Any] = {
        "group_id": source,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "isolation_level": "read_committed",
        "heartbeat_interval_ms": 50,
        "session_timeout_ms": session_timeout_ms,
    }
    async with (
        Consumer(bootstrap_servers=servers, **reads) as consumer,
        make(bootstrap_servers=servers, transactional_id=transactional_id) as producer,
    ):
        yield Processor(consumer, producer, function, **{"topics": [source], "commit_interval_ms": 5, **how})


async def until(condition: Callable[[], object], task: asyncio.Task[None]) -> None:
    """Wait until the condition holds; the task must not end before. The condition may block and runs in a thread."""
    while not await asyncio.to_thread(condition):
        if task.done():
            task.result()
            raise AssertionError("the processor has ended")
        await asyncio.sleep(0)


def plain(record: ConsumerRecord) -> bytes:
    return bytes(record.value or b"").upper()


async def awaited(record: ConsumerRecord) -> bytes:
    await asyncio.sleep(0)
    return plain(record)


async def several(record: ConsumerRecord) -> AsyncIterator[bytes]:
    yield plain(record)
    await asyncio.sleep(0)


def listed(records: list[ConsumerRecord]) -> list[bytes]:
    return [plain(record) for record in records]


async def tabled(table: pa.Table) -> pa.Table:
    values: Any = table.column("value").to_pylist()
    return pa.table({"value": [value.upper() for value in values]})


@pytest.mark.parametrize(
    ("function", "how"),
    [
        (plain, {}),
        (awaited, {}),
        (awaited, {"exactly_once": False}),
        (several, {}),
        (listed, {"batches": True}),
        (tabled, {"arrow": True}),
    ],
)
def test_functions_are_called_or_awaited(
    servers: str, source: str, target: str, function: Any, how: dict[str, Any]
) -> None:
    filled(servers, source, ["a", "b", "c"])

    async def story() -> None:
        async with made(servers, source, function, to=target, **how) as processor:
            task = asyncio.ensure_future(processor.run())
            await until(lambda: len(values_of(servers, target)) == 3, task)
            processor.stop()
            await task
            assert processor.is_over

    play(story)
    assert values_of(servers, target) == [b"A", b"B", b"C"]


def test_a_task_that_is_cancelled_aborts_what_is_under_way(servers: str, source: str, target: str) -> None:
    filled(servers, source, ["a"])
    seen = asyncio.Event()

    async def waits(record: ConsumerRecord) -> bytes:
        seen.set()
        await asyncio.Event().wait()
        return b"never"

    async def story() -> None:
        async with made(servers, source, waits, to=target) as processor:
            task = asyncio.ensure_future(processor.run())
            await seen.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        async with made(servers, source, plain, to=target) as processor:
            task = asyncio.ensure_future(processor.run())
            await until(lambda: values_of(servers, target), task)
            processor.stop()
            await task

    play(story)
    assert values_of(servers, target) == [b"A"]


@pytest.mark.parametrize("moment", range(4))
def test_a_cancellation_at_any_time_loses_and_repeats_nothing(group_broker: ottla.Broker, moment: int) -> None:
    servers, source, target = group_broker.bootstrap_servers, fresh_name(), fresh_name()
    with ottla.Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([ottla.NewTopic(source, 1), ottla.NewTopic(target, 1)])
    filled(servers, source, [str(number) for number in range(40)])
    # A member cancelled while it joins is removed after this time at the earliest.
    how: dict[str, Any] = {"to": target, "session_timeout_ms": 1000}

    async def story() -> None:
        for turn in range(5):
            async with made(servers, source, awaited, commit_interval_ms=0, **how) as processor:
                task = asyncio.ensure_future(processor.run())
                await asyncio.wait([task], timeout=0.0005 * (7 * moment + 40 * turn))
                task.cancel()
                await asyncio.wait([task])
        async with made(servers, source, awaited, **how) as processor:
            task = asyncio.ensure_future(processor.run())
            await until(lambda: len(values_of(servers, target)) >= 40, task)
            processor.stop()
            await task

    play(story)
    assert values_of(servers, target) == [b"%d" % number for number in range(40)]


def test_an_exception_of_a_coroutine_becomes_a_dead_letter(
    servers: str, source: str, target: str, new_topic: NewTopicName
) -> None:
    letters = new_topic()
    filled(servers, source, ["1", "none"])

    async def number(record: ConsumerRecord) -> bytes:
        await asyncio.sleep(0)
        return b"%d" % int(record.value or b"")

    async def story() -> None:
        async with made(servers, source, number, to=target, dead_letter_topic=letters) as processor:
            task = asyncio.ensure_future(processor.run())
            await until(lambda: values_of(servers, letters), task)
            processor.stop()
            await task

    play(story)
    assert (values_of(servers, target), values_of(servers, letters)) == ([b"1"], [b"none"])


def test_records_of_a_processor_are_committed_before_its_partitions_move(
    servers: str, halves: str, target: str
) -> None:
    seen, noted = remembering()

    async def story() -> None:
        how: dict[str, Any] = {"to": target, "commit_interval_ms": FOREVER_MS}
        async with made(servers, halves, noted, **how) as one, made(servers, halves, noted, **how) as two:
            first = asyncio.ensure_future(one.run())
            await until(lambda: len(seen) == 20, first)
            assert values_of(servers, target) == []
            second = asyncio.ensure_future(two.run())
            await until(lambda: len(values_of(servers, target)) == 20, second)
            one.stop()
            two.stop()
            await asyncio.gather(first, second)

    play(story)
    assert len(seen) == len(values_of(servers, target)) == 20


class Held(Producer):
    """A processor with commits that start and then wait for permission."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.begun, self.may = Held.of_all = asyncio.Queue(), asyncio.Event()

    of_all: tuple[asyncio.Queue[str], asyncio.Event]

    async def commit_transaction(self, timeout: float | None = None) -> None:
        self.begun.put_nowait("commit")
        await self.may.wait()
        await super().commit_transaction(timeout)


def test_a_commit_due_during_a_rebalance_is_made_once(
    servers: str, halves: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listener's coroutine outlives the poll that started it: the processor must not commit concurrently."""
    clock, (seen, noted) = ManualClock(), remembering()
    monkeypatch.setattr(processor_face, "time", SimpleNamespace(monotonic=clock.monotonic))

    async def story() -> None:
        how: dict[str, Any] = {"to": target, "commit_interval_ms": 20}
        async with made(servers, halves, noted, make=Held, **how) as one, made(servers, halves, noted, **how) as two:
            first = asyncio.ensure_future(one.run())
            await until(lambda: len(seen) == 20, first)
            second = asyncio.ensure_future(two.run())
            begun, may = Held.of_all
            await begun.get()
            clock.advance(1)
            beside = asyncio.ensure_future(begun.get())
            await asyncio.wait([beside], timeout=0.2)
            beside.cancel()
            may.set()
            await until(lambda: len(values_of(servers, target)) == 20, first)
            assert beside.cancelled()
            one.stop()
            two.stop()
            await asyncio.gather(first, second)

    play(story)
    assert len(seen) == len(values_of(servers, target)) == 20

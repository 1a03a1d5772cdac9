"""The asyncio producer: sending, waiting, and cancelled tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ottla import Broker, Consumer, TopicPartition
from ottla.aio import Producer
from ottla.aio.loop_sender import LoopSender
from ottla.errors import BufferExhaustedError, IllegalStateError, KafkaTimeoutError, NoBrokersAvailableError
from tests.aio.conftest import Members, play, until
from tests.client.consumer.conftest import partitions

Producers = Callable[..., Producer]


@pytest.fixture
def producer(group_broker: Broker) -> Producers:
    """Creates producers; the caller closes them."""
    return lambda **settings: Producer(bootstrap_servers=group_broker.bootstrap_servers, **settings)


def read(broker: Broker, topic: str, count: int, **settings: Any) -> list[bytes]:
    """Return the values of a topic's first records."""
    servers, seen = broker.bootstrap_servers, list[bytes]()
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign(partitions(topic))
        while len(seen) < count:
            seen += [record.value or b"" for record in consumer.poll(1)]
    return seen


def test_a_record_is_sent_and_its_future_returns_the_metadata(
    producer: Producers, group_broker: Broker, shared_topic: str
) -> None:
    async def story() -> Any:
        async with producer() as sender:
            return await (await sender.send(shared_topic, b"v", key=b"k", partition=2, headers=[("h", b"1")]))

    assert play(story)[:3] == (shared_topic, 2, 0)
    assert read(group_broker, shared_topic, 1) == [b"v"]


def test_the_asyncio_producer_starts_no_thread(producer: Producers, shared_topic: str) -> None:
    async def story() -> None:
        before = set(threading.enumerate())
        async with producer() as sender:
            await (await sender.send(shared_topic, b"v"))
            new = set(threading.enumerate()) - before
            assert not [thread for thread in new if "producer" in thread.name]

    play(story)


def test_many_records_keep_their_order_and_close_sends_the_rest(
    producer: Producers, group_broker: Broker, shared_topic: str
) -> None:
    async def story() -> None:
        async with producer(linger_ms=5, batch_size=1000) as sender:
            for n in range(2000):
                await sender.send(shared_topic, b"%d" % n, partition=0)

    play(story)
    assert read(group_broker, shared_topic, 2000) == [b"%d" % n for n in range(2000)]


def test_a_full_buffer_suspends_the_task_and_not_the_loop(producer: Producers, shared_topic: str) -> None:
    async def story() -> tuple[int, int]:
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with producer(
            buffer_memory=4096, batch_size=1024, linger_ms=60_000, delivery_timeout_ms=120_000
        ) as sender:
            counting = asyncio.ensure_future(count_turns())
            futures = [await sender.send(shared_topic, bytes(500), partition=0) for _ in range(100)]
            await sender.flush(10)
            counting.cancel()
            return turns, sum(future.done() for future in futures)

    turns, done = play(story)
    assert done == 100
    assert turns > 10


def test_a_buffer_that_stays_full_is_an_error(producer: Producers, shared_topic: str) -> None:
    async def story() -> None:
        async with producer(buffer_memory=2048, batch_size=1024, max_block_ms=500) as sender:
            await sender.partitions_for(shared_topic)
            sender._core.sender._send_producer_data = lambda now: 60.0  # type: ignore[method-assign]
            for _ in range(4):
                await sender.send(shared_topic, bytes(300), partition=0)
            with pytest.raises(BufferExhaustedError, match=r"max\.block\.ms = 500"):
                await sender.send(shared_topic, bytes(900), partition=0)
            await sender.close(0)

    play(story)


def test_a_topic_that_does_not_appear_and_a_broker_that_is_not_there_are_errors(
    producer: Producers, shared_topic: str
) -> None:
    async def story() -> None:
        async with producer(max_block_ms=2_000) as sender:
            await sender.send(shared_topic, b"v", partition=0)  # from here on the topic is known
            with pytest.raises(KafkaTimeoutError, match="partitions 0 to 3, and 9 was not created"):
                await sender.send(shared_topic, b"v", partition=9)
        async with Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=100) as sender:
            with pytest.raises(NoBrokersAvailableError, match="within 100 ms"):
                await sender.send(shared_topic, b"v")

    play(story)


def test_waiting_for_a_broker_uses_little_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[float] = []
    work = LoopSender._run_work

    def counted(self: LoopSender) -> float:
        turns.append(work(self))
        return turns[-1]

    monkeypatch.setattr(LoopSender, "_run_work", counted)

    async def story() -> None:
        async with Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=300) as sender:
            with pytest.raises(NoBrokersAvailableError):
                await sender.send("t", b"v")

    play(story)
    assert len(turns) < 100


def test_a_cancelled_send_does_not_affect_the_others(
    producer: Producers, group_broker: Broker, shared_topic: str
) -> None:
    async def story() -> int:
        sent = 0
        async with producer(buffer_memory=4096, batch_size=1024) as sender:
            for patience in range(60):
                task = asyncio.ensure_future(sender.send(shared_topic, b"%d" % patience, partition=0))
                for _ in range(patience % 7):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                sent += not task.cancelled()
            await sender.send(shared_topic, b"last", partition=0)
        return sent

    sent = play(story)
    values = read(group_broker, shared_topic, sent + 1)
    assert values[-1] == b"last"
    assert [int(v) for v in values[:-1]] == sorted({int(v) for v in values[:-1]})


def test_a_cancelled_close_continues(producer: Producers, group_broker: Broker, shared_topic: str) -> None:
    async def story() -> None:
        sender = producer(linger_ms=60_000, delivery_timeout_ms=120_000)
        await sender.send(shared_topic, b"v")
        closing = asyncio.ensure_future(sender.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await sender.close()
        with pytest.raises(IllegalStateError, match="closed"):
            await sender.send(shared_topic, b"w")

    play(story)
    assert read(group_broker, shared_topic, 1) == [b"v"]


def test_a_table_is_sent(producer: Producers, group_broker: Broker, shared_topic: str) -> None:
    import pyarrow as pa

    async def story() -> int:
        async with producer(buffer_memory=40_000) as sender:
            table = pa.table({"value": [bytes(100)] * 1000})
            receipt = await sender.send_table(shared_topic, table)
            await sender.flush(10)
            return sum(len(span) for spans in receipt.result(0).values() for span in spans)

    assert play(story) == 1000
    assert len(read(group_broker, shared_topic, 1000)) == 1000


def test_many_values_are_sent_in_one_call(producer: Producers, group_broker: Broker, shared_topic: str) -> None:
    async def story() -> Any:
        async with producer() as sender:
            receipt = await sender.send_many(shared_topic, [b"a", b"b"], keys=[b"k", b"k"])
            await sender.flush(10)
            return receipt.result(0)

    assert list(play(story).values()) == [[range(2)]]
    assert read(group_broker, shared_topic, 2) == [b"a", b"b"]


def test_a_transaction_is_committed_or_aborted_as_a_whole(
    producer: Producers, group_broker: Broker, shared_topic: str, group_id: str
) -> None:
    async def failing(sender: Producer) -> None:
        async with sender.transaction():
            await sender.send(shared_topic, b"aborted", partition=0)
            await sender.flush()
            raise LookupError

    async def story() -> None:
        async with producer(transactional_id=group_id) as sender:
            await sender.init_transactions()
            with pytest.raises(LookupError):
                await failing(sender)
            async with sender.transaction():
                await sender.send(shared_topic, b"committed", partition=0)

    play(story)
    assert read(group_broker, shared_topic, 1, isolation_level="read_committed") == [b"committed"]
    assert read(group_broker, shared_topic, 2) == [b"aborted", b"committed"]


def test_a_task_that_is_cancelled_in_a_transaction_aborts_it(
    producer: Producers, group_broker: Broker, shared_topic: str, group_id: str
) -> None:
    async def story() -> None:
        async with producer(transactional_id=group_id) as sender:
            await sender.init_transactions()
            sent = asyncio.Event()

            async def endless() -> None:
                async with sender.transaction():
                    await (await sender.send(shared_topic, b"aborted", partition=0))
                    sent.set()
                    await asyncio.Event().wait()

            task = asyncio.ensure_future(endless())
            await sent.wait()
            task.cancel()
            await asyncio.wait([task])
            async with sender.transaction():
                await sender.send(shared_topic, b"committed", partition=0)

    play(story)
    assert read(group_broker, shared_topic, 1, isolation_level="read_committed") == [b"committed"]


def test_a_transaction_after_a_cancelled_commit_succeeds(
    producer: Producers, group_broker: Broker, shared_topic: str, group_id: str
) -> None:
    async def story() -> None:
        async with producer(transactional_id=group_id) as sender:
            await sender.init_transactions()
            assert sender._core.transactional is not None
            machine = sender._core.transactional.machine

            async def one(value: bytes) -> None:
                async with sender.transaction():
                    await sender.send(shared_topic, value, partition=0)

            async def interrupted(value: bytes) -> None:
                async with asyncio.timeout(None) as limit:

                    def commit() -> Any:
                        limit.reschedule(0)  # the commit may be over within the same turn of the sender
                        return begin_commit()

                    with pytest.MonkeyPatch.context() as patch:
                        begin_commit = machine.commit_transaction
                        patch.setattr(machine, "commit_transaction", commit)
                        await one(value)

            for turn in range(3):
                with pytest.raises(TimeoutError):
                    await interrupted(b"interrupted %d" % turn)
                await one(b"whole %d" % turn)

    play(story)
    expected = [b"%s %d" % (what, turn) for turn in range(3) for what in (b"interrupted", b"whole")]
    assert read(group_broker, shared_topic, 6, isolation_level="read_committed") == expected


def test_offsets_of_a_group_are_committed_in_a_transaction(
    producer: Producers, member: Members, shared_topic: str, group_id: str
) -> None:
    tp = TopicPartition(shared_topic, 0)

    async def story() -> int:
        async with producer(transactional_id=group_id) as sender, member(enable_auto_commit=False) as consumer:
            await sender.init_transactions()
            consumer.assign([tp])
            async with sender.transaction():
                await sender.send_offsets_to_transaction({tp: 5}, consumer.group_metadata())
            committed = (await consumer.committed([tp]))[tp]
            assert committed is not None
            return committed.offset

    assert play(story) == 5


def test_two_consumers_and_a_producer_share_a_loop(producer: Producers, member: Members, shared_topic: str) -> None:
    async def story() -> list[int]:
        seen: list[int] = []
        async with producer() as sender, member() as one, member() as two:
            for consumer in (one, two):
                consumer.subscribe([shared_topic])

            async def reader(consumer: Any) -> None:
                async for record in consumer:
                    seen.append(int(record.value))  # noqa: PERF401 - what came before it is cancelled counts

            readers = [asyncio.ensure_future(reader(consumer)) for consumer in (one, two)]
            await until(lambda: len(one.assignment()) == len(two.assignment()) == 2)
            for n in range(400):
                await sender.send(shared_topic, b"%d" % n, partition=n % 4)
            await until(lambda: len(seen) >= 400)
            for task in readers:
                task.cancel()
            await asyncio.wait(readers)
        return seen

    assert sorted(play(story)) == list(range(400))

"""The asyncio consumer: its results, and cancelled tasks."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from ottla import Broker, Producer, TopicPartition
from ottla.aio import Consumer
from ottla.errors import IllegalStateError, RecordDeserializationError, WakeupError
from ottla.model import OffsetAndMetadata
from tests.aio.conftest import Members, play, poll_count, until
from tests.client.consumer.conftest import beaten_for, fill_topic, partitions
from tests.patience import eventually


def values(records: Any) -> list[int]:
    return [int(record.value or b"") for record in records]


def test_records_come_one_by_one_in_a_loop(member: Members, shared_topic: str, group_producer: Producer) -> None:
    fill_topic(group_producer, shared_topic, 40)

    async def story() -> list[int]:
        async with member() as consumer:
            consumer.subscribe([shared_topic])
            seen: list[int] = []
            async for record in consumer:
                seen.append(int(record.value or b""))
                if len(seen) == 40:
                    break
            return seen

    assert sorted(play(story)) == list(range(40))


def test_leaving_a_loop_commits_the_yielded_records_and_the_next_poll_continues(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 10, partitions=1)
    tp = TopicPartition(shared_topic, 0)

    async def story() -> None:
        async with member(enable_auto_commit=False) as consumer:
            consumer.assign([tp])
            async for record in consumer:
                if record.offset == 3:
                    break
            await consumer.commit()
            assert await consumer.committed([tp]) == {tp: OffsetAndMetadata(4, leader_epoch=0)}
            assert await consumer.position(tp) == 4
            assert values(await poll_count(consumer, 6)) == [4, 5, 6, 7, 8, 9]

    play(story)


@pytest.mark.behaviour("C21")
def test_a_record_that_cannot_be_deserialized_stops_poll_and_loop_at_its_offset(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 10, partitions=1)
    tp = TopicPartition(shared_topic, 0)

    def number(data: bytes) -> int:
        if data == b"4":
            raise ValueError("four")
        return int(data)

    async def story() -> None:
        seen: list[Any] = []
        async with member(value_deserializer=number) as consumer:
            consumer.assign([tp])
            with pytest.raises(RecordDeserializationError) as raised:
                seen += [record.value async for record in consumer]
            with pytest.raises(RecordDeserializationError, match=f"{tp} at offset 4: ValueError: four"):
                await consumer.poll(5)
            assert await consumer.position(tp) == 4
            await consumer.commit()
            assert await consumer.committed([tp]) == {tp: OffsetAndMetadata(4, leader_epoch=0)}
            consumer.seek(tp, raised.value.offset + 1)
            await until(lambda: len(seen) == 5, lambda: take(consumer, seen))
        assert seen == [5, 6, 7, 8, 9]

    async def take(consumer: Consumer, seen: list[Any]) -> None:
        seen += [record.value for record in await consumer.poll(1)]

    play(story)


def test_a_table_comes_with_every_column(member: Members, shared_topic: str, group_producer: Producer) -> None:
    fill_topic(group_producer, shared_topic, 5, partitions=1)

    async def story() -> Any:
        async with member() as consumer:
            consumer.assign([TopicPartition(shared_topic, 0)])
            return await consumer.poll_arrow(5, columns=["offset", "value"])

    assert play(story).to_pydict() == {"offset": [0, 1, 2, 3, 4], "value": [b"0", b"1", b"2", b"3", b"4"]}


def test_lookups_return_their_results(member: Members, shared_topic: str, group_producer: Producer) -> None:
    fill_topic(group_producer, shared_topic, 8)
    tps = partitions(shared_topic)

    async def story() -> None:
        async with member() as consumer:
            assert await consumer.beginning_offsets(tps) == dict.fromkeys(tps, 0)
            assert await consumer.end_offsets(tps) == dict.fromkeys(tps, 2)
            assert (await consumer.offsets_for_times({tps[0]: 0}))[tps[0]].offset == 0  # type: ignore[union-attr]
            assert len(await consumer.partitions_for(shared_topic)) == 4
            assert shared_topic in await consumer.topics()
            consumer.assign(tps)
            consumer.seek(tps[0], 1)
            consumer.seek_to_end(tps[1])
            assert [await consumer.position(tp) for tp in tps] == [1, 2, 0, 0]

    play(story)


def test_polls_cancelled_at_any_time_lose_no_record(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 600, partitions=1)

    async def story() -> tuple[list[int], int]:
        seen: list[int] = []
        cancelled = 0
        async with member(max_poll_records=1, fetch_max_bytes=200, max_partition_fetch_bytes=200) as consumer:
            consumer.assign([TopicPartition(shared_topic, 0)])

            async def reader() -> None:
                while len(seen) < 600:
                    seen.extend(values(await consumer.poll(0.05)))

            while len(seen) < 600:
                task = asyncio.ensure_future(reader())
                for _ in range(cancelled % 7):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                cancelled += 1
        return seen, cancelled

    seen, cancelled = play(story)
    assert seen == list(range(600))
    assert cancelled > 50, "a poll takes a turn of the loop at least, and none of the tasks has more than seven"


def test_a_member_that_is_cancelled_while_it_joins_joins_with_its_next_poll(member: Members, shared_topic: str) -> None:
    async def story() -> None:
        async with member() as consumer:
            consumer.subscribe([shared_topic])
            for patience in range(40):
                task = asyncio.ensure_future(consumer.poll(5))
                for _ in range(patience):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
            await until(consumer.assignment, lambda: consumer.poll(0.05))
            assert consumer.assignment() == set(partitions(shared_topic))
            assert consumer.group_metadata().generation_id == 1

    play(story)


def test_a_cancelled_commit_does_not_affect_the_next_one(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 4, partitions=1)
    tp = TopicPartition(shared_topic, 0)

    async def story() -> None:
        async with member(enable_auto_commit=False) as consumer:
            consumer.assign([tp])
            for patience in range(30):
                task = asyncio.ensure_future(consumer.commit({tp: 1}))
                for _ in range(patience):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
            await consumer.commit({tp: 3})
            assert (await consumer.committed([tp]))[tp] == OffsetAndMetadata(3)

    play(story)


def test_a_cancelled_close_continues_and_leaves_the_group(member: Members, shared_topic: str) -> None:
    async def story() -> None:
        leaving, staying = member(), member()
        for consumer in (leaving, staying):
            consumer.subscribe([shared_topic])
        both = (lambda: leaving.poll(0.02), lambda: staying.poll(0.02))
        await until(lambda: len(leaving.assignment()) == len(staying.assignment()) == 2, *both)
        closing = asyncio.ensure_future(leaving.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await leaving.close()
        with pytest.raises(IllegalStateError, match="closed"):
            await leaving.poll(0)
        await until(lambda: len(staying.assignment()) == 4, lambda: staying.poll(0.02))
        await staying.close()

    play(story)


def test_the_end_of_the_loop_leaves_the_group_though_the_task_is_cancelled(member: Members, shared_topic: str) -> None:
    async def endless(joined: asyncio.Event) -> None:
        async with member() as consumer:
            consumer.subscribe([shared_topic], on_assigned=lambda _: joined.set())
            async for _ in consumer:
                pass

    async def cut_short() -> None:
        joined = asyncio.Event()
        task = asyncio.ensure_future(endless(joined))
        await joined.wait()
        task.cancel()
        await asyncio.wait([task])
        async with member() as successor:
            successor.subscribe([shared_topic])
            await until(lambda: len(successor.assignment()) == 4, lambda: successor.poll(0.02))

    play(cut_short)


def test_a_listener_coroutine_continues_after_a_cancelled_poll_and_may_commit(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 8)
    messages: list[str] = []

    async def story() -> None:
        release = asyncio.Event()
        async with member(enable_auto_commit=False) as consumer:

            async def assigned(tps: list[TopicPartition]) -> None:
                messages.append("begun")
                await release.wait()
                await consumer.commit(dict.fromkeys(tps, 1))
                messages.append("ended")

            consumer.subscribe([shared_topic], on_assigned=assigned)
            await until(lambda: messages, lambda: consumer.poll(0.02))
            assert len(await consumer.poll(0.05)) == 0, "nothing is handed out while the listener is at work"
            release.set()
            records = await poll_count(consumer, 4)
            assert messages == ["begun", "ended"]
            assert {record.offset for record in records} == {1}, "positions begin after the listener"

    play(story)


def test_an_exception_of_a_listener_coroutine_is_raised_by_poll(member: Members, shared_topic: str) -> None:
    async def story() -> None:
        async def assigned(_: object) -> None:
            await asyncio.sleep(0)
            raise LookupError("no such place")

        async with member() as consumer:
            consumer.subscribe([shared_topic], on_assigned=assigned)
            with pytest.raises(LookupError, match="no such place"):
                await until(lambda: False, lambda: consumer.poll(0.02))
            assert len(consumer.assignment()) == 4

    play(story)


def test_partitions_are_revoked_after_the_listener_coroutine_has_ended(member: Members, shared_topic: str) -> None:
    async def story() -> None:
        first, second = member(enable_auto_commit=False), member()
        ended = []

        async def revoked(tps: list[TopicPartition]) -> None:
            await first.commit(dict.fromkeys(tps, 7))
            ended.append(len(first.assignment()))

        first.subscribe([shared_topic], on_revoked=revoked)
        await until(first.assignment, lambda: first.poll(0.02))
        second.subscribe([shared_topic])
        both = (lambda: first.poll(0.02), lambda: second.poll(0.02))
        await until(lambda: len(first.assignment()) == len(second.assignment()) == 2, *both)
        assert ended == [4], "they were the member's until its listener had ended"
        committed = await second.committed(partitions(shared_topic))
        assert {offset.offset for offset in committed.values() if offset} == {7}
        await first.close()
        await second.close()

    play(story)


def test_others_may_commit_while_one_task_polls_and_a_second_poll_is_refused(
    member: Members, shared_topic: str
) -> None:
    tp = TopicPartition(shared_topic, 0)

    async def story() -> None:
        async with member(enable_auto_commit=False) as consumer:
            consumer.assign([tp])
            polling = asyncio.ensure_future(consumer.poll(60))
            await asyncio.sleep(0)
            await consumer.commit({tp: 0})
            with pytest.raises(IllegalStateError, match="another task is polling"):
                await consumer.poll(0)
            assert not polling.done()
            consumer.wakeup()
            with pytest.raises(WakeupError):
                await polling

    play(story)


def test_a_poll_ends_with_an_error_when_the_consumer_is_closed_by_another_task(
    member: Members, shared_topic: str
) -> None:
    async def story() -> None:
        consumer = member()
        consumer.assign([TopicPartition(shared_topic, 0)])
        polling = asyncio.ensure_future(consumer.poll(60))
        await asyncio.wait([polling], timeout=0.05)
        assert not polling.done()
        await consumer.close()
        with pytest.raises(IllegalStateError, match="closed"):
            await polling

    play(story)


def test_a_coroutine_that_blocks_the_loop_keeps_the_membership(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    async def story() -> None:
        async with member(session_timeout_ms=1000) as consumer:
            consumer.subscribe([shared_topic])
            await until(consumer.assignment, lambda: consumer.poll(0.02))
            before = consumer.group_metadata()
            with consumer.trace() as trace:
                eventually(lambda: beaten_for(trace) > 1.5)  # without a turn for the loop, for longer than a session
            fill_topic(group_producer, shared_topic, 4)
            assert len(await poll_count(consumer, 4)) == 4
            assert consumer.group_metadata() == before

    play(story)


def test_an_empty_poll_leaves_the_loop_to_others_and_ends_in_time(member: Members, shared_topic: str) -> None:
    async def story() -> int:
        turns = 0
        async with member() as consumer:
            consumer.assign([TopicPartition(shared_topic, 0)])
            polling = asyncio.ensure_future(consumer.poll(0.2))
            while not polling.done():
                turns += 1
                await asyncio.sleep(0)
            assert len(await polling) == 0
        return turns

    assert play(story) >= 2


def test_a_consumer_stays_with_its_event_loop(member: Members, shared_topic: str) -> None:
    consumer = member()
    consumer.assign([TopicPartition(shared_topic, 0)])
    play(lambda: consumer.poll(0))
    with pytest.raises(IllegalStateError, match="another event loop"):
        play(lambda: consumer.poll(0))
    consumer._core.client.close()


def test_an_empty_subscription_is_refused(member: Members) -> None:
    async def story() -> None:
        async with member() as consumer:
            with pytest.raises(ValueError, match=re.escape("await unsubscribe()")):
                consumer.subscribe([])

    play(story)


def test_unsubscribe_revokes_all_partitions(member: Members, shared_topic: str) -> None:
    async def story() -> None:
        async with member() as consumer:
            consumer.subscribe([shared_topic])
            await until(consumer.assignment, lambda: consumer.poll(0.02))
            await consumer.unsubscribe()
            assert consumer.assignment() == set()
            with pytest.raises(IllegalStateError, match="nothing is assigned"):
                await consumer.poll(0)

    play(story)


def test_a_listener_coroutine_is_awaited_with_the_consumer_protocol_too(
    group_broker: Broker, group_id: str, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 40)
    reported: list[tuple[str, int]] = []

    async def revoked(tps: list[TopicPartition]) -> None:
        await asyncio.sleep(0)
        reported.append(("revoked", len(tps)))

    def newer(**settings: Any) -> Consumer:
        return Consumer(
            bootstrap_servers=group_broker.bootstrap_servers,
            group_id=group_id,
            group_protocol="consumer",
            auto_offset_reset="earliest",
            **settings,
        )

    async def story() -> list[Any]:
        async with newer() as one, newer() as two:
            one.subscribe([shared_topic], on_revoked=revoked)
            seen = [*await poll_count(one, 40)]
            two.subscribe([shared_topic])
            while [len(each.assignment()) for each in (one, two)] != [2, 2]:
                for each in (one, two):
                    seen += await each.poll(0.02)
            assert reported == [("revoked", 2)]
            await one.commit()
            assert one.group_metadata().generation_id > 0
            return seen

    assert sorted(values(play(story))) == list(range(40))
    assert reported == [("revoked", 2), ("revoked", 2)]

"""Consumers of an event loop in a group with changing members keep reading the partitions they keep."""

from __future__ import annotations

from ottla import Producer, TopicPartition
from tests.aio.conftest import Members, play, poll_count, until
from tests.client.consumer.conftest import fill_topic


def test_a_member_keeps_its_records_flowing_while_another_one_joins(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    async def story() -> None:
        revoked: list[TopicPartition] = []
        async with (
            member(partition_assignment_strategy="cooperative-sticky") as first,
            member(partition_assignment_strategy="cooperative-sticky") as second,
        ):
            first.subscribe([shared_topic], on_revoked=revoked.extend)
            await until(lambda: len(first.assignment()) == 4, lambda: first.poll(0.02))
            second.subscribe([shared_topic])
            await until(
                lambda: len(first.assignment()) == len(second.assignment()) == 2,
                lambda: first.poll(0.02),
                lambda: second.poll(0.02),
            )
            assert set(revoked) == second.assignment()
            fill_topic(group_producer, shared_topic, 4)
            kept = {TopicPartition(record.topic, record.partition) for record in await poll_count(first, 2)}
            assert kept == first.assignment()

    play(story)

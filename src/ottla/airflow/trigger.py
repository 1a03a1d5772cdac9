"""`TopicTrigger`: waits in Airflow's triggerer for the next records after a cursor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from ottla.aio import Consumer
from ottla.airflow.request import check_request, record_to_json
from ottla.client.consumer.records import ConsumerRecords
from ottla.client.consumer.topic_table import OURS
from ottla.errors import ErrorCode, KafkaError
from ottla.extras import extra
from ottla.model import TopicPartition
from ottla.topic_cursor import TopicCursor, parse_cursor

with extra("airflow"):
    from airflow.triggers.base import BaseTrigger, TriggerEvent

ROUND_SECONDS = 60.0
"""A new round finds new partitions and recreated topics."""


class TopicTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires one event: `records`, a list of the next records after the cursor, and `cursor`, the cursor after them.

    Without a cursor, the event of the start `latest` has no records: it fixes where the next trigger begins.
    The arguments are those of `TopicSensor`. Only committed records are read, and no group is joined.
    """

    def __init__(
        self,
        topics: str | Iterable[str],
        config: Mapping[str, Any],
        cursor: str | None = None,
        start: str = "latest",
        max_records: int = 100,
        encoding: str = "utf-8",
    ) -> None:
        super().__init__()
        self._request = check_request(topics, config, start, max_records, encoding)
        self._cursor = parse_cursor(cursor)

    def __repr__(self) -> str:
        """Return the topics. Airflow's own text has all arguments, and with `config` passwords."""
        return f"TopicTrigger({', '.join(self._request.topics)})"

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the path of this class and its arguments, which Airflow stores encrypted."""
        cursor = None if self._cursor is None else self._cursor.to_json()
        return f"{__name__}.{type(self).__name__}", {**self._request._asdict(), "cursor": cursor}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield the event."""
        cursor = self._cursor
        while True:
            records, cursor = await self._read_round(cursor)
            if records or self._cursor is None:
                found = [record_to_json(record, self._request.encoding) for record in records]
                yield TriggerEvent({"records": found, "cursor": cursor.to_json()})
                return

    async def _read_round(
        self, cursor: TopicCursor | None
    ) -> tuple[ConsumerRecords[Any, Any] | list[Any], TopicCursor]:
        """Return the next records, or none after a while, and the cursor after them."""
        wanted = self._request
        settings = {
            **OURS,
            **wanted.config,
            "auto.offset.reset": "none",
            "enable.auto.commit": False,
            "max.poll.records": wanted.max_records,
        }
        async with Consumer(settings) as consumer:
            tps = [tp for topic in wanted.topics for tp in await find_partitions(consumer, topic)]
            first, end = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
            ids = {topic: str(found) for topic in wanted.topics if (found := consumer.topic_id(topic)).int}
            if cursor is None:
                cursor = TopicCursor(first if wanted.start == "earliest" else end, ids)
                if wanted.start == "latest":
                    return [], cursor
            positions = cursor.start_offsets(ids, first, end)
            consumer.assign(tps)
            for tp, offset in positions.items():
                consumer.seek(tp, offset)
            deadline = asyncio.get_running_loop().time() + ROUND_SECONDS
            while True:
                left = deadline - asyncio.get_running_loop().time()
                records = await consumer.poll(max(left, 0.0))
                if records or left <= 0:
                    return records, TopicCursor({tp: await consumer.position(tp) for tp in tps}, ids)


async def find_partitions(consumer: Consumer[Any, Any], topic: str) -> list[TopicPartition]:
    """Return the partitions of a topic. Raises KafkaError if it does not exist."""
    found = await consumer.partitions_for(topic)
    if not found:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
    return [TopicPartition(topic, info.partition) for info in found]

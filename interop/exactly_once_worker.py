"""Consume, process and produce exactly once, in a process that may be killed at any moment.

python -m interop.exactly_once_worker ADDRESS SOURCE SINK GROUP TRANSACTIONAL_ID
"""

from __future__ import annotations

import sys

from ottla import Consumer, Producer, TopicPartition
from ottla.errors import TransactionAbortableError

RECORDS = 100
"""The maximum number of records in a transaction."""


def work(address: str, source: str, sink: str, group: str, transactional_id: str) -> None:
    """Copy records in an endless loop. A failed transaction is aborted, and its records are read again."""
    producer = Producer(bootstrap_servers=address, transactional_id=transactional_id)
    producer.init_transactions()
    consumer = Consumer(
        bootstrap_servers=address,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_poll_records=RECORDS,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=1_000,
    )
    consumer.subscribe([source])
    while True:
        records = list(consumer.poll(0.2))
        if not records:
            continue
        offsets = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in records}
        try:
            with producer.transaction():
                for record in records:
                    producer.send(sink, record.value, key=record.key)
                producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        except TransactionAbortableError:
            for place, offset in consumer.committed(list(offsets)).items():
                consumer.seek(place, offset.offset if offset is not None else 0)


if __name__ == "__main__":
    work(*sys.argv[1:])

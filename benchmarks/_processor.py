"""The same loop in both libraries: copy a topic exactly once.

python -m benchmarks._processor records|batches|arrow|confluent ADDRESS SOURCE TARGET COMMIT_MS
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import confluent_kafka as ck

import ottla

CHUNK = 10_000
WITHOUT_END = 1 << 62
FORMS = {"records": "record by record", "batches": "lists", "arrow": "tables"}


def counted(form: str, records: int, stop: Callable[[], None]) -> Callable[[Any], Any]:
    """Return a function that forwards its input, and stops the processor after `records` records."""
    left = records

    def count(done: int) -> None:
        nonlocal left
        left -= done
        if left == 0:
            stop()

    def of_record(record: ottla.ConsumerRecord) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            stop()
        return record.value

    def of_list(records: list[ottla.ConsumerRecord]) -> Any:
        count(len(records))
        return [record.value for record in records]

    def of_table(table: Any) -> Any:
        count(table.num_rows)
        return table

    functions: dict[str, Callable[[Any], Any]] = {"records": of_record, "batches": of_list, "arrow": of_table}
    return functions[form]


def copy_by_ottla(form: str, address: str, source: str, target: str, commit_ms: float, records: int) -> None:
    """Copy with Ottla's processor."""
    running: list[ottla.Processor] = []
    function = counted(form, records, lambda: running[0].stop())
    how: dict[str, Any] = {} if form == "records" else {form: True}
    with (
        ottla.Consumer(
            bootstrap_servers=address,
            group_id=uuid4().hex,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            max_poll_records=CHUNK,
        ) as consumer,
        ottla.Producer(bootstrap_servers=address, transactional_id=uuid4().hex) as producer,
    ):
        settings = {"topics": [source], "to": target, "commit_interval_ms": commit_ms, **how}
        running.append(ottla.Processor(consumer, producer, function, **settings))
        running[0].run()


def copy_by_confluent(address: str, source: str, target: str, commit_ms: float, records: int) -> None:
    """Copy with confluent-kafka, written as its users write it, with queues that are large enough."""
    place = {"bootstrap.servers": address, "log_level": 3}
    consumer = ck.Consumer(
        place
        | {"group.id": uuid4().hex, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        | {"queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 1}
    )
    queues = {"queue.buffering.max.messages": 0, "queue.buffering.max.kbytes": 2_000_000, "batch.size": 500_000}
    producer = ck.Producer(place | queues | {"transactional.id": uuid4().hex})
    producer.init_transactions()
    consumer.subscribe([source])
    left, failed = records, []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(error)

    due: float | None = None
    while left > 0:
        # It waits this long for all of them, so messages that have already arrived wait too.
        wait = commit_ms / 1000 if due is None else max(0.0, due - time.monotonic())
        messages = consumer.consume(CHUNK, wait)
        if messages and due is None:
            producer.begin_transaction()
            due = time.monotonic() + commit_ms / 1000
        for message in messages:
            producer.produce(target, message.value(), on_delivery=delivered)
        producer.poll(0)
        left -= len(messages)
        if due is not None and (time.monotonic() >= due or left <= 0):
            offsets = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
            producer.commit_transaction()
            due = None
    assert not failed, failed[0]
    consumer.close()


def main(way: str, address: str, source: str, target: str, commit_ms: str) -> None:
    """Copy until the process is killed."""
    if way == "confluent":
        copy_by_confluent(address, source, target, float(commit_ms), WITHOUT_END)
    else:
        copy_by_ottla(way, address, source, target, float(commit_ms), WITHOUT_END)


if __name__ == "__main__":
    main(*sys.argv[1:])

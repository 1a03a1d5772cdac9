"""Copy records. Each turn is one transaction in the target, which also contains the ledger entries of its records.

Exactly-once delivery follows from this: the records and the position in the source are committed together, and
`init_transactions` fences an earlier mirror with the same name (KIP-98). After a failure the ledger, read with
`read_committed`, gives the position of the last committed transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ottla.errors import ConfigError, OttlaError, TransactionAbortableError
from ottla.mirror.ledger import Ledger, LedgerEntry, encode_entry
from ottla.mirror.settings import MirrorSettings
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer, ConsumerRecord, ConsumerRecords
    from ottla.client.producer.future import RecordFuture

At = Callable[[str], None]
"""Called after each step with its name; a test can kill the process there."""
OF_SOURCE = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "auto.offset.reset": "none",
    "allow.auto.create.topics": False,
}
LARGEST = 2**30
"""The source has accepted the records, so only the target's own limit applies."""
GIVE_UP_SECONDS = 5.0


class RecordCopier:
    """A consumer of the source and a transactional producer of the target."""

    def __init__(self, settings: MirrorSettings, ledger_topic: str, at: At, report: Callable[[str], None]) -> None:
        from ottla.client.consumer import Consumer
        from ottla.client.producer import Producer

        self._settings = settings
        self._ledger_topic = ledger_topic
        self._at, self._report = at, report
        self.ledger = Ledger()
        reader = {"max.poll.records": settings.max_records, **settings.source, **OF_SOURCE}
        self.consumer: Consumer[Any, Any] = Consumer(reader)
        writer = {"linger.ms": 20, "max.request.size": LARGEST, **settings.target}
        self._producer = Producer({**writer, "transactional.id": ledger_topic, "enable.idempotence": True})

    def open(self) -> None:
        """Fence an earlier mirror of this name, and read the ledger."""
        self._producer.init_transactions()
        from ottla.client.consumer import Consumer

        place = TopicPartition(self._ledger_topic, 0)
        with Consumer({**self._settings.target, **OF_SOURCE}) as consumer:
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            (end,) = consumer.end_offsets([place]).values()
            while consumer.position(place) < end:
                for record in consumer.poll(1.0):
                    self.ledger.replay(record.key, record.value)

    def close(self) -> None:
        """Abort the open transaction, and close both clients."""
        with suppress(OttlaError):
            self._producer.close(GIVE_UP_SECONDS)
        self.consumer.close(GIVE_UP_SECONDS)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign partitions; new ones start at their ledger position, or at their beginning."""
        wanted, before = set(partitions), self.consumer.assignment()
        if wanted == before:
            return
        stood = {tp: self.consumer.position(tp) for tp in wanted & before}
        self.consumer.assign(sorted(wanted))
        for partition, offset in {**stood, **self._find_starts(sorted(wanted - before))}.items():
            self.consumer.seek(partition, offset)

    def _find_starts(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        first, ends = self.consumer.beginning_offsets(partitions), self.consumer.end_offsets(partitions)
        for partition in partitions:
            position = self.ledger.position(partition)
            if position is not None and position > ends[partition]:
                raise ConfigError(
                    f"{partition} of the source ends at {ends[partition]} and was copied to {position}: was it created "
                    "again? Delete the topic in the target and give the mirror another --name"
                )
            if position is not None and position < first[partition]:
                deleted = first[partition] - position
                self._report(f"{deleted} offsets of {partition} were deleted in the source before they were copied")
        return {tp: max(first[tp], self.ledger.position(tp) or 0) for tp in partitions}

    def copy_batch(self, timeout: float) -> int:
        """Copy the available records, and return their number; wait up to `timeout` seconds for the first one."""
        polled = self.consumer.poll(timeout)
        if not polled:
            return 0
        self._at("polled")
        self._producer.begin_transaction()
        self._at("started")
        try:
            entries = self._copy_records(polled)
        except TransactionAbortableError:
            self._producer.abort_transaction()  # raises a fencing error if another mirror has taken over
            raise
        self._at("committed")
        for partition, entry in entries.items():
            self.ledger.add(partition, entry)
        return len(polled)

    def _copy_records(self, polled: ConsumerRecords[Any, Any]) -> dict[TopicPartition, LedgerEntry]:
        sent = self._send(polled)
        self._at("sent")
        self._producer.flush()
        self._at("flushed")
        entries, ends = {}, polled.next_offsets()
        for partition, (records, first, last) in sent.items():
            target, target_end = first.result().offset, last.result().offset + 1
            offsets = (record.offset for record in records)
            entry = self.ledger.next_entry(partition, offsets, ends[partition].offset, target, target_end)
            entries[partition] = entry
            key, value = encode_entry(partition, entry)
            self._producer.send(self._ledger_topic, value, key=key, partition=0)
        self._at("noted")
        self._producer.commit_transaction()
        return entries

    def _send(
        self, polled: ConsumerRecords[Any, Any]
    ) -> dict[TopicPartition, tuple[list[ConsumerRecord[Any, Any]], RecordFuture, RecordFuture]]:
        sent = {}
        for partition in polled.partitions():
            topic, records = self._settings.selection.target_name(partition.topic), polled.records(partition)
            futures = [
                self._producer.send(
                    topic,
                    record.value,
                    key=record.key,
                    partition=partition.partition,
                    timestamp=record.timestamp if record.timestamp >= 0 else None,
                    headers=record.headers,
                )
                for record in records
            ]
            sent[partition] = (records, futures[0], futures[-1])
        return sent

    def read_to(self, partition: TopicPartition) -> int:
        """Return the position of the consumer in a partition of the source."""
        return self.consumer.position(partition)

"""Carries records: each turn is one transaction of the target, with the ledger's entries of what it carries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ottla.errors import ConfigError, OttlaError, TransactionAbortableError
from ottla.mirror.ledger import Carried, Ledger, encoded
from ottla.mirror.settings import MirrorSettings
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer, ConsumerRecord, ConsumerRecords
    from ottla.client.producer.future import RecordFuture

At = Callable[[str], None]
"""Told each step when it is done; a test ends the process there."""
Tell = Callable[[str], None]
OF_SOURCE = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "auto.offset.reset": "none",
    "allow.auto.create.topics": False,
}
LARGEST = 2**30
"""What the source has taken is not refused here: the target's own limit counts."""
GIVE_UP_SECONDS = 5.0


class Carrier:
    """A reader of the source and a writer of the target."""

    def __init__(self, settings: MirrorSettings, ledger_topic: str, at: At, tell: Tell) -> None:
        from ottla.client.consumer import Consumer
        from ottla.client.producer import Producer

        self._settings = settings
        self._ledger_topic = ledger_topic
        self._at, self._tell = at, tell
        self.ledger = Ledger()
        reader = {"max.poll.records": settings.max_records, **settings.source, **OF_SOURCE}
        self.consumer: Consumer[Any, Any] = Consumer(reader)
        writer = {"linger.ms": 20, "max.request.size": LARGEST, **settings.target}
        self._producer = Producer({**writer, "transactional.id": ledger_topic, "enable.idempotence": True})

    def open(self) -> None:
        """Shut out whoever was at it before, and learn how far it came."""
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
        """Abort what is under way."""
        with suppress(OttlaError):
            self._producer.close(GIVE_UP_SECONDS)
        self.consumer.close(GIVE_UP_SECONDS)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these; those that are new from where they were carried to, or from their beginning."""
        wanted, before = set(partitions), self.consumer.assignment()
        if wanted == before:
            return
        stood = {tp: self.consumer.position(tp) for tp in wanted & before}
        self.consumer.assign(sorted(wanted))
        for partition, offset in {**stood, **self._starts(sorted(wanted - before))}.items():
            self.consumer.seek(partition, offset)

    def _starts(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        first, ends = self.consumer.beginning_offsets(partitions), self.consumer.end_offsets(partitions)
        for partition in partitions:
            position = self.ledger.position(partition)
            if position is not None and position > ends[partition]:
                raise ConfigError(
                    f"{partition} of the source ends at {ends[partition]} and was carried to {position}: was it made "
                    "anew? Delete the topic in the target and give the mirror another --name"
                )
            if position is not None and position < first[partition]:
                gone = first[partition] - position
                self._tell(f"{gone} offsets of {partition} were deleted in the source before they were carried")
        return {tp: max(first[tp], self.ledger.position(tp) or 0) for tp in partitions}

    def turn(self, timeout: float) -> int:
        """Carry what there is, and return how many records that were; waits for the first of them."""
        polled = self.consumer.poll(timeout)
        if not polled:
            return 0
        self._at("polled")
        self._producer.begin_transaction()
        self._at("begun")
        try:
            entries = self._carry(polled)
        except TransactionAbortableError:
            self._producer.abort_transaction()  # which says so if another has taken over
            raise
        self._at("committed")
        for partition, entry in entries.items():
            self.ledger.note(partition, entry)
        return len(polled)

    def _carry(self, polled: ConsumerRecords[Any, Any]) -> dict[TopicPartition, Carried]:
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
            key, value = encoded(partition, entry)
            self._producer.send(self._ledger_topic, value, key=key, partition=0)
        self._at("noted")
        self._producer.commit_transaction()
        return entries

    def _send(
        self, polled: ConsumerRecords[Any, Any]
    ) -> dict[TopicPartition, tuple[list[ConsumerRecord[Any, Any]], RecordFuture, RecordFuture]]:
        sent = {}
        for partition in polled.partitions():
            topic, records = self._settings.selection.renamed(partition.topic), polled.records(partition)
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
        """How far a partition of the source was read."""
        return self.consumer.position(partition)

"""All records of a partition of `__consumer_offsets`, for all kinds of groups.

Some are kept in memory only: they have state that does not survive a restart, such as held requests, and are replayed but never
appended.
"""

from __future__ import annotations

from ottla.coordination.groups.classic import records as classic
from ottla.coordination.groups.classic.records import ClassicGroupRecord, GroupInMemory
from ottla.coordination.groups.consumer import records as consumers
from ottla.coordination.groups.consumer.events import GroupConfigsRecord, TopicImageRecord
from ottla.coordination.groups.consumer.records import ConsumerGroupRecord
from ottla.coordination.groups.share import records as shares
from ottla.coordination.groups.share.records import ShareGroupRecord
from ottla.coordination.groups.streams import records as streams
from ottla.coordination.groups.streams.group import StreamsGroupInMemory
from ottla.coordination.groups.streams.records import StreamsGroupRecord
from ottla.coordination.offsets import records as offsets
from ottla.coordination.offsets.pending import PendingRecord, TransactionEnded
from ottla.coordination.offsets.records import OffsetRecord

Record = (
    OffsetRecord
    | PendingRecord
    | TransactionEnded
    | ClassicGroupRecord
    | GroupInMemory
    | ConsumerGroupRecord
    | ShareGroupRecord
    | StreamsGroupRecord
    | StreamsGroupInMemory
    | TopicImageRecord
    | GroupConfigsRecord
)


def encode_record(record: Record) -> tuple[bytes, bytes | None] | None:
    """Return key and value; None for a record that is kept in memory only."""
    match record:
        case OffsetRecord():
            return offsets.encode_record(record)
        case PendingRecord():
            return offsets.encode_record(record.record)
        case ConsumerGroupRecord():
            return consumers.encode_record(record)
        case ShareGroupRecord():
            return shares.encode_record(record)
        case StreamsGroupRecord():
            return streams.encode_record(record)
        case ClassicGroupRecord():
            return classic.encode_record(record)
    return None


def producer_of(record: Record) -> tuple[int, int] | None:
    """Return the producer id and epoch of a transactional record; None for any other record."""
    return (record.producer_id, record.producer_epoch) if isinstance(record, PendingRecord) else None


def within_transaction(record: Record, producer_id: int, producer_epoch: int) -> Record:
    """Return a record that was read as part of a transaction."""
    return PendingRecord(producer_id, producer_epoch, record) if isinstance(record, OffsetRecord) else record


def decode_record(key: bytes | None, value: bytes | None) -> Record | None:
    """Decode a record; return None if its kind is unknown. Raise CorruptRecordError if it is malformed."""
    kind = None if key is None else int.from_bytes(key[:2], "big")
    if key is not None and kind in consumers.PAIRS:
        return consumers.decode_record(key, value)
    if kind in shares.PAIRS:
        return shares.decode_record(key, value)
    if kind in streams.PAIRS:
        return streams.decode_record(key, value)
    if key is not None and kind == classic.KEY_KIND:
        return classic.decode_record(key, value)
    return offsets.decode_record(key, value)

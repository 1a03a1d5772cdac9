"""All records that a partition of `__consumer_offsets` holds, whichever kind of group wrote them.

Some are records of no log: they carry what dies with the process, such as who waits, and are replayed only.
"""

from __future__ import annotations

from ottla.coordination.groups.classic import records as classic
from ottla.coordination.groups.classic.records import ClassicGroupRecord, GroupInMemory
from ottla.coordination.groups.consumer import records as consumers
from ottla.coordination.groups.consumer.events import ImageSeen, OwnSettingsSeen
from ottla.coordination.groups.consumer.records import ConsumerGroupRecord
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
    | ImageSeen
    | OwnSettingsSeen
)


def encode_record(record: Record) -> tuple[bytes, bytes | None] | None:
    """Key and value as bytes; None for what is kept in memory only."""
    match record:
        case OffsetRecord():
            return offsets.encode_record(record)
        case PendingRecord():
            return offsets.encode_record(record.record)
        case ConsumerGroupRecord():
            return consumers.encode_record(record)
        case ClassicGroupRecord():
            return classic.encode_record(record)
    return None


def producer_of(record: Record) -> tuple[int, int] | None:
    """The id and epoch of the producer within whose transaction a record is written."""
    return (record.producer_id, record.producer_epoch) if isinstance(record, PendingRecord) else None


def within_transaction(record: Record, producer_id: int, producer_epoch: int) -> Record:
    """A record of the log that is part of a transaction."""
    return PendingRecord(producer_id, producer_epoch, record) if isinstance(record, OffsetRecord) else record


def decode_record(key: bytes | None, value: bytes | None) -> Record | None:
    """A record of the log; None for one of a kind that is not known. CorruptRecordError where it cannot be read."""
    kind = None if key is None else int.from_bytes(key[:2], "big")
    if key is not None and kind in consumers.PAIRS:
        return consumers.decode_record(key, value)
    if key is not None and kind == classic.KEY_KIND:
        return classic.decode_record(key, value)
    return offsets.decode_record(key, value)

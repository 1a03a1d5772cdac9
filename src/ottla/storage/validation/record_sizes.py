"""Find the record of a decompressed batch that is larger than `max.decompressed.message.bytes`."""

from __future__ import annotations

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.records import raw


def check_record_sizes(records: object, limit: int) -> None:
    """Refuse a record that is larger than `limit`, by the size at its start, as Kafka does.

    Raise CorruptRecordError if a size is invalid.
    """
    view = memoryview(records)  # type: ignore[arg-type]
    octets = raw.pointer(view)
    end = len(view)
    position = number = 0
    while position < end:
        size, position = raw.read_varint(octets, position, end)
        if size < 0 or position > end:
            raise CorruptRecordError(f"record {number} does not start with its size")
        if size > limit:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"record {number} has {size} bytes without compression, max.decompressed.message.bytes is {limit}",
            )
        position += size
        number += 1
    if position > end:
        raise CorruptRecordError(f"record {number - 1} is not complete")

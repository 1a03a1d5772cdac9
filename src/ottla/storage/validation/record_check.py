"""Looking at the records of a batch, where a topic's configs ask for that: most ask for nothing.

A compacted topic takes records with keys only, timestamps have bounds, and a topic may have a compression of its own. A
batch is refused whole, and each record that is at fault is named (KIP-467). Works on bytes in memory only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError, RecordsRefusedError
from ottla.model import Buffer, TimestampType
from ottla.records.batch import CODEC_MASK, HEADER_BYTES, MAGIC, MAGIC_POSITION, BatchHeader, parse_header, seal
from ottla.records.compression import Codec, DecompressedTooLargeError, compress, decompress
from ottla.storage.log_config import LogConfig
from ottla.storage.validation.record_sizes import check_record_sizes

if TYPE_CHECKING:
    from ottla.records.binary_column import BinaryColumn


LIMIT_BYTES = 64 * 1024 * 1024
"""Limit for the decompressed size of a batch that is checked: compression ratios reach a thousand."""
MOST_ERRORS = 1000
"""Records that are named in one refusal."""
NO_TIMESTAMP = -1
LEVELS = {
    Codec.GZIP: "compression_gzip_level",
    Codec.LZ4: "compression_lz4_level",
    Codec.ZSTD: "compression_zstd_level",
}


def needs_record_check(headers: Sequence[BatchHeader], config: LogConfig, now_ms: int) -> bool:
    """Return True if these batches cannot be accepted by their headers alone."""
    return not config.is_opaque or any(is_late(header, config, now_ms) or is_false(header) for header in headers)


def is_late(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    """Return True if a record is too far ahead of the broker's clock."""
    return header.max_timestamp - now_ms > config.message_timestamp_after_max_ms and not config.timestamp_type


def is_false(header: BatchHeader) -> bool:
    """Return True if the header claims that all records are earlier than the first; retention would rely on that."""
    return header.max_timestamp < header.base_timestamp


def check_batches(data: memoryview, headers: Sequence[BatchHeader], config: LogConfig, now_ms: int) -> Buffer:
    """Return the batches as this log accepts them, recompressed if necessary; RecordsRefusedError if it rejects them."""
    parts: list[Buffer] = []
    position = 0
    for header in headers:
        batch = data[position : position + header.size_bytes]
        position += header.size_bytes
        try:
            if header.codec and config.limits_records:
                check_record_sizes(
                    decompress(header.codec, batch[HEADER_BYTES:], LIMIT_BYTES), config.max_decompressed_message_bytes
                )
            if config.is_compacted or config.has_earliest or is_late(header, config, now_ms) or is_false(header):
                latest = check_records(batch, header, config, now_ms)
                header = header._replace(max_timestamp=latest)
                batch = with_largest_timestamp(batch, header)
            parts.append(recompress_batch(batch, header, config))
        except DecompressedTooLargeError as error:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"the records of this topic are checked, and {error}: send smaller batches"
            ) from error
        except CorruptRecordError as error:
            # Its CRC is true: the producer made it so, and sending it again would not help.
            raise KafkaError(ErrorCode.INVALID_RECORD, f"the records of the batch cannot be read: {error}") from error
    return parts[0] if len(parts) == 1 else b"".join(parts)


def check_records(batch: memoryview, header: BatchHeader, config: LogConfig, now_ms: int) -> int:
    """Refuse records without a key where one is needed, and those of a time that is too long ago or ahead.

    Returns the largest timestamp, which the header may have wrong.
    """
    from ottla.records.columns import decode  # most brokers never look

    columns = decode(batch, with_headers=False, check_crcs=False, limit_bytes=LIMIT_BYTES)
    if list(columns.offsets) != list(range(header.count)):
        raise KafkaError(ErrorCode.INVALID_RECORD, "the records of the batch are not numbered one after the other")
    keyless = dict.fromkeys(find_keyless_rows(columns.keys, config), "a compacted topic takes no record without a key")
    untimely = {} if config.timestamp_type else dict(find_untimely_rows(columns.timestamps, config, now_ms))
    faults = sorted({**untimely, **keyless}.items())
    if faults:
        code = ErrorCode.INVALID_TIMESTAMP if untimely.keys() - keyless.keys() else ErrorCode.INVALID_RECORD
        text = f"{len(faults)} of {header.count} records are refused, record {faults[0][0]} because {faults[0][1]}"
        raise RecordsRefusedError(code, text, faults[:MOST_ERRORS])
    return max(columns.timestamps, default=header.max_timestamp)


def with_largest_timestamp(batch: memoryview, header: BatchHeader) -> memoryview:
    """Return the batch with the header's largest timestamp, as it is where it has that already."""
    if parse_header(batch).max_timestamp == header.max_timestamp:
        return batch
    return memoryview(seal(header, batch[HEADER_BYTES:]))


def find_keyless_rows(keys: BinaryColumn, config: LogConfig) -> Iterator[int]:
    """Rows without the key that compaction needs."""
    if config.is_compacted and keys.null_count:
        yield from (row for row in range(keys.count) if keys.size(row) < 0)


def find_untimely_rows(timestamps: memoryview, config: LogConfig, now_ms: int) -> Iterator[tuple[int, str]]:
    """Rows with a timestamp out of bounds, and what to say of each."""
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    for row, timestamp in enumerate(timestamps):
        if timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            yield row, f"its timestamp {timestamp} is not from {max(earliest, 0)} to {latest}"


def recompress_batch(batch: memoryview, header: BatchHeader, config: LogConfig) -> Buffer:
    """Return the batch with the codec of the topic, as it is where it has that already."""
    target = config.codec
    if target is None or target == header.codec:
        return batch
    records = decompress(header.codec, batch[HEADER_BYTES:], LIMIT_BYTES)
    attributes = header.attributes & ~CODEC_MASK | target
    made = seal(header._replace(attributes=attributes), compress(target, records, level_of(target, config)))
    check_size(parse_header(made), config)
    return made


def level_of(codec: Codec, config: LogConfig) -> int | None:
    """Return the topic's level for a codec; None is the codec's own default."""
    if codec not in LEVELS:
        return None
    level: int = getattr(config, LEVELS[codec])
    return None if codec is Codec.GZIP and level == -1 else level


def check_format(data: Buffer) -> None:
    """Reject message sets from before Kafka 0.11, which have other fields, and data that is too short for a batch."""
    if len(data) > MAGIC_POSITION and 0 <= data[MAGIC_POSITION] < MAGIC:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"message format {data[MAGIC_POSITION]} is not taken, only {MAGIC}: use a client made for Kafka 0.11 or later",
        )
    if len(data) < HEADER_BYTES:
        raise CorruptRecordError(f"{len(data)} bytes are too few for a record batch, which has at least {HEADER_BYTES}")


def check_settings(header: BatchHeader, config: LogConfig) -> None:
    """Refuse a batch that is too large, or that claims the broker's clock where the producer's counts."""
    check_size(header, config)
    if header.timestamp_type and config.timestamp_type == TimestampType.CREATE_TIME:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP, "a producer sets CreateTime; LogAppendTime is for the broker to set"
        )


def check_size(header: BatchHeader, config: LogConfig) -> None:
    """Refuse a batch that is too large."""
    if header.size_bytes > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the record batch has {header.size_bytes} bytes, max.message.bytes is {config.max_message_bytes}",
        )

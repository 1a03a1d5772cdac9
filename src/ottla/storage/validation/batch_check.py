"""What this log's settings refuse in batches that are otherwise good. Works on bytes in memory only."""

from __future__ import annotations

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import Buffer, TimestampType
from ottla.records.batch import HEADER_BYTES, MAGIC, MAGIC_POSITION, BatchHeader
from ottla.storage.log_config import LogConfig


def check_format(data: Buffer) -> None:
    """Refuse message sets from before Kafka 0.11, whose other fields lie elsewhere, and what is too short for a batch."""
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

"""Settings of one log: Kafka's topic configs, as far as storage acts on them.

What a person may set, and within which bounds, is checked where topics are made; here a value is what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal

from ottla.config import Between, options_of, read_settings
from ottla.model import INT32_MAX, INT64_MAX, TimestampType
from ottla.records.compression import Codec
from ottla.settings_class import settings

LARGEST_RECORD_BYTES = 2_147_483_639
"""The default of `max.decompressed.message.bytes`, Java's largest array: no limit."""


@settings
class LogConfig:
    """How one partition is cut into segments, flushed and cleaned up."""

    segment_bytes: Annotated[int, Between(1, INT32_MAX)] = 1_073_741_824
    """Size at which a segment is closed and the next one is created."""
    segment_ms: Annotated[int, Between(1)] = 604_800_000
    """Span between the first and the latest record of a segment after which the next segment is created, full or not."""
    segment_index_bytes: Annotated[int, Between(12, INT32_MAX)] = 10_485_760
    """Size of an index at which its segment is closed."""
    index_interval_bytes: Annotated[int, Between(0, INT32_MAX)] = 4096
    """Bytes of log between two index entries: less is quicker to seek, more is smaller."""
    max_message_bytes: Annotated[int, Between(0, INT32_MAX)] = 1_048_588
    """Largest record batch taken, compressed as it comes."""
    max_decompressed_message_bytes: Annotated[int, Between(0, INT32_MAX)] = LARGEST_RECORD_BYTES
    """Size of the largest record that a compressed batch may have, without compression."""
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    """The clock that stamps the records: the producer's, or the broker's when it appends them."""
    message_timestamp_before_max_ms: Annotated[int, Between(0)] = INT64_MAX
    """How far a record's timestamp may lie behind the broker's clock, where it is the producer's."""
    message_timestamp_after_max_ms: Annotated[int, Between(0)] = 3_600_000
    """How far it may lie ahead."""
    compression_type: Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"] = "producer"
    """How records are compressed on disk; "producer" keeps what the producer did."""
    compression_gzip_level: int = -1
    """Level of gzip, -1 for its own default."""
    compression_lz4_level: int = 9
    """Level of lz4."""
    compression_zstd_level: int = 3
    """Level of zstd."""
    flush_messages: Annotated[int, Between(1)] = INT64_MAX
    """Records after which the log is forced to the disk; by default the operating system decides, and a crash of
    the machine (not of the broker) may lose what it had not yet written."""
    flush_ms: Annotated[int, Between(0)] = INT64_MAX
    """Time after which appended records are forced to the disk."""
    cleanup_policy: tuple[str, ...] = ("delete",)
    """"delete" lets retention drop old segments; "compact" keeps the last record of each key."""
    retention_ms: Annotated[int, Between(-1)] = 604_800_000
    """Age after which a segment may be deleted; -1 is never."""
    retention_bytes: Annotated[int, Between(-1)] = -1
    """Size above which the oldest segments may be deleted; -1 is no limit."""
    delete_retention_ms: Annotated[int, Between(0)] = 86_400_000
    """How long compaction keeps the mark of a deleted key, from when it first came upon it."""
    min_cleanable_dirty_ratio: Annotated[float, Between(0, 1)] = 0.5
    """Share of bytes not compacted before, above which compaction is worth the work."""
    min_compaction_lag_ms: Annotated[int, Between(0)] = 0
    """Age below which a record is not compacted."""
    max_compaction_lag_ms: Annotated[int, Between(1)] = INT64_MAX
    """Age at which a record is compacted whatever the ratio is."""

    @classmethod
    def of_topic(cls, configs: Mapping[str, str]) -> LogConfig:
        """From a topic's configs by their dotted names; those that do not concern storage are passed over."""
        known = {option.name for option in options_of(cls)}
        return read_settings(cls, {name: value for name, value in configs.items() if name in known})

    @cached_property
    def timestamp_type(self) -> TimestampType:
        """`message.timestamp.type` as record batches carry it."""
        return TimestampType(self.message_timestamp_type == "LogAppendTime")

    @property
    def is_compacted(self) -> bool:
        """True if only the last record of each key is kept, so that each record needs a key."""
        return "compact" in self.cleanup_policy

    @cached_property
    def is_opaque(self) -> bool:
        """True if no setting requires reading the records of a batch with a valid header."""
        is_checked = self.is_compacted or self.has_earliest or self.limits_records
        return self.compression_type == "producer" and not is_checked

    @property
    def limits_records(self) -> bool:
        """True if the records of compressed batches have a limit of their own."""
        return self.max_decompressed_message_bytes < LARGEST_RECORD_BYTES

    @property
    def codec(self) -> Codec | None:
        """How all batches are to be compressed; None leaves that to producers."""
        if self.compression_type == "producer":
            return None
        return Codec.NONE if self.compression_type == "uncompressed" else Codec[self.compression_type.upper()]

    @property
    def has_earliest(self) -> bool:
        """True if records can be too old to be accepted."""
        return self.message_timestamp_before_max_ms < INT64_MAX and not self.timestamp_type

    @property
    def is_deleting(self) -> bool:
        """True if `cleanup.policy` lets retention delete old segments."""
        return "delete" in self.cleanup_policy

    @cached_property
    def roll_ms(self) -> int:
        """The age at which a segment is closed: the smaller of `segment.ms` and `max.compaction.lag.ms`."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms

"""DescribeLogDirs: the log directories of a broker, with their replicas."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int16, Int32, Int64, Message, String, message, since, struct


@struct
class DescribableLogDirTopic:
    topic: String = ""
    partitions: Sequence[Int32] = ()


@message(key=35, versions="1-5", flexible="2+")
class DescribeLogDirsRequest(Message):
    topics: Sequence[DescribableLogDirTopic] | None = None
    """None requests every topic."""


@struct
class DescribeLogDirsPartition:
    """A replica of a partition."""

    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0
    """The lag behind the high watermark, or behind the replica that it will replace."""
    is_future_key: Bool = False
    """True while it is being moved here from another directory (KIP-113)."""


@struct
class DescribeLogDirsTopic:
    name: String = ""
    partitions: Sequence[DescribeLogDirsPartition] = ()


@struct
class DescribeLogDirsResult:
    error_code: Int16 = 0
    log_dir: String = ""
    topics: Sequence[DescribeLogDirsTopic] = ()
    total_bytes: Int64 = since(4, default=-1, ignorable=True)
    """The size of the directory's volume."""
    usable_bytes: Int64 = since(4, default=-1, ignorable=True)
    is_cordoned: Bool = since(5, default=False, ignorable=True)
    """True if it gets no new partitions (KIP-1066)."""


@message(key=35, versions="1-5", flexible="2+")
class DescribeLogDirsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = since(3, default=0, ignorable=True)
    results: Sequence[DescribeLogDirsResult] = ()

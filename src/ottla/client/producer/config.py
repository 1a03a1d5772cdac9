"""The settings of a producer, under Kafka's names.

Values only, and the rules that tie them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from ottla.client.config import CommonConfig, Millis, read_client_settings
from ottla.config import Between
from ottla.errors import ConfigError, NotYetError

Serializer = Callable[[Any], bytes | None]
CodecName = Literal["none", "gzip", "snappy", "lz4", "zstd"]


@dataclass(frozen=True, kw_only=True)
class ProducerConfig(CommonConfig):
    """How records are gathered, sent and retried."""

    acks: Literal["all", "0", "1"] = "all"
    """Whom to wait for: `all` in-sync replicas (also written -1), the leader (1), or nobody (0: the offset is then
    reported as -1, and a record may be lost without anybody noticing)."""

    batch_size: Annotated[int, Between(0)] = 16_384
    """Bytes of records per partition that travel together. A larger record travels alone."""

    linger_ms: Millis = 5
    """How long a batch waits for company before it is sent; a full one does not wait."""

    buffer_memory: Annotated[int, Between(0)] = 33_554_432
    """Bytes of records that may wait to be sent, in all. When they are used up `send` waits."""

    max_block_ms: Millis = 60_000
    """How long `send` may wait for metadata or for buffer memory before it raises."""

    max_request_size: Annotated[int, Between(0)] = 1_048_576
    """The most bytes in one request, and so in one record before compression. The topic's `max.message.bytes` is a
    limit of its own."""

    max_in_flight_requests_per_connection: Annotated[int, Between(1)] = 5
    """Requests that may be unanswered on one connection. Above 1, a retry may put a batch behind a later one."""

    compression_type: CodecName = "none"
    """The codec of batches."""

    compression_gzip_level: Annotated[int, Between(-1, 9)] | None = None
    """1 is quickest, 9 is smallest."""

    compression_lz4_level: Annotated[int, Between(1, 17)] | None = None
    """1 is quickest, 17 is smallest."""

    compression_zstd_level: Annotated[int, Between(-131_072, 22)] | None = None
    """Negative is quickest, 22 is smallest."""

    retries: Annotated[int, Between(0, 2_147_483_647)] = 2_147_483_647
    """How often a batch is sent again; `delivery.timeout.ms` ends it before that."""

    delivery_timeout_ms: Millis = 120_000
    """The longest from `send` to success or failure, all retries included. At least `linger.ms` +
    `request.timeout.ms`."""

    enable_idempotence: bool = False
    """Whether the broker recognises a batch that is sent twice. Kafka's default is true; Ottla cannot do it yet, so it
    is false here: a retry after a lost answer may write a batch twice."""

    partitioner_class: Any = None
    """Who chooses the partition of a record that names none: `None` is Kafka's own (murmur2 of the key; records
    without a key stick to one partition until a batch is full), `round_robin`, or a function of
    (topic, key, value, number of partitions)."""

    partitioner_ignore_keys: bool = False
    """Whether Kafka's own partitioner spreads keyed records as if they had no key."""

    partitioner_adaptive_partitioning_enable: bool = True
    """Whether records without a key go more to brokers whose queues are short."""

    key_serializer: Serializer | None = None
    """Turns a key into bytes. None: keys are bytes already."""

    value_serializer: Serializer | None = None
    """Turns a value into bytes. None: values are bytes already."""

    metadata_max_idle_ms: Annotated[int, Between(5_000)] = 300_000
    """A topic not produced to for this long is no longer asked after."""

    def __post_init__(self) -> None:
        if self.enable_idempotence:
            raise NotYetError("enable.idempotence = true is not there yet: leave it out; a retry may then write twice")
        least = self.linger_ms + self.request_timeout_ms
        if self.delivery_timeout_ms < least:
            raise ConfigError(
                f"delivery.timeout.ms = {self.delivery_timeout_ms}: must be at least linger.ms + request.timeout.ms "
                f"= {least}; raise it, or lower one of the two"
            )

    @property
    def acks_number(self) -> int:
        """`acks` as it travels: -1 for all."""
        return -1 if self.acks == "all" else int(self.acks)

    @property
    def compression_level(self) -> int | None:
        """The level of the chosen codec, None for its own default."""
        level: int | None = getattr(self, f"compression_{self.compression_type}_level", None)
        return level


NOT_YET: Mapping[str, str] = {
    "partitioner.availability": "only the queues' lengths are looked at so far",
    "transactional.id": "transactions are not there yet; records are delivered at least once",
    "transaction": "transactions are not there yet; records are delivered at least once",
}


def read_producer_settings(settings: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> ProducerConfig:
    """The settings of a producer; `acks=-1` is another way to write `acks=all`."""
    return read_client_settings(ProducerConfig, NOT_YET, acks_by_name(settings or {}), acks_by_name(keywords))


def acks_by_name(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    spelled = isinstance(settings, Mapping) and str(settings.get("acks", "")) == "-1"
    return {**settings, "acks": "all"} if spelled else settings

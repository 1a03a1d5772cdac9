"""The settings of a producer, with Kafka's names, and the rules that combine them. Values only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from ottla.client.config.common_config import CommonConfig, Millis, read_client_settings
from ottla.config import Between
from ottla.errors import ConfigError
from ottla.settings_class import changed, settings

LOG = logging.getLogger(__name__)
MAX_IN_FLIGHT_BATCHES = 5
"""The number of batches per partition in which a broker detects duplicates."""
TABLE_BATCH_BYTES = 1_000_000
"""A size that every broker with default settings accepts."""
Serializer = Callable[[Any], bytes | None]
CodecName = Literal["none", "gzip", "snappy", "lz4", "zstd"]


@settings
class ProducerConfig(CommonConfig):
    """Settings of a producer."""

    acks: Literal["all", "0", "1"] = "all"
    """The acknowledgements to wait for: those of `all` in-sync replicas (also written -1), of the leader (1), or none
    (0: the offset is reported as -1, and records may be lost without an error).
    """

    batch_size: Annotated[int, Between(0)] = 16_384
    """The size in bytes of a batch of records for one partition. A larger record is sent in a batch of its own."""

    linger_ms: Millis = 5
    """How long a batch waits for more records before it is sent; a full one is sent at once."""

    buffer_memory: Annotated[int, Between(0)] = 33_554_432
    """The memory in bytes for all records waiting to be sent. When it is used up, `send` waits."""

    buffer_memory_allocation_strategy: Literal["full", "incremental"] = "full"
    """How a batch takes its part of `buffer.memory`: all of `batch.size` at its start (`full`), or 16 KiB at a time as it
    grows (`incremental`, KIP-1332), for many partitions with large, seldom full batches.
    """

    max_block_ms: Millis = 60_000
    """How long `send` may wait for metadata or for buffer memory before it raises."""

    max_request_size: Annotated[int, Between(0)] = 1_048_576
    """The limit in bytes of one request, and so of one record before compression. The topic's `max.message.bytes` is a
    separate limit.
    """

    max_in_flight_requests_per_connection: Annotated[int, Between(1)] = 5
    """The number of requests in flight per connection. An idempotent producer keeps the order with up to 5; without
    idempotence a retry may reorder batches unless this is 1.
    """

    compression_type: CodecName = "none"
    """The codec of batches."""

    compression_gzip_level: Annotated[int, Between(-1, 9)] | None = None
    """1 is the fastest, 9 the smallest."""

    compression_lz4_level: Annotated[int, Between(1, 17)] | None = None
    """1 is the fastest, 17 the smallest."""

    compression_zstd_level: Annotated[int, Between(-131_072, 22)] | None = None
    """Negative is the fastest, 22 the smallest."""

    retries: Annotated[int, Between(0, 2_147_483_647)] = 2_147_483_647
    """How often a batch is retried; `delivery.timeout.ms` usually ends it earlier."""

    delivery_timeout_ms: Millis = 120_000
    """The longest time from `send` to success or failure, including all retries. At least `linger.ms` +
    `request.timeout.ms`.
    """

    enable_idempotence: bool = True
    """If true, batches have sequence numbers, so that the broker stores each batch once and in order. Needs `acks=all`,
    `retries` above 0 and at most 5 requests in flight per connection. If one of these is set otherwise, idempotence
    is disabled with a warning; if it was enabled explicitly, that is an error.
    """

    transactional_id: str | None = None
    """The id under which transactions survive this process: the next producer with it aborts an open transaction of the
    last one and fences that one. None: no transactions.
    """

    transaction_timeout_ms: Annotated[int, Between(1)] = 60_000
    """How long a transaction may stay open before the coordinator aborts it. At most the brokers'
    `transaction.max.timeout.ms`.
    """

    interceptor_classes: tuple[Any, ...] = ()
    """Objects with any of these methods: `on_send(record)` is called before a record is serialized and returns the
    record to send instead; `on_acknowledgement(metadata, error)` is called with its result on the sender thread;
    `close()` is called at the end. For the result of a single record, set `on_delivery` in `on_send`. For rows of
    `send_table` and `send_many`, `on_send` is not called, and `on_acknowledgement` is called once per batch.
    """

    partitioner_class: Any = None
    """The partitioner for records without a partition: `None` for Kafka's own (murmur2 of the key; records without a
    key stay with one partition until a batch is full), `round_robin`, or a function of (topic, key, value, number of
    partitions).
    """

    partitioner_ignore_keys: bool = False
    """If true, Kafka's own partitioner ignores keys."""

    partitioner_adaptive_partitioning_enable: bool = True
    """If true, records without a key prefer partitions with short queues (KIP-794)."""

    client_rack: str = ""
    """The rack of this producer, named as in the brokers' `broker.rack`; used with `partitioner.rack.aware`."""

    partitioner_rack_aware: bool = False
    """If true, Kafka's own partitioner sends records without a key to partitions with a leader in `client.rack`, and to
    others only if there are none (KIP-1123). Needs `client.rack`.
    """

    key_serializer: Serializer | None = None
    """Converts a key to bytes. None: keys are bytes already."""

    value_serializer: Serializer | None = None
    """Converts a value to bytes. None: values are bytes already."""

    metadata_max_idle_ms: Annotated[int, Between(5_000)] = 300_000
    """Metadata of a topic is no longer requested after it was not used for this long."""

    statistics_interval_ms: Millis = 0
    """How often `on.statistics` is called. 0: never."""

    on_statistics: Callable[[Any], Any] | None = None
    """A function that is called with the result of `metrics()` every `statistics.interval.ms`: on the sender thread, in
    asyncio in the event loop. Nothing is sent while it runs.
    """

    def __post_init__(self) -> None:
        if self.transactional_id is not None and not self.enable_idempotence:
            raise ConfigError(
                f"transactional.id = {self.transactional_id!r} needs enable.idempotence = true; omit one of them"
            )
        if self.transactional_id == "":
            raise ConfigError("transactional.id = '': must not be empty; omit it for a producer without transactions")
        if self.enable_idempotence and (conflict := self.idempotence_conflict()):
            raise ConfigError(f"{conflict}; or set enable.idempotence = false and omit transactional.id")
        if self.partitioner_rack_aware and not self.client_rack.strip():
            raise ConfigError("partitioner.rack.aware = true needs client.rack: set it, or omit partitioner.rack.aware")
        least = self.linger_ms + self.request_timeout_ms
        if self.delivery_timeout_ms < least:
            raise ConfigError(
                f"delivery.timeout.ms = {self.delivery_timeout_ms}: must be at least linger.ms + request.timeout.ms "
                f"= {least}; raise it, or lower one of the two"
            )

    def idempotence_conflict(self) -> str | None:
        """Return the error for the first setting that conflicts with idempotence, or None."""
        if self.acks != "all":
            return f"acks = {self.acks}: an idempotent producer needs acks = all"
        if self.retries == 0:
            return "retries = 0: an idempotent producer needs retries above 0"
        if self.max_in_flight_requests_per_connection > MAX_IN_FLIGHT_BATCHES:
            return (
                f"max.in.flight.requests.per.connection = {self.max_in_flight_requests_per_connection}: "
                f"an idempotent producer allows at most {MAX_IN_FLIGHT_BATCHES}"
            )
        return None

    @property
    def preferred_rack(self) -> str:
        """The rack of the leaders that get records without a key; empty if racks do not matter."""
        return self.client_rack if self.partitioner_rack_aware else ""

    @property
    def acks_number(self) -> int:
        """The number of `acks` in the protocol: -1 for all."""
        return -1 if self.acks == "all" else int(self.acks)

    @property
    def max_record_bytes(self) -> int:
        """The largest size of one record."""
        return min(self.max_request_size, self.buffer_memory)

    @property
    def table_batch_bytes(self) -> int:
        """The size of the batches of tables and lists."""
        return max(self.batch_size, min(TABLE_BATCH_BYTES, self.max_request_size, self.buffer_memory // 2))

    @property
    def compression_level(self) -> int | None:
        """The level of the chosen codec; None for its default."""
        level: int | None = getattr(self, f"compression_{self.compression_type}_level", None)
        return level


NOT_YET: Mapping[str, str] = {
    "partitioner.availability": "only queue lengths are considered",
    "transaction.two.phase.commit.enable": "only the producer itself ends its transactions",
}


def read_producer_settings(settings: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> ProducerConfig:
    """Return the settings of a producer. `acks=-1` is accepted as `acks=all`.

    Idempotence is the default. It is disabled with a warning if other settings conflict with it.
    """
    dotted, spelled = acks_by_name(settings or {}), acks_by_name(keywords)
    if not isinstance(dotted, Mapping) or is_idempotence_requested(dotted) or is_idempotence_requested(spelled):
        return read_client_settings(ProducerConfig, "producer", NOT_YET, dotted, spelled)
    config = read_client_settings(ProducerConfig, "producer", NOT_YET, dotted, {**spelled, "enable_idempotence": False})
    conflict = config.idempotence_conflict()
    if conflict is None:
        return changed(config, enable_idempotence=True)
    LOG.warning("idempotence is disabled, retries may duplicate or reorder records: %s", conflict)
    return config


def is_idempotence_requested(settings: Mapping[str, Any]) -> bool:
    """Return True if the user has set whether the producer is idempotent."""
    names = {str(name).replace(".", "_") for name, value in settings.items() if value is not None}
    return not names.isdisjoint({"enable_idempotence", "transactional_id"})


def acks_by_name(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    spelled = isinstance(settings, Mapping) and str(settings.get("acks", "")) == "-1"
    return {**settings, "acks": "all"} if spelled else settings

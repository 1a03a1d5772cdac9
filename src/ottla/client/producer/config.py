"""The settings of a producer, under Kafka's names.

Values only, and the rules that tie them together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from ottla.client.config.common_config import CommonConfig, Millis, read_client_settings
from ottla.config import Between
from ottla.errors import ConfigError
from ottla.settings_class import changed, settings

LOG = logging.getLogger(__name__)
MOST_IN_FLIGHT = 5
"""Of how many batches per partition a broker recognises a repeat."""
TABLE_BATCH_BYTES = 1_000_000
"""What any broker takes that takes a megabyte, as they do by default."""
Serializer = Callable[[Any], bytes | None]
CodecName = Literal["none", "gzip", "snappy", "lz4", "zstd"]


@settings
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
    """Requests that may be unanswered on one connection. An idempotent producer keeps the order with up to 5; without
    idempotence a retry may put a batch behind a later one, unless this is 1."""

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

    enable_idempotence: bool = True
    """Whether batches are numbered, so that a broker keeps what is sent twice once, and in order. Needs `acks=all`,
    `retries` above 0 and at most 5 requests in flight per connection; where one of these is set otherwise idempotence is
    off, with a warning, unless it was asked for: then that is an error."""

    transactional_id: str | None = None
    """The name under which transactions survive this process: the next producer with it ends what the last one left
    open and shuts that one out. None: no transactions."""

    transaction_timeout_ms: Annotated[int, Between(1)] = 60_000
    """How long a transaction may stay open before the coordinator aborts it. At most the brokers'
    `transaction.max.timeout.ms`."""

    interceptor_classes: tuple[Any, ...] = ()
    """Objects that see each record before it is serialised (`on_send(record)` returns the record to go on with) and its
    outcome (`on_acknowledgement(metadata, error)`, on the sender's thread; of one record alone by its `on_delivery`, put there in
    `on_send`), and may have a `close()`. Rows of
    `send_table` and `send_many` are not shown to them one by one: they are told the outcome of each batch."""

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

    statistics_interval_ms: Millis = 0
    """How often `on.statistics` is called. 0: never."""

    on_statistics: Callable[[Any], Any] | None = None
    """A function that is called with what `metrics()` returns, every `statistics.interval.ms`: on the sender's thread, as
    callbacks of deliveries are, in asyncio in the event loop. While it runs nothing is sent."""

    def __post_init__(self) -> None:
        if self.transactional_id is not None and not self.enable_idempotence:
            raise ConfigError(
                f"transactional.id = {self.transactional_id!r} needs enable.idempotence = true; leave it out"
            )
        if self.transactional_id == "":
            raise ConfigError("transactional.id = '': must not be empty; leave it out where no transactions are wanted")
        if self.enable_idempotence and (conflict := self.idempotence_conflict()):
            raise ConfigError(f"{conflict}; or set enable.idempotence = false and have no transactional.id")
        least = self.linger_ms + self.request_timeout_ms
        if self.delivery_timeout_ms < least:
            raise ConfigError(
                f"delivery.timeout.ms = {self.delivery_timeout_ms}: must be at least linger.ms + request.timeout.ms "
                f"= {least}; raise it, or lower one of the two"
            )

    def idempotence_conflict(self) -> str | None:
        """The first setting with which batches cannot be kept once and in order."""
        if self.acks != "all":
            return f"acks = {self.acks}: an idempotent producer needs acks = all"
        if self.retries == 0:
            return "retries = 0: an idempotent producer needs retries above 0"
        if self.max_in_flight_requests_per_connection > MOST_IN_FLIGHT:
            return (
                f"max.in.flight.requests.per.connection = {self.max_in_flight_requests_per_connection}: "
                f"an idempotent producer has {MOST_IN_FLIGHT} at most"
            )
        return None

    @property
    def acks_number(self) -> int:
        """`acks` as it travels: -1 for all."""
        return -1 if self.acks == "all" else int(self.acks)

    @property
    def max_record_bytes(self) -> int:
        """The most that one record may take."""
        return min(self.max_request_size, self.buffer_memory)

    @property
    def table_batch_bytes(self) -> int:
        """How large the batches of tables and lists become."""
        return max(self.batch_size, min(TABLE_BATCH_BYTES, self.max_request_size, self.buffer_memory // 2))

    @property
    def compression_level(self) -> int | None:
        """The level of the chosen codec, None for its own default."""
        level: int | None = getattr(self, f"compression_{self.compression_type}_level", None)
        return level


NOT_YET: Mapping[str, str] = {
    "partitioner.availability": "only the queues' lengths are looked at so far",
    "transaction.two.phase.commit.enable": "a transaction is ended by its own producer only",
}


def read_producer_settings(settings: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> ProducerConfig:
    """The settings of a producer; `acks=-1` is another way to write `acks=all`.

    Idempotence is the default, and gives way with a warning where other settings do not allow it.
    """
    dotted, spelled = acks_by_name(settings or {}), acks_by_name(keywords)
    if not isinstance(dotted, Mapping) or is_idempotent_by_wish(dotted) or is_idempotent_by_wish(spelled):
        return read_client_settings(ProducerConfig, "producer", NOT_YET, dotted, spelled)
    config = read_client_settings(ProducerConfig, "producer", NOT_YET, dotted, {**spelled, "enable_idempotence": False})
    conflict = config.idempotence_conflict()
    if conflict is None:
        return changed(config, enable_idempotence=True)
    LOG.warning("idempotence is off, a retry may write records twice or out of order: %s", conflict)
    return config


def is_idempotent_by_wish(settings: Mapping[str, Any]) -> bool:
    """Whether somebody has said if the producer is to be idempotent."""
    names = {str(name).replace(".", "_") for name, value in settings.items() if value is not None}
    return not names.isdisjoint({"enable_idempotence", "transactional_id"})


def acks_by_name(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    spelled = isinstance(settings, Mapping) and str(settings.get("acks", "")) == "-1"
    return {**settings, "acks": "all"} if spelled else settings

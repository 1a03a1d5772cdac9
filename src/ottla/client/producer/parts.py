"""Constructs the parts of a producer."""

from __future__ import annotations

from functools import partial
from random import Random

from msgspec import Struct

from ottla.client.metadata.metadata import Metadata
from ottla.client.network.bootstrap import bootstrap_nodes
from ottla.client.network.network_client import NetworkClient
from ottla.client.producer.buffer_pool import BufferPool
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.interceptors import ProducerInterceptors
from ottla.client.producer.partitioner import StickyPartitioner, partitioner_for
from ottla.client.producer.record_accumulator import RecordAccumulator
from ottla.client.producer.record_intake import RecordIntake
from ottla.client.producer.row_batches import RowBatches
from ottla.client.producer.sender import Sender
from ottla.client.producer.spare_buffers import SpareBuffers
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.clock import Clock
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.trace import EventStream

CHUNK_BYTES = 16_384
"""The step of `buffer.memory.allocation.strategy=incremental`, as in the Java client."""


class ProducerParts(Struct):
    """The parts of a producer."""

    metadata: Metadata
    client: NetworkClient
    transactions: TransactionManager | None
    """None if the producer is not idempotent."""
    pool: BufferPool
    accumulator: RecordAccumulator
    sender: Sender
    intake: RecordIntake
    rows: RowBatches
    interceptors: ProducerInterceptors | None
    events: EventStream


def assemble_parts(config: ProducerConfig, client_id: str, clock: Clock, make_sender: type[Sender]) -> ProducerParts:
    """Construct all parts. Raise ConfigError for an invalid partitioner."""
    random, events = Random(), EventStream(clock)
    partitioner = partitioner_for(config.partitioner_class, ignore_keys=config.partitioner_ignore_keys)
    interceptors = ProducerInterceptors(config.interceptor_classes) if config.interceptor_classes else None
    backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random)
    metadata = Metadata(
        bootstrap_nodes(config.bootstrap_servers, config.client_dns_lookup, protocol=config.security_protocol),
        max_age_ms=config.metadata_max_age_ms,
        backoff=backoff,
        topic_idle_ms=config.metadata_max_idle_ms,
    )
    transactions = make_transaction_manager(config, client_id, backoff, events)
    codec, level = Codec[config.compression_type.upper()], config.compression_level
    spare = SpareBuffers({config.batch_size, config.table_batch_bytes})
    pool = BufferPool(config.buffer_memory)
    accumulator = RecordAccumulator(
        batch_size=config.batch_size,
        chunk_bytes=CHUNK_BYTES if config.buffer_memory_allocation_strategy == "incremental" else 0,
        linger_ms=config.linger_ms,
        delivery_timeout_ms=config.delivery_timeout_ms,
        retry_backoff=backoff,
        pool=pool,
        make_builder=partial(new_builder, codec, level, spare),
        make_sticky=lambda: StickyPartitioner(config.batch_size, random),
        monotonic=clock.monotonic,
        spare=spare,
        adaptive=config.partitioner_adaptive_partitioning_enable,
        rack=config.preferred_rack,
        cluster=lambda: metadata.cluster,
        numbering=transactions,
        events=events,
    )
    client = NetworkClient(
        config,
        metadata,
        client_id=client_id,
        max_in_flight=config.max_in_flight_requests_per_connection,
        clock=clock,
        random=random,
    )
    sender = make_sender(config, client, accumulator, client_id, transactions, events)
    intake = RecordIntake(config, metadata, accumulator, transactions, partitioner, interceptors)
    rows = RowBatches(config, codec, partitioner, clock, spare, sealed=transactions is None)
    return ProducerParts(metadata, client, transactions, pool, accumulator, sender, intake, rows, interceptors, events)


def make_transaction_manager(
    config: ProducerConfig, name: str, backoff: ExponentialBackoff, events: EventStream
) -> TransactionManager | None:
    """Return the part that numbers batches and decides about transactions, if the producer is idempotent."""
    if not config.enable_idempotence:
        return None
    return TransactionManager(
        name=name,
        backoff=backoff,
        transactional_id=config.transactional_id,
        timeout_ms=config.transaction_timeout_ms,
        events=events,
    )


def new_builder(codec: Codec, level: int | None, spare: SpareBuffers, max_bytes: int) -> BatchBuilder:
    """Return the builder of a batch. It does not refer to the producer, so that an unclosed one can be collected."""
    return BatchBuilder(codec, level, max_bytes, spare.take_buffer(max_bytes))

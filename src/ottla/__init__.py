"""Ottla: Kafka for people who work in Python.

    Producer ──►┐                 ┌──► Consumer
                ├──►  Broker  ──► ┤
    Admin    ──►┘                 └──► Spark (format "ottla")

The names below load when they are first used, so that `import ottla` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ottla._version import __version__
from ottla.lazy_names import loader_of

HOME = {
    "Broker": "ottla.broker.embedding.embedded_broker",
    "Cluster": "ottla.broker.embedding.local_cluster",
    "Producer": "ottla.client.producer",
    "Consumer": "ottla.client.consumer",
    "ShareConsumer": "ottla.client.share",
    "AcknowledgeType": "ottla.client.share",
    "ConsumerRecord": "ottla.client.consumer",
    "ConsumerRecords": "ottla.client.consumer",
    "ConsumerSettings": "ottla.client.config.typed_settings",
    "ProducerSettings": "ottla.client.config.typed_settings",
    "ShareConsumerSettings": "ottla.client.config.typed_settings",
    "AdminSettings": "ottla.client.config.typed_settings",
    "read_table": "ottla.client.consumer",
    "scan": "ottla.scanning",
    "scan_duckdb": "ottla.scanning",
    "RebalanceListener": "ottla.client.consumer",
    "SubscriptionPattern": "ottla.client.consumer",
    "process": "ottla.client.process",
    "Processor": "ottla.client.process",
    "Outgoing": "ottla.client.process",
    "work": "ottla.client.work",
    "Worker": "ottla.client.work",
    "Backoff": "ottla.client.work",
    "Admin": "ottla.client.admin",
    "ConfigResource": "ottla.client.admin",
    "NewTopic": "ottla.client.admin",
    "TopicPartition": "ottla.model",
    "RecordMetadata": "ottla.model",
    "OffsetAndMetadata": "ottla.model",
    "OffsetAndTimestamp": "ottla.model",
    "OttlaError": "ottla.errors",
    "KafkaError": "ottla.errors",
    "ConfigError": "ottla.errors",
    "IllegalStateError": "ottla.errors",
    "WakeupError": "ottla.errors",
    "WorkerProcessError": "ottla.errors",
    "MissingExtraError": "ottla.errors",
    "NotYetError": "ottla.errors",
    "KafkaTimeoutError": "ottla.errors",
    "BufferExhaustedError": "ottla.errors",
    "NoBrokersAvailableError": "ottla.errors",
    "RecordDeserializationError": "ottla.errors",
    "SerializationError": "ottla.errors",
    "UndeliveredError": "ottla.errors",
    "AssignmentError": "ottla.errors",
    "AuthenticationError": "ottla.errors",
    "SslAuthenticationError": "ottla.errors",
    "SaslAuthenticationError": "ottla.errors",
    "LogTruncationError": "ottla.errors",
    "CorruptRecordError": "ottla.errors",
    "ProtocolError": "ottla.errors",
    "UnsupportedVersionError": "ottla.errors",
    "RecordsRefusedError": "ottla.errors",
    "UnknownTopicOrPartitionError": "ottla.errors",
    "TopicAlreadyExistsError": "ottla.errors",
    "InvalidTopicError": "ottla.errors",
    "OffsetOutOfRangeError": "ottla.errors",
    "RecordTooLargeError": "ottla.errors",
    "CommitFailedError": "ottla.errors",
    "RebalanceInProgressError": "ottla.errors",
    "InvalidGroupIdError": "ottla.errors",
    "FencedInstanceIdError": "ottla.errors",
    "TransactionAbortableError": "ottla.errors",
    "TransactionAbortedError": "ottla.errors",
    "OutOfOrderSequenceError": "ottla.errors",
    "ApplicationRecoverableError": "ottla.errors",
    "ProducerFencedError": "ottla.errors",
    "InvalidProducerEpochError": "ottla.errors",
    "InvalidProducerIdMappingError": "ottla.errors",
    "InvalidTxnStateError": "ottla.errors",
    "InvalidRecordStateError": "ottla.errors",
}

__all__ = ["__version__", *HOME, "aio"]

if TYPE_CHECKING:
    from ottla import aio as aio
    from ottla.broker.embedding.embedded_broker import Broker as Broker
    from ottla.broker.embedding.local_cluster import Cluster as Cluster
    from ottla.client.admin import Admin as Admin
    from ottla.client.admin import ConfigResource as ConfigResource
    from ottla.client.admin import NewTopic as NewTopic
    from ottla.client.config.typed_settings import AdminSettings as AdminSettings
    from ottla.client.config.typed_settings import ConsumerSettings as ConsumerSettings
    from ottla.client.config.typed_settings import ProducerSettings as ProducerSettings
    from ottla.client.config.typed_settings import ShareConsumerSettings as ShareConsumerSettings
    from ottla.client.consumer import Consumer as Consumer
    from ottla.client.consumer import ConsumerRecord as ConsumerRecord
    from ottla.client.consumer import ConsumerRecords as ConsumerRecords
    from ottla.client.consumer import RebalanceListener as RebalanceListener
    from ottla.client.consumer import SubscriptionPattern as SubscriptionPattern
    from ottla.client.consumer import read_table as read_table
    from ottla.client.process import Outgoing as Outgoing
    from ottla.client.process import Processor as Processor
    from ottla.client.process import process as process
    from ottla.client.producer import Producer as Producer
    from ottla.client.share import AcknowledgeType as AcknowledgeType
    from ottla.client.share import ShareConsumer as ShareConsumer
    from ottla.client.work import Backoff as Backoff
    from ottla.client.work import Worker as Worker
    from ottla.client.work import work as work
    from ottla.errors import ApplicationRecoverableError as ApplicationRecoverableError
    from ottla.errors import AssignmentError as AssignmentError
    from ottla.errors import AuthenticationError as AuthenticationError
    from ottla.errors import BufferExhaustedError as BufferExhaustedError
    from ottla.errors import CommitFailedError as CommitFailedError
    from ottla.errors import ConfigError as ConfigError
    from ottla.errors import CorruptRecordError as CorruptRecordError
    from ottla.errors import FencedInstanceIdError as FencedInstanceIdError
    from ottla.errors import IllegalStateError as IllegalStateError
    from ottla.errors import InvalidGroupIdError as InvalidGroupIdError
    from ottla.errors import InvalidProducerEpochError as InvalidProducerEpochError
    from ottla.errors import InvalidProducerIdMappingError as InvalidProducerIdMappingError
    from ottla.errors import InvalidRecordStateError as InvalidRecordStateError
    from ottla.errors import InvalidTopicError as InvalidTopicError
    from ottla.errors import InvalidTxnStateError as InvalidTxnStateError
    from ottla.errors import KafkaError as KafkaError
    from ottla.errors import KafkaTimeoutError as KafkaTimeoutError
    from ottla.errors import LogTruncationError as LogTruncationError
    from ottla.errors import MissingExtraError as MissingExtraError
    from ottla.errors import NoBrokersAvailableError as NoBrokersAvailableError
    from ottla.errors import NotYetError as NotYetError
    from ottla.errors import OffsetOutOfRangeError as OffsetOutOfRangeError
    from ottla.errors import OttlaError as OttlaError
    from ottla.errors import OutOfOrderSequenceError as OutOfOrderSequenceError
    from ottla.errors import ProducerFencedError as ProducerFencedError
    from ottla.errors import ProtocolError as ProtocolError
    from ottla.errors import RebalanceInProgressError as RebalanceInProgressError
    from ottla.errors import RecordDeserializationError as RecordDeserializationError
    from ottla.errors import RecordsRefusedError as RecordsRefusedError
    from ottla.errors import RecordTooLargeError as RecordTooLargeError
    from ottla.errors import SaslAuthenticationError as SaslAuthenticationError
    from ottla.errors import SerializationError as SerializationError
    from ottla.errors import SslAuthenticationError as SslAuthenticationError
    from ottla.errors import TopicAlreadyExistsError as TopicAlreadyExistsError
    from ottla.errors import TransactionAbortableError as TransactionAbortableError
    from ottla.errors import TransactionAbortedError as TransactionAbortedError
    from ottla.errors import UndeliveredError as UndeliveredError
    from ottla.errors import UnknownTopicOrPartitionError as UnknownTopicOrPartitionError
    from ottla.errors import UnsupportedVersionError as UnsupportedVersionError
    from ottla.errors import WakeupError as WakeupError
    from ottla.errors import WorkerProcessError as WorkerProcessError
    from ottla.model import OffsetAndMetadata as OffsetAndMetadata
    from ottla.model import OffsetAndTimestamp as OffsetAndTimestamp
    from ottla.model import RecordMetadata as RecordMetadata
    from ottla.model import TopicPartition as TopicPartition
    from ottla.scanning import scan as scan
    from ottla.scanning import scan_duckdb as scan_duckdb


_load = loader_of(__name__, HOME)


def __getattr__(name: str) -> Any:
    return import_module("ottla.aio") if name == "aio" else _load(name)  # which brings asyncio with it


def __dir__() -> list[str]:
    """Return the public names, without those that only this module needs."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

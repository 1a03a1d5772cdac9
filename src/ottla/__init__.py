"""Ottla: Kafka for people who work in Python.

    Producer ──►┐                 ┌──► Consumer
                ├──►  Broker  ──► ┤
    Admin    ──►┘                 └──► Spark (format "ottla")

The names below load when they are first used, so that `import ottla` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

HOME = {
    "Broker": "ottla.broker.embedded",
    "Producer": "ottla.client.producer",
    "Consumer": "ottla.client.consumer",
    "ConsumerRecord": "ottla.client.consumer",
    "read_table": "ottla.client.consumer",
    "RebalanceListener": "ottla.client.consumer",
    "SubscriptionPattern": "ottla.client.consumer",
    "process": "ottla.client.process",
    "Processor": "ottla.client.process",
    "Outgoing": "ottla.client.process",
    "Admin": "ottla.client.admin",
    "NewTopic": "ottla.client.admin",
    "TopicPartition": "ottla.model",
    "RecordMetadata": "ottla.model",
    "OffsetAndMetadata": "ottla.model",
    "OffsetAndTimestamp": "ottla.model",
    "OttlaError": "ottla.errors",
    "KafkaError": "ottla.errors",
    "ConfigError": "ottla.errors",
}

__all__ = ["__version__", *HOME]

if TYPE_CHECKING:
    from ottla import aio as aio
    from ottla.broker.embedded import Broker as Broker
    from ottla.client.admin import Admin as Admin
    from ottla.client.admin import NewTopic as NewTopic
    from ottla.client.consumer import Consumer as Consumer
    from ottla.client.consumer import ConsumerRecord as ConsumerRecord
    from ottla.client.consumer import RebalanceListener as RebalanceListener
    from ottla.client.consumer import SubscriptionPattern as SubscriptionPattern
    from ottla.client.consumer import read_table as read_table
    from ottla.client.process import Outgoing as Outgoing
    from ottla.client.process import Processor as Processor
    from ottla.client.process import process as process
    from ottla.client.producer import Producer as Producer
    from ottla.errors import ConfigError as ConfigError
    from ottla.errors import KafkaError as KafkaError
    from ottla.errors import OttlaError as OttlaError
    from ottla.model import OffsetAndMetadata as OffsetAndMetadata
    from ottla.model import OffsetAndTimestamp as OffsetAndTimestamp
    from ottla.model import RecordMetadata as RecordMetadata
    from ottla.model import TopicPartition as TopicPartition


def __getattr__(name: str) -> Any:
    """Load a public name from its home (PEP 562)."""
    if name == "aio":  # which brings asyncio with it
        return import_module("ottla.aio")
    if name not in HOME:
        raise AttributeError(f"module 'ottla' has no attribute {name!r}")
    return getattr(import_module(HOME[name]), name)

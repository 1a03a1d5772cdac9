"""A broker for faststream on Ottla's clients for asyncio. Needs the extra `faststream`.

The classes without "Ottla" in their names are those of `faststream.kafka`.
"""

from __future__ import annotations

from ottla.extras import extra

with extra("faststream"):
    import aiokafka  # noqa: F401  # first: without it faststream.kafka raises an error that does not name our extra
    from faststream.kafka import (
        ConsumerRecord as ConsumerRecord,
    )
    from faststream.kafka import (
        KafkaMessage as KafkaMessage,
    )
    from faststream.kafka import (
        KafkaPublishMessage as KafkaPublishMessage,
    )
    from faststream.kafka import (
        KafkaResponse as KafkaResponse,
    )
    from faststream.kafka import (
        Topic as Topic,
    )
    from faststream.kafka import (
        TopicPartition as TopicPartition,
    )

    from ottla.faststream.broker import OttlaBroker as OttlaBroker
    from ottla.faststream.broker import OttlaPublisher as OttlaPublisher
    from ottla.faststream.broker import OttlaRoute as OttlaRoute
    from ottla.faststream.broker import OttlaRouter as OttlaRouter
    from ottla.faststream.broker import TestOttlaBroker as TestOttlaBroker

__all__ = [
    "ConsumerRecord",
    "KafkaMessage",
    "KafkaPublishMessage",
    "KafkaResponse",
    "OttlaBroker",
    "OttlaPublisher",
    "OttlaRoute",
    "OttlaRouter",
    "TestOttlaBroker",
    "Topic",
    "TopicPartition",
]

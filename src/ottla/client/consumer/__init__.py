"""Read records.

Consumer.poll ─► Fetcher ─► ConsumerNetworkClient ─► NetworkClient
   │               └ completed_fetches ─► collect_fetch ─► ConsumerRecords, Arrow tables
   ├─► SubscriptionState: subscription, assignment, and the position in each partition
   └─► ConsumerCoordinator ─► OffsetCommits, CommittedOffsets ─► ConsumerNetworkClient
          └─ a Membership (under a lock) ◄─ HeartbeatThread ─► a NetworkClient of its own

The names below are imported on first use, so that a user of one module, such as the admin, does not load them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.lazy_names import loader_of

HOME = {
    "ConsumerConfig": "ottla.client.consumer.config",
    "Consumer": "ottla.client.consumer.consumer",
    "ConsumerGroupMetadata": "ottla.client.consumer.coordinator.generation",
    "RebalanceListener": "ottla.client.consumer.group.rebalance_listener",
    "RangeReader": "ottla.client.consumer.range_reader",
    "ConsumerRecords": "ottla.client.consumer.records",
    "SubscriptionPattern": "ottla.client.consumer.subscription_pattern",
    "read_table": "ottla.client.consumer.topic_table",
    "ConsumerRecord": "ottla.client.consumer.typed_record",
}

__all__ = [*HOME]

if TYPE_CHECKING:
    from ottla.client.consumer.config import ConsumerConfig as ConsumerConfig
    from ottla.client.consumer.consumer import Consumer as Consumer
    from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata as ConsumerGroupMetadata
    from ottla.client.consumer.group.rebalance_listener import RebalanceListener as RebalanceListener
    from ottla.client.consumer.range_reader import RangeReader as RangeReader
    from ottla.client.consumer.records import ConsumerRecords as ConsumerRecords
    from ottla.client.consumer.subscription_pattern import SubscriptionPattern as SubscriptionPattern
    from ottla.client.consumer.topic_table import read_table as read_table
    from ottla.client.consumer.typed_record import ConsumerRecord as ConsumerRecord


__getattr__ = loader_of(__name__, HOME)

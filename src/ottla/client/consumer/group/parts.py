"""The components that both group protocols use."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.group.partition_exchange import PartitionExchange
from ottla.client.consumer.offsets.auto_commit import AutoCommit
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.metadata.metadata import Metadata
from ottla.client.runtime.backoff import ExponentialBackoff


class GroupParts(Struct, frozen=True):
    """The components of a member in the user's thread."""

    config: ConsumerConfig
    subscriptions: SubscriptionState
    metadata: Metadata
    exchange: PartitionExchange
    auto_commit: AutoCommit
    backoff: ExponentialBackoff
    lock: threading.Lock
    wake_thread: Callable[[], None]
    log: logging.LoggerAdapter[Any]

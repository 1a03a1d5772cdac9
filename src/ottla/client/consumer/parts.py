"""Create and connect the components of a consumer."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from msgspec import Struct

from ottla.client.consumer.assignors.choice import choose_assignors
from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.fetching.fetcher import Fetcher
from ottla.client.consumer.networks import Networks
from ottla.client.consumer.offsets.offset_fetcher import OffsetFetcher
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.consumer.topic_metadata_fetcher import TopicMetadataFetcher
from ottla.client.metadata.metadata import Metadata
from ottla.client.network.bootstrap import bootstrap_nodes
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.clock import Clock
from ottla.model import EARLIEST, LATEST
from ottla.trace import EventStream

if TYPE_CHECKING:
    from ottla.client.consumer.group.consumer_coordinator import ConsumerCoordinator

RESETS = {"earliest": EARLIEST, "latest": LATEST, "none": None}


class ConsumerParts(Struct):
    """The components of a consumer."""

    events: EventStream
    metadata: Metadata
    subscriptions: SubscriptionState
    client: ConsumerNetworkClient
    fetcher: Fetcher
    offset_fetcher: OffsetFetcher
    topics: TopicMetadataFetcher
    coordinator: ConsumerCoordinator | None
    """None without a group."""


def assemble_parts(config: ConsumerConfig, client_id: str, clock: Clock) -> ConsumerParts:
    """Create all components. Raises ConfigError for an invalid assignor."""
    assignors = choose_assignors(config.partition_assignment_strategy) if config.group_protocol == "classic" else {}
    events = EventStream(clock)
    backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, Random())
    creates = config.allow_auto_create_topics
    metadata = Metadata(
        bootstrap_nodes(config.bootstrap_servers, config.client_dns_lookup, protocol=config.security_protocol),
        max_age_ms=config.metadata_max_age_ms,
        backoff=backoff,
        allow_auto_topic_creation=creates,
    )
    in_group = config.group_id is not None
    subscriptions = SubscriptionState(RESETS[config.auto_offset_reset], in_group=in_group)
    networks = Networks(config, client_id, metadata, clock, fetch_max_bytes=config.fetch_max_bytes)
    client = networks.make_user_client()
    coordinator = None
    if in_group:
        # A consumer without a group does without the third of its modules that are for groups.
        from ottla.client.consumer.group.consumer_coordinator import ConsumerCoordinator

        coordinator = ConsumerCoordinator(
            config, client_id, client, subscriptions, assignors, backoff, networks.make_heartbeat_client, events
        )
        client.client.on_disowned = coordinator.disown
    return ConsumerParts(
        events,
        metadata,
        subscriptions,
        client,
        Fetcher(config, client, subscriptions, backoff, events),
        OffsetFetcher(
            client,
            subscriptions,
            backoff,
            request_timeout_ms=config.request_timeout_ms,
            isolation_level=config.isolation_number,
        ),
        TopicMetadataFetcher(client, backoff, allow_auto_topic_creation=creates),
        coordinator,
    )

"""The two group protocols, each with its membership and its rebalance."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ottla.client.consumer.assignors.assignor import Assignor
from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.group.heartbeat import Heartbeat
from ottla.client.consumer.group.heartbeat_thread import Leader
from ottla.client.consumer.group.parts import GroupParts
from ottla.client.consumer.group.topic_watch import TopicWatch
from ottla.model import FOREVER

if TYPE_CHECKING:
    from ottla.client.consumer.group.classic_rebalance import ClassicRebalance
    from ottla.client.consumer.group.membership.membership import Membership
    from ottla.client.consumer.group.reconciliation import Reconciliation
    from ottla.client.metadata.metadata_snapshot import MetadataSnapshot


class GroupProtocol(Struct, frozen=True):
    membership: Membership
    heartbeat: Heartbeat
    topics: TopicWatch
    rebalance: ClassicRebalance | Reconciliation
    lead: Leader | None
    """Assigns the partitions; None if the coordinator does."""


def classic_protocol(
    parts: GroupParts,
    assignors: Mapping[str, Assignor],
    request_rejoin: Callable[..., None],
    fetch_cluster: Callable[[Any], MetadataSnapshot],
) -> GroupProtocol:
    """Create the components of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""
    from ottla.client.consumer.group.classic_rebalance import ClassicRebalance
    from ottla.client.consumer.group.leader import GroupLeader
    from ottla.client.consumer.group.membership.classic_membership import ClassicMembership

    config = parts.config
    heartbeat = Heartbeat(
        interval_ms=config.heartbeat_interval_ms,
        session_timeout_ms=config.session_timeout_ms,
        max_poll_interval_ms=config.max_poll_interval_ms,
    )
    membership = ClassicMembership(config, heartbeat, parts.backoff)
    topics = make_topic_watch(parts, request_rejoin)
    rebalance = ClassicRebalance(parts, membership, topics, assignors, request_rejoin)
    leader = GroupLeader(assignors, rebalance.protocol, fetch_cluster, parts.log)
    warn_of_long_heartbeat_interval(config, parts.log)
    return GroupProtocol(membership, heartbeat, topics, rebalance, leader.assign)


def consumer_protocol(parts: GroupParts, member_id: str) -> GroupProtocol:
    """Create the components of KIP-848. The broker sets the session timeout and the heartbeat interval."""
    from ottla.client.consumer.group.membership.consumer_membership import ConsumerMembership
    from ottla.client.consumer.group.reconciliation import Reconciliation

    config = parts.config
    heartbeat = Heartbeat(
        interval_ms=config.heartbeat_interval_ms,
        session_timeout_ms=FOREVER,
        max_poll_interval_ms=config.max_poll_interval_ms,
    )
    membership = ConsumerMembership(config, heartbeat, parts.backoff, member_id)
    topics = make_topic_watch(parts, ignore_rejoin_request)
    rebalance = Reconciliation(parts, membership, topics)
    return GroupProtocol(membership, heartbeat, topics, rebalance, None)


def make_topic_watch(parts: GroupParts, request_rejoin: Callable[..., None]) -> TopicWatch:
    """Create the watch of subscribed topics."""
    excludes = parts.config.exclude_internal_topics
    return TopicWatch(parts.subscriptions, parts.metadata, request_rejoin, exclude_internal=excludes)


def ignore_rejoin_request(reason: str, *, resubscribed: bool = False) -> None:
    """Do nothing: the coordinator detects changes itself."""


def warn_of_long_heartbeat_interval(config: ConsumerConfig, log: logging.LoggerAdapter[Any]) -> None:
    """Warn if the heartbeat interval is more than a third of the session timeout."""
    if config.heartbeat_interval_ms * 3 > config.session_timeout_ms:
        log.warning(
            "heartbeat.interval.ms = %d is more than a third of session.timeout.ms = %d: after two lost heartbeats "
            "this member loses its partitions; lower the interval, or raise the timeout",
            config.heartbeat_interval_ms,
            config.session_timeout_ms,
        )

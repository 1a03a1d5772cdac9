"""The two protocols of consumer groups, each as the parts that are its own: who is a member, and what a rebalance is."""

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
    from ottla.client.metadata.cluster import Cluster


class GroupProtocol(Struct, frozen=True):
    membership: Membership
    heartbeat: Heartbeat
    topics: TopicWatch
    rebalance: ClassicRebalance | Reconciliation
    lead: Leader | None
    """Shares the partitions out; None where the coordinator does."""


def classic_protocol(
    parts: GroupParts,
    assignors: Mapping[str, Assignor],
    request_rejoin: Callable[..., None],
    cluster_of: Callable[[Any], Cluster],
) -> GroupProtocol:
    """JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""
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
    topics = watch(parts, request_rejoin)
    rebalance = ClassicRebalance(parts, membership, topics, assignors, request_rejoin)
    leader = GroupLeader(assignors, rebalance.protocol, cluster_of, parts.log)
    complain_of_rare_heartbeats(config, parts.log)
    return GroupProtocol(membership, heartbeat, topics, rebalance, leader.lead)


def consumer_protocol(parts: GroupParts, member_id: str) -> GroupProtocol:
    """ConsumerGroupHeartbeat (KIP-848). The session and the interval of the heartbeats are the broker's to say."""
    from ottla.client.consumer.group.membership.consumer_membership import ConsumerMembership
    from ottla.client.consumer.group.reconciliation import Reconciliation

    config = parts.config
    heartbeat = Heartbeat(
        interval_ms=config.heartbeat_interval_ms,
        session_timeout_ms=FOREVER,
        max_poll_interval_ms=config.max_poll_interval_ms,
    )
    membership = ConsumerMembership(config, heartbeat, parts.backoff, member_id)
    topics = watch(parts, unconcerned)
    rebalance = Reconciliation(parts, membership, topics)
    return GroupProtocol(membership, heartbeat, topics, rebalance, None)


def watch(parts: GroupParts, request_rejoin: Callable[..., None]) -> TopicWatch:
    """Who looks at the topics."""
    excludes = parts.config.exclude_internal_topics
    return TopicWatch(parts.subscriptions, parts.metadata, request_rejoin, exclude_internal=excludes)


def unconcerned(reason: str, *, resubscribed: bool = False) -> None:
    """The coordinator sees for itself when to share out anew."""


def complain_of_rare_heartbeats(config: ConsumerConfig, log: logging.LoggerAdapter[Any]) -> None:
    """Warn of settings that work on a good day."""
    if config.heartbeat_interval_ms * 3 > config.session_timeout_ms:
        log.warning(
            "heartbeat.interval.ms = %d is more than a third of session.timeout.ms = %d: two lost heartbeats cost "
            "this member its partitions; lower it, or raise the session's",
            config.heartbeat_interval_ms,
            config.session_timeout_ms,
        )

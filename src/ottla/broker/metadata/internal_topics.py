"""Replication factor and configs of the internal topics for groups, transactions and share groups. Pure.

A factor that the settings give is requested as it is, and the controller rejects it if there are too few brokers, as in Kafka. By
default it is three, or the number of brokers that accept replicas if there are fewer. Brokers that are unavailable for a moment count:
otherwise the topic would have too few replicas for the rest of the cluster's life (the problem of KIP-115).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ottla.broker.settings.cluster_config import ClusterConfig
from ottla.coordination.cluster.registration import BrokerRegistration
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from ottla.protocol.schema import replace

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
COPIES = {
    CONSUMER_OFFSETS: "offsets_topic_replication_factor",
    TRANSACTION_STATE: "transaction_state_log_replication_factor",
    SHARE_GROUP_STATE: "share_coordinator_state_topic_replication_factor",
}
"""The setting for the replication factor of each topic."""
MIN_ISR = {
    TRANSACTION_STATE: "transaction_state_log_min_isr",
    SHARE_GROUP_STATE: "share_coordinator_state_topic_min_isr",
}
"""The setting for `min.insync.replicas` of those topics that have one."""


def make_compacted_topic(name: str, partitions: int, segment_bytes: int) -> CreatableTopic:
    """Return the request for a compacted internal topic."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfig("cleanup.policy", "compact"),
            CreatableTopicConfig("segment.bytes", str(segment_bytes)),
        ],
    )


def pruned(name: str, partitions: int, segment_bytes: int) -> CreatableTopic:
    """Return the request for an internal topic of which its coordinator deletes old records."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfig("cleanup.policy", "delete"),
            CreatableTopicConfig("compression.type", "uncompressed"),
            CreatableTopicConfig("segment.bytes", str(segment_bytes)),
            CreatableTopicConfig("retention.ms", "-1"),
        ],
    )


def in_cluster(
    topic: CreatableTopic, config: ClusterConfig, given: Collection[str], brokers: Iterable[BrokerRegistration]
) -> CreatableTopic:
    """Return the request with its replication factor; `given` are the settings that were set explicitly."""
    setting = COPIES.get(topic.name)
    if setting is None:
        return replace(topic, replication_factor=-1)
    copies: int = getattr(config, setting)
    if setting not in given:
        copies = max(1, min(copies, sum(each.has_open_directory for each in brokers)))
    configs = [*topic.configs]
    # With two replicas, one in sync is all there is while a broker restarts.
    if (min_isr := MIN_ISR.get(topic.name)) is not None:
        least: int = getattr(config, min_isr)
        if min_isr in given or copies > least:
            configs.append(CreatableTopicConfig("min.insync.replicas", str(least)))
    return replace(topic, replication_factor=copies, configs=configs)

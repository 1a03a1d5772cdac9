"""The topics in which brokers keep what groups and transactions are at: how many copies they get in a cluster, and with what configs. Pure.

What somebody says is asked for, and refused where there are too few brokers, as by Kafka. Where nobody says anything it is three copies,
or as many as the cluster has brokers that take some: a cluster that loses a node keeps its groups. Who is away for a moment is one of them:
a topic that was made without it would have a copy too few for as long as there is a cluster (what Kafka's KIP-115 is about).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ottla.broker.settings.cluster_config import ClusterConfig
from ottla.coordination.cluster.registration import Registration
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from ottla.protocol.schema import replace

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
COPIES = {
    CONSUMER_OFFSETS: "offsets_topic_replication_factor",
    TRANSACTION_STATE: "transaction_state_log_replication_factor",
}
"""Topic → the setting that says how many copies it gets."""
MIN_ISR = "transaction_state_log_min_isr"


def compacted(name: str, partitions: int, segment_bytes: int) -> CreatableTopic:
    """A topic of the broker's own, in which the last record of a key counts."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfig("cleanup.policy", "compact"),
            CreatableTopicConfig("segment.bytes", str(segment_bytes)),
        ],
    )


def in_cluster(
    topic: CreatableTopic, config: ClusterConfig, given: Collection[str], brokers: Iterable[Registration]
) -> CreatableTopic:
    """The same topic as the controllers are asked for it; `given` are the settings that somebody gave."""
    setting = COPIES.get(topic.name)
    if setting is None:
        return replace(topic, replication_factor=-1)
    copies: int = getattr(config, setting)
    if setting not in given:
        copies = max(1, min(copies, sum(each.is_open for each in brokers)))
    configs = [*topic.configs]
    # One copy of two in sync is all there is while a broker starts anew.
    if topic.name == TRANSACTION_STATE and (MIN_ISR in given or copies > config.transaction_state_log_min_isr):
        configs.append(CreatableTopicConfig("min.insync.replicas", str(config.transaction_state_log_min_isr)))
    return replace(topic, replication_factor=copies, configs=configs)

"""Look up the leaders of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.client.admin.admin_api_driver import AdminApiDriver, Lookup
from ottla.client.consumer.topic_metadata_fetcher import TopicMetadataFetcher
from ottla.client.runtime.deadline import Deadline
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import Node, TopicPartition


def leader_lookup(metadata: TopicMetadataFetcher, partitions: Iterable[TopicPartition]) -> Lookup[TopicPartition]:
    """Return a lookup that requests current metadata in each round."""
    topics = sorted({tp.topic for tp in partitions})

    def lookup(
        driver: AdminApiDriver, keys: list[TopicPartition], deadline: Deadline
    ) -> Mapping[TopicPartition, Node | KafkaError]:
        nodes = driver.brokers(deadline)
        found = driver.client.run(metadata.fetch_topics(topics, deadline.at - driver.clock.monotonic()))
        known = {
            TopicPartition(info.name, part.partition): part.leader
            for info in found.values()
            for part in info.partitions
        }
        return {tp: find_leader(tp, known, nodes) for tp in keys}

    return lookup


def find_leader(
    tp: TopicPartition, known: Mapping[TopicPartition, int], nodes: Mapping[int, Node]
) -> Node | KafkaError:
    """Return the broker that leads a partition."""
    if tp not in known:
        return error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {tp}")
    return nodes.get(known[tp]) or error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {tp} has no leader")

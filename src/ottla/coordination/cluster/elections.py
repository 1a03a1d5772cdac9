"""Who leads a partition that nobody leads: the broker that is there, if it has a copy. Pure.

Ottla's own partitions always have their leader. Those of a Kafka that was stopped do not: it ends leading before it goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordination.cluster.records import NO_LEADER, PartitionChangeRecord
from ottla.coordination.cluster.topic import Topic


def elections(topics: Iterable[Topic], node_id: int) -> list[PartitionChangeRecord]:
    """What makes `node_id` the leader of what it may lead."""
    return [
        PartitionChangeRecord(
            state.index,
            topic.topic_id,
            leader=node_id,
            isr=None if state.isr else (node_id,),
            eligible_leader_replicas=() if state.elr else None,
            last_known_elr=() if state.elr else None,
        )
        for topic in topics
        for state in topic.partitions
        if state.leader == NO_LEADER and node_id in (state.isr or state.elr)
    ]

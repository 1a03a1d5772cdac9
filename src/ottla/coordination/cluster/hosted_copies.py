"""The replicas of a topic that a broker hosts, and the changes when the topic changes. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.cluster.topic import ClusterTopic, PartitionState


class HostedChanges(NamedTuple):
    """The work of one broker after a change of a topic."""

    hosted: list[PartitionState]
    """The partitions to lead or follow with this state."""
    removed: list[int]
    """The indexes of the partitions that the broker does not host any more."""


def compare_hosted_partitions(before: ClusterTopic | None, after: ClusterTopic | None, broker: int) -> HostedChanges:
    """Return the changes for one broker.

    A topic that is deleted and created again has another id and is another topic.
    """
    assert before is None or after is None or before.topic_id == after.topic_id
    had, has = list_hosted_partitions(before, broker), list_hosted_partitions(after, broker)
    configured = before is not None and after is not None and before.configs != after.configs
    taken = [state for index, state in has.items() if configured or had.get(index) != state]
    return HostedChanges(taken, [index for index in had if index not in has])


def list_hosted_partitions(topic: ClusterTopic | None, broker: int) -> dict[int, PartitionState]:
    """Return the partitions with a replica on the broker, by index."""
    return {} if topic is None else {state.index: state for state in topic.partitions if broker in state.replicas}

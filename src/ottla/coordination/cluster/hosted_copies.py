"""Which partitions of a topic a broker has to have a copy of, and what a change of the topic means for it. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ottla.coordination.cluster.topic import PartitionState, Topic


class CopyChanges(NamedTuple):
    """What one broker has to do when a topic is another than it was."""

    taken: list[PartitionState]
    """To be led or followed as they say now."""
    given_up: list[int]
    """Of which others have the copies now, or nobody any more."""


def changes(before: Topic | None, after: Topic | None, broker: int) -> CopyChanges:
    """What is new for a broker; a topic that is deleted and made again is two topics, by their ids."""
    assert before is None or after is None or before.topic_id == after.topic_id
    had, has = copies_of(before, broker), copies_of(after, broker)
    configured = before is not None and after is not None and before.configs != after.configs
    taken = [state for index, state in has.items() if configured or had.get(index) != state]
    return CopyChanges(taken, [index for index in had if index not in has])


def copies_of(topic: Topic | None, broker: int) -> dict[int, PartitionState]:
    """The partitions that a broker has a copy of, by their index."""
    return {} if topic is None else {state.index: state for state in topic.partitions if broker in state.replicas}

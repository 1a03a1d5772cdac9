"""Consumer groups as an admin sees them.

Values only.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import Node, TopicPartition


class GroupListing(NamedTuple):
    """A group's name and condition."""

    group_id: str
    protocol_type: str
    """`consumer`, or nothing where somebody just keeps offsets."""
    state: str
    """Kafka's names: Empty, PreparingRebalance, CompletingRebalance, Stable, Dead …; nothing where the broker is old."""
    type: str
    """Classic or Consumer; nothing where the broker is old."""

    @property
    def is_simple_consumer_group(self) -> bool:
        """Whether it has no members, only offsets."""
        return not self.protocol_type


class MemberDescription(NamedTuple):
    """A member and what it was given."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    """Nothing while a rebalance goes on."""
    target_assignment: tuple[TopicPartition, ...] | None = None
    """What it is to have in the end; None in classic groups, where that is the same."""
    member_epoch: int | None = None
    """None in classic groups."""


class ConsumerGroupDescription(NamedTuple):
    """A group with its members."""

    group_id: str
    protocol_type: str
    partition_assignor: str
    """Nothing unless the group is stable."""
    type: str
    state: str
    coordinator: Node
    members: tuple[MemberDescription, ...]
    group_epoch: int | None = None
    """None in classic groups, as the next."""
    target_assignment_epoch: int | None = None
    authorized_operations: frozenset[str] | None = None
    """What this client's user may do with it, `read` and `delete` for instance; None unless it was asked for."""

    @property
    def is_simple_consumer_group(self) -> bool:
        """Whether it has no members, only offsets."""
        return not self.protocol_type

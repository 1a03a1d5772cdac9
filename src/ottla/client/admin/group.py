"""Consumer groups as an admin sees them. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.model import Node, TopicPartition


class GroupListing(NamedTuple):
    """A group's name and state."""

    group_id: str
    protocol_type: str
    """`consumer`, or "" for a group without members that only stores offsets."""
    state: str
    """Kafka's names: Empty, PreparingRebalance, CompletingRebalance, Stable, Dead …; "" if the broker is too old to
    report it.
    """
    type: str
    """Classic or Consumer; "" if the broker is too old to report it."""

    @property
    def is_simple_consumer_group(self) -> bool:
        """True if the group has no members, only offsets."""
        return not self.protocol_type


class MemberDescription(NamedTuple):
    """A member and its assignment."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    """Empty during a rebalance."""
    target_assignment: tuple[TopicPartition, ...] | None = None
    """The assignment after the rebalance; None in classic groups, where it does not differ."""
    member_epoch: int | None = None
    """None in classic groups."""


class ConsumerGroupDescription(NamedTuple):
    """A group with its members."""

    group_id: str
    protocol_type: str
    partition_assignor: str
    """Empty unless the group is stable."""
    type: str
    state: str
    coordinator: Node
    members: tuple[MemberDescription, ...]
    group_epoch: int | None = None
    """None in classic groups, as is `target_assignment_epoch`."""
    target_assignment_epoch: int | None = None
    authorized_operations: frozenset[str] | None = None
    """The operations that the client's user may perform on the group, such as `read` and `delete`; None if not
    requested.
    """

    @property
    def is_simple_consumer_group(self) -> bool:
        """True if the group has no members, only offsets."""
        return not self.protocol_type

    def _repr_html_(self) -> str:
        """Return the members and their partitions as a table, for notebooks."""
        from ottla.client.interface.html_tables import render_table

        rows = ((m.client_id, m.host, m.member_id, ", ".join(map(str, m.assignment))) for m in self.members)
        count = len(self.members)
        title = f"group {self.group_id}: {self.state}, {count} member{'' if count == 1 else 's'}"
        return render_table(title, ("client", "host", "member", "partitions"), rows, count)


class ShareMemberDescription(NamedTuple):
    """A member of a share group and its assignment."""

    member_id: str
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    """Several members may have the same partition."""
    member_epoch: int
    subscribed_topics: tuple[str, ...] = ()
    rack_id: str | None = None


class ShareGroupDescription(NamedTuple):
    """A share group with its members (KIP-932)."""

    group_id: str
    state: str
    """Empty, Stable or Dead."""
    coordinator: Node
    members: tuple[ShareMemberDescription, ...]
    group_epoch: int
    target_assignment_epoch: int
    partition_assignor: str
    authorized_operations: frozenset[str] | None = None
    """The operations that the client's user may perform on the group; None if not requested."""


class StreamsTasks(NamedTuple):
    """The tasks of a member of a streams group by role, each as (subtopology id, partition)."""

    active: tuple[tuple[str, int], ...]
    standby: tuple[tuple[str, int], ...] = ()
    warmup: tuple[tuple[str, int], ...] = ()


class StreamsMemberDescription(NamedTuple):
    """A member of a streams group and its tasks."""

    member_id: str
    client_id: str
    host: str
    process_id: str
    """The process of the member, which may run several."""
    member_epoch: int
    assignment: StreamsTasks
    target_assignment: StreamsTasks
    topology_epoch: int = 0
    group_instance_id: str | None = None
    rack_id: str | None = None


class StreamsSubtopology(NamedTuple):
    """A part of the topology of a streams group. It has a task for each partition of its source topics."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    """The topics of other applications that it reads."""
    repartition_source_topics: tuple[str, ...] = ()
    """The internal topics that it reads."""
    repartition_sink_topics: tuple[str, ...] = ()
    """The internal topics that it writes for other subtopologies."""
    state_changelog_topics: tuple[str, ...] = ()
    """The internal topics with the changes of its state stores."""

    @property
    def read_topics(self) -> tuple[str, ...]:
        """The topics of which the application commits offsets."""
        return (*self.source_topics, *self.repartition_source_topics)


class StreamsTopologyNode(NamedTuple):
    """A node of the topology of Kafka Streams."""

    name: str
    kind: str
    """source, processor or sink."""
    source_topics: tuple[str, ...] = ()
    """The topics that a source reads; empty if they are determined at run time."""
    sink_topic: str | None = None
    """The topic that a sink writes; None if each record determines it."""
    stores: tuple[str, ...] = ()
    """The state stores of a processor."""
    successors: tuple[str, ...] = ()
    """The names of the nodes that receive its records."""


class StreamsTopologyDescription(NamedTuple):
    """The topology of an application, as `Topology.describe()` of Kafka Streams returns it (KIP-1331)."""

    subtopologies: Mapping[str, tuple[StreamsTopologyNode, ...]]
    """Subtopology id → its nodes."""
    global_stores: tuple[tuple[StreamsTopologyNode, StreamsTopologyNode], ...] = ()
    """The source and the processor of each global store."""


class StreamsGroupDescription(NamedTuple):
    """A streams group with its members (KIP-1071)."""

    group_id: str
    state: str
    """Empty, NotReady, Assigning, Reconciling, Stable or Dead."""
    coordinator: Node
    members: tuple[StreamsMemberDescription, ...]
    group_epoch: int
    target_assignment_epoch: int
    topology_epoch: int
    authorized_operations: frozenset[str] | None = None
    """The operations that the client's user may perform on the group; None if not requested."""
    subtopologies: tuple[StreamsSubtopology, ...] = ()
    topology_description: StreamsTopologyDescription | None = None
    """None if it was not requested, or the broker has none."""


class SharePartitionOffsetInfo(NamedTuple):
    """The start offset of a share group in a partition: all records before it are processed."""

    start_offset: int
    leader_epoch: int
    lag: int | None
    """The number of records that are still to be processed; None if unknown (KIP-1226)."""

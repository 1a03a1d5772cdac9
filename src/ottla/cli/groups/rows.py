"""Rows of `ottla groups` under Kafka's column names. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin import (
        ConsumerGroupDescription,
        MemberDescription,
        ShareGroupDescription,
        SharePartitionOffsetInfo,
        StreamsGroupDescription,
        StreamsTopologyDescription,
        StreamsTopologyNode,
    )
    from ottla.client.work.state.work_status import WorkStatus
    from ottla.model import OffsetAndMetadata, TopicPartition

Row = tuple[Any, ...]
OFFSETS = (
    "GROUP",
    "TOPIC",
    "PARTITION",
    "CURRENT-OFFSET",
    "LOG-END-OFFSET",
    "LAG",
    "CONSUMER-ID",
    "HOST",
    "CLIENT-ID",
)
OFFSETS_VERBOSE = (*OFFSETS[:3], "LEADER-EPOCH", *OFFSETS[3:])
WORK = (*OFFSETS[:3], "RUNNING", "WAITING", "RETRYING", "DEAD-LETTERS", "OLDEST (S)", "CONSUMER-ID")
"""The columns of `ottla.work`; OLDEST is the age of the oldest unfinished record."""
MEMBERS = ("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS")
MEMBERS_VERBOSE = (*MEMBERS, "CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT")
STATE = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
STATE_VERBOSE = (*STATE[:4], "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS")
SHARE_OFFSETS = ("GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG")
SHARE_OFFSETS_VERBOSE = (*SHARE_OFFSETS[:3], "LEADER-EPOCH", *SHARE_OFFSETS[3:])
SHARE_MEMBERS = ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "ASSIGNMENT")
SHARE_MEMBERS_VERBOSE = (*SHARE_MEMBERS, "MEMBER-EPOCH")
STREAMS_OFFSETS = (*OFFSETS[:6], "TASK", "MEMBER", "HOST", "CLIENT-ID")
STREAMS_OFFSETS_VERBOSE = (*STREAMS_OFFSETS[:3], "LEADER-EPOCH", *STREAMS_OFFSETS[3:])
STREAMS_MEMBERS = ("GROUP", "MEMBER", "PROCESS", "HOST", "CLIENT-ID", "ACTIVE-TASKS", "STANDBY-TASKS", "WARM-UP-TASKS")
STREAMS_MEMBERS_VERBOSE = (*STREAMS_MEMBERS, "MEMBER-EPOCH", "TARGET-ACTIVE-TASKS", "TARGET-STANDBY-TASKS")
SHARE_STATE = ("GROUP", "COORDINATOR (ID)", "STATE", "#MEMBERS")
SHARE_STATE_VERBOSE = (*SHARE_STATE[:3], "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS")


def offset_rows(
    group: ConsumerGroupDescription,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    ends: Mapping[TopicPartition, int],
    *,
    verbose: bool = False,
) -> list[Row]:
    """Return one row per committed or assigned partition, and one per member without an assignment."""
    owners = owners_of(group)
    rows = [
        partition_row(group.group_id, tp, committed.get(tp), ends.get(tp), owners.get(tp), verbose)
        for tp in sorted({*committed, *owners})
    ]
    nothing = (None,) * (6 if verbose else 5)
    idle = (member for member in group.members if not member.assignment)
    return [*rows, *((group.group_id, *nothing, m.member_id, m.host, m.client_id) for m in idle)]


def partition_row(
    group_id: str,
    tp: TopicPartition,
    committed: OffsetAndMetadata | None,
    end: int | None,
    owner: MemberDescription | None,
    verbose: bool,
) -> Row:
    who = (None, None, None) if owner is None else (owner.member_id, owner.host, owner.client_id)
    return (group_id, tp.topic, tp.partition, *offset_numbers(committed, end, verbose=verbose), *who)


def offset_numbers(committed: OffsetAndMetadata | None, end: int | None, *, verbose: bool) -> Row:
    """Return the columns from the leader epoch, if verbose, to the lag."""
    offset = None if committed is None else committed.offset
    epoch = None if committed is None or committed.leader_epoch < 0 else committed.leader_epoch
    lag = None if offset is None or end is None else end - offset
    return (*((epoch,) if verbose else ()), offset, end, lag)


def work_rows(group: ConsumerGroupDescription, statuses: Mapping[TopicPartition, WorkStatus], now: float) -> list[Row]:
    """Return one row per partition of a work loop. `now` is the time in seconds since 1970."""
    owners = owners_of(group)
    return [
        (
            group.group_id,
            tp.topic,
            tp.partition,
            status.running,
            status.waiting,
            status.retrying,
            status.dead,
            age_of(status.oldest, now),
            owners[tp].member_id if tp in owners else None,
        )
        for tp, status in sorted(statuses.items())
    ]


def age_of(timestamp: int, now: float) -> int | None:
    """Return the age of a timestamp in milliseconds, in whole seconds; None without a timestamp."""
    return max(round(now - timestamp / 1000), 0) if timestamp else None


def owners_of(group: ConsumerGroupDescription) -> dict[TopicPartition, MemberDescription]:
    return {tp: member for member in group.members for tp in member.assignment}


def member_rows(group: ConsumerGroupDescription, *, verbose: bool = False) -> list[Row]:
    """Return one row per member."""
    rows: list[Row] = []
    for m in group.members:
        row: Row = (group.group_id, m.member_id, m.group_instance_id, m.host, m.client_id, len(m.assignment))
        if verbose:
            target = None if m.target_assignment is None else format_partitions(m.target_assignment)
            row = (*row, m.member_epoch, format_partitions(m.assignment), group.target_assignment_epoch, target)
        rows.append(row)
    return rows


def state_row(group: ConsumerGroupDescription, *, verbose: bool = False) -> Row:
    """Return the row of the group."""
    where = f"{group.coordinator} ({group.coordinator.node_id})"
    epochs = (group.group_epoch, group.target_assignment_epoch) if verbose else ()
    return (group.group_id, where, group.partition_assignor or None, group.state, *epochs, len(group.members))


def share_offset_rows(
    group: ShareGroupDescription, offsets: Mapping[TopicPartition, SharePartitionOffsetInfo], *, verbose: bool = False
) -> list[Row]:
    """Return one row per partition with a start offset, or assigned to a member."""
    rows: list[Row] = []
    for tp in sorted({*offsets, *(tp for member in group.members for tp in member.assignment)}):
        found = offsets.get(tp)
        start, epoch, lag = (None, None, None) if found is None else found
        rows.append((group.group_id, tp.topic, tp.partition, *((epoch,) if verbose else ()), start, lag))
    return rows


def share_member_rows(group: ShareGroupDescription, *, verbose: bool = False) -> list[Row]:
    """Return one row per member of a share group."""
    return [
        (
            group.group_id,
            m.member_id,
            m.host,
            m.client_id,
            len(m.assignment),
            format_partitions(m.assignment),
            *((m.member_epoch,) if verbose else ()),
        )
        for m in group.members
    ]


def streams_offset_rows(
    group: StreamsGroupDescription,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    ends: Mapping[TopicPartition, int],
    *,
    verbose: bool = False,
) -> list[Row]:
    """Return one row per committed partition or partition of a task, with the member that has the active task."""
    rows: list[Row] = []
    subtopologies = {topic: each.subtopology_id for each in group.subtopologies for topic in each.read_topics}
    owners = {task: member for member in group.members for task in member.assignment.active}
    for tp in sorted(streams_partitions(group, committed)):
        subtopology = subtopologies.get(tp.topic)
        task = None if subtopology is None else f"{subtopology}_{tp.partition}"
        owner = None if subtopology is None else owners.get((subtopology, tp.partition))
        who = (None, None, None) if owner is None else (owner.member_id, owner.host, owner.client_id)
        numbers = offset_numbers(committed.get(tp), ends.get(tp), verbose=verbose)
        rows.append((group.group_id, tp.topic, tp.partition, *numbers, task, *who))
    return rows


def streams_partitions(group: StreamsGroupDescription, committed: Iterable[TopicPartition]) -> set[TopicPartition]:
    """Return the committed partitions and those that the active tasks read."""
    from ottla.model import TopicPartition  # imported late to start faster

    topics = {each.subtopology_id: each.read_topics for each in group.subtopologies}
    active = (task for member in group.members for task in member.assignment.active)
    read = {TopicPartition(topic, number) for subtopology, number in active for topic in topics.get(subtopology, ())}
    return {*committed, *read}


def streams_member_rows(group: StreamsGroupDescription, *, verbose: bool = False) -> list[Row]:
    """Return one row per member of a streams group."""
    return [
        (
            group.group_id,
            m.member_id,
            m.process_id,
            m.host,
            m.client_id,
            *map(format_tasks, m.assignment),
            *(
                (m.member_epoch, format_tasks(m.target_assignment.active), format_tasks(m.target_assignment.standby))
                if verbose
                else ()
            ),
        )
        for m in group.members
    ]


def topology_lines(topology: StreamsTopologyDescription) -> list[str]:
    """Return the lines of `Topology.describe()` of Kafka Streams."""
    lines = ["Topologies:"]
    for subtopology, nodes in topology.subtopologies.items():
        lines.append(f"   Sub-topology: {subtopology}")
        for node in nodes:
            lines += node_lines(node, [each.name for each in nodes if node.name in each.successors])
    for source, processor in topology.global_stores:
        lines.append(f"   Global store: {', '.join(processor.stores)}")
        lines += [*node_lines(source, []), *node_lines(processor, [source.name])]
    return lines


def node_lines(node: StreamsTopologyNode, predecessors: Sequence[str]) -> list[str]:
    what = {
        "source": f"topics: [{', '.join(node.source_topics)}]",
        "processor": f"stores: [{', '.join(node.stores)}]",
        "sink": f"topic: {node.sink_topic or 'determined by each record'}",
    }.get(node.kind, "")
    lines = [f"    {node.kind.capitalize()}: {node.name} ({what})"]
    if node.kind != "sink":
        lines.append(f"      --> {', '.join(node.successors) or 'none'}")
    if node.kind != "source":
        lines.append(f"      <-- {', '.join(predecessors) or 'none'}")
    return lines


def format_tasks(tasks: Iterable[tuple[str, int]]) -> str:
    """Return tasks by subtopology: `0:0,1; 1:0`."""
    found: dict[str, list[str]] = {}
    for subtopology, partition in sorted(tasks):
        found.setdefault(subtopology, []).append(str(partition))
    return "; ".join(f"{subtopology}:{','.join(numbers)}" for subtopology, numbers in found.items())


def share_state_row(group: ShareGroupDescription | StreamsGroupDescription, *, verbose: bool = False) -> Row:
    """Return the row of a share group or a streams group."""
    where = f"{group.coordinator} ({group.coordinator.node_id})"
    epochs = (group.group_epoch, group.target_assignment_epoch) if verbose else ()
    return (group.group_id, where, group.state, *epochs, len(group.members))


def format_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions in the notation of Kafka's tool: `flights:0,1;weather:0`."""
    topics: dict[str, list[str]] = {}
    for tp in sorted(partitions):
        topics.setdefault(tp.topic, []).append(str(tp.partition))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items())


def columns_of(plain: Sequence[str], full: Sequence[str], *, verbose: bool) -> Sequence[str]:
    return full if verbose else plain

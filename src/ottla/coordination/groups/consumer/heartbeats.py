"""ConsumerGroupHeartbeat: a member joins, stays, says what it wants and has, and hears what it may have."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from ottla.coordination.groups.consumer.draft import REVOCATION, ConsumerDraft
from ottla.coordination.groups.consumer.events import ConsumerHeartbeat
from ottla.coordination.groups.consumer.leaving import leave
from ottla.coordination.groups.consumer.member import (
    LEAVING,
    LEAVING_FOR_A_WHILE,
    ConsumerMember,
    MemberState,
    PartitionEpochs,
    TopicIdPartition,
    by_topic,
)
from ottla.coordination.groups.consumer.notes import MemberJoined, MemberMoved
from ottla.coordination.groups.consumer.reconciling import Goal, reconciled
from ottla.coordination.groups.consumer.refusal import Refused
from ottla.coordination.groups.consumer.subscribing import subscribe
from ottla.coordination.groups.consumer.targets import update_target_assignment
from ottla.coordination.groups.consumer.validation import (
    check_epoch,
    check_room,
    identified,
)
from ottla.errors import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


def heartbeat(draft: ConsumerDraft, event: ConsumerHeartbeat) -> None:
    """What is to be done about a heartbeat; Refused where nothing is."""
    if event.request.member_epoch in (LEAVING, LEAVING_FOR_A_WHILE):
        leave(draft, event)
    else:
        stay(draft, event)


def stay(draft: ConsumerDraft, event: ConsumerHeartbeat) -> None:
    """A member that joins or goes on."""
    request = event.request
    member_id = request.member_id or event.fresh_id
    check_room(draft.group, request.member_id, draft.config.consumer_max_size)
    owned = topic_id_partitions(request.topic_partitions)
    before = joining(draft, request, member_id) if request.member_epoch == 0 else staying(draft, request, owned)
    # From here on the draft's group has the member, and perhaps a new epoch for which the target is worked out next.
    is_changed = subscribe(draft, before, updated_member(before, event), event.sees)
    member = reconcile_member(draft, member_id, owned, is_changed=is_changed)
    draft.begin_session(member)
    # A heartbeat that says everything comes from a client that joins, has lost an answer, or does not know whether it has:
    # it is told its assignment.
    is_full = request.rebalance_timeout_ms != -1 and owned is not None and wishes_something(request)
    is_told = is_full or before.assigned.keys() != member.assigned.keys()
    interval_ms = draft.config.consumer_heartbeat_interval_ms
    draft.reply(event.ticket, answer(member, interval_ms, assignment_of(member.assigned) if is_told else None))


def wishes_something(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether it says what it reads."""
    return request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None


def topic_id_partitions(partitions: Collection[TopicPartitions] | None) -> list[TopicIdPartition] | None:
    if partitions is None:
        return None
    return [(each.topic_id, partition) for each in partitions for partition in each.partitions]


def staying(
    draft: ConsumerDraft, request: ConsumerGroupHeartbeatRequest, owned: Collection[TopicIdPartition] | None
) -> ConsumerMember:
    """A member that says to be in the group already."""
    member = identified(draft.group, request.member_id, request.instance_id)
    check_epoch(member, request.member_epoch, owned)
    return member


def joining(draft: ConsumerDraft, request: ConsumerGroupHeartbeatRequest, member_id: str) -> ConsumerMember:
    """A member that comes, or comes back after it was fenced; a static one takes its old place."""
    # Epoch 0 means to join. Somebody known may do so too: it was fenced, or its first answer was lost.
    old = draft.group.instance(request.instance_id)
    if old is not None:
        if old.classic is None and old.epoch != LEAVING_FOR_A_WHILE:
            raise Refused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"instance id {request.instance_id} is {old.member_id}'s, which has not left: {member_id} cannot have it",
            )
        return replaced(draft, old, member_id, "consumer")
    known = draft.group.members.get(member_id)
    if known is None:
        draft.note(MemberJoined(draft.group.group_id, member_id, request.instance_id, "consumer"))
    return known or ConsumerMember(member_id)


def replaced(draft: ConsumerDraft, old: ConsumerMember, member_id: str, protocol: str) -> ConsumerMember:
    """A static member under its new id, in its old place, with what it had; it comes by `protocol`."""
    target = draft.group.target(old.member_id)
    member = replace(old, member_id=member_id, epoch=0, previous_epoch=0)
    # Removed and put anew, as its id is the key of its records.
    draft.remove(old.member_id)
    draft.put(member)
    draft.set_target(member_id, target)
    assert member.instance_id is not None
    draft.note(MemberJoined(draft.group.group_id, member_id, member.instance_id, protocol))
    return member


def updated_member(member: ConsumerMember, event: ConsumerHeartbeat) -> ConsumerMember:
    """A member with what its heartbeat says; what is left out is as it was."""
    request = event.request
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topics=member.topics if names is None else frozenset(names),
        regex=member.regex if regex is None else regex,
        client_id=event.client_id,
        client_host=event.client_host,
        classic=None,
    )


def reconcile_member(
    draft: ConsumerDraft, member_id: str, owned: Collection[TopicIdPartition] | None, *, is_changed: bool
) -> ConsumerMember:
    """Bring a member a step further on its way."""
    update_target_assignment(draft)
    group = draft.group
    member = group.members[member_id]
    # The common case of a quiet group: nothing is computed, nothing written.
    if member.is_reconciled_to(group.assignment_epoch) and not is_changed:
        return member
    topics = draft.image.ids_of(group.names_of(member))
    goal = Goal(group.assignment_epoch, group.target(member_id), topics, group.owners, owned, is_changed)
    moved = reconciled(member, goal)
    if moved != member:
        draft.put(moved)
        note_moved(draft, moved)
    return moved


def note_moved(draft: ConsumerDraft, member: ConsumerMember) -> None:
    """A member that is to give something back has its rebalance timeout for it."""
    sizes = len(member.assigned), len(member.revoking)
    draft.note(MemberMoved(draft.group.group_id, member.member_id, member.epoch, member.state.name, *sizes))
    # Such a member has no list of what it owns in its heartbeats; REJOIN watches over it instead.
    if member.classic is not None:
        return
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        draft.schedule(REVOCATION, member.rebalance_timeout_ms, member.member_id)
    else:
        draft.cancel(member.member_id, REVOCATION)


def answer(member: ConsumerMember, interval_ms: int, assignment: Assignment | None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment,
    )


def assignment_of(owned: PartitionEpochs) -> Assignment:
    return Assignment([TopicPartitions(topic_id, partitions) for topic_id, partitions in by_topic(owned).items()])

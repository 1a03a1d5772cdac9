"""ConsumerGroupHeartbeat: a member joins or stays, sends its subscription and owned partitions, and receives its assignment."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from ottla.coordination.groups.consumer.draft import REVOCATION, ConsumerDraft
from ottla.coordination.groups.consumer.events import ConsumerHeartbeat
from ottla.coordination.groups.consumer.leaving import handle_leave
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
from ottla.coordination.groups.consumer.reconciling import ReconciliationGoal, advance_to_goal
from ottla.coordination.groups.consumer.refusal import RequestRejected
from ottla.coordination.groups.consumer.subscribing import subscribe
from ottla.coordination.groups.consumer.targets import update_target_assignment
from ottla.coordination.groups.consumer.validation import (
    check_epoch,
    check_group_size,
    find_member,
)
from ottla.errors import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


def heartbeat(draft: ConsumerDraft, event: ConsumerHeartbeat) -> None:
    """Handle a heartbeat. Raise Refused if it is rejected."""
    if event.request.member_epoch in (LEAVING, LEAVING_FOR_A_WHILE):
        handle_leave(draft, event)
    else:
        join_or_stay(draft, event)


def join_or_stay(draft: ConsumerDraft, event: ConsumerHeartbeat) -> None:
    """Handle the heartbeat of a member that joins or stays."""
    request = event.request
    member_id = request.member_id or event.new_member_id
    check_group_size(draft.group, request.member_id, draft.config.consumer_max_size)
    owned = topic_id_partitions(request.topic_partitions)
    before = (
        joining_member(draft, request, member_id)
        if request.member_epoch == 0
        else existing_member(draft, request, owned)
    )
    # From here on the draft's group has the member, and perhaps a new epoch for which the target is worked out next.
    is_changed = subscribe(draft, before, updated_member(before, event), event.sees)
    member = reconcile_member(draft, member_id, owned, is_changed=is_changed)
    draft.start_session(member)
    # A full heartbeat is sent by a client that joins, lost a response, or does not know whether it did. The response has the
    # assignment.
    is_full = request.rebalance_timeout_ms != -1 and owned is not None and has_subscription(request)
    has_assignment = is_full or before.assigned.keys() != member.assigned.keys()
    interval_ms = draft.config.consumer_heartbeat_interval_ms
    draft.reply(
        event.ticket, build_response(member, interval_ms, assignment_of(member.assigned) if has_assignment else None)
    )


def has_subscription(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return True if the request has a subscription."""
    return request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None


def topic_id_partitions(partitions: Collection[TopicPartitions] | None) -> list[TopicIdPartition] | None:
    if partitions is None:
        return None
    return [(each.topic_id, partition) for each in partitions for partition in each.partitions]


def existing_member(
    draft: ConsumerDraft, request: ConsumerGroupHeartbeatRequest, owned: Collection[TopicIdPartition] | None
) -> ConsumerMember:
    """Return the known member of a heartbeat, after a check of its epoch."""
    member = find_member(draft.group, request.member_id, request.instance_id)
    check_epoch(member, request.member_epoch, owned)
    return member


def joining_member(draft: ConsumerDraft, request: ConsumerGroupHeartbeatRequest, member_id: str) -> ConsumerMember:
    """Return the member of a heartbeat with epoch 0: a new one, a fenced one that returns, or a static member in its previous place."""
    # A known member may send epoch 0 too: it was fenced, or lost its first response.
    old = draft.group.instance(request.instance_id)
    if old is not None:
        if old.classic is None and old.epoch != LEAVING_FOR_A_WHILE:
            raise RequestRejected(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"instance id {request.instance_id} is {old.member_id}'s, which has not left: {member_id} cannot have it",
            )
        return replace_static_member(draft, old, member_id, "consumer")
    known = draft.group.members.get(member_id)
    if known is None:
        draft.add_note(MemberJoined(draft.group.group_id, member_id, request.instance_id, "consumer"))
    return known or ConsumerMember(member_id)


def replace_static_member(draft: ConsumerDraft, old: ConsumerMember, member_id: str, protocol: str) -> ConsumerMember:
    """Return a static member under its new member id, in its previous place and with its assignment; it joins with `protocol`."""
    target = draft.group.target(old.member_id)
    member = replace(old, member_id=member_id, epoch=0, previous_epoch=0)
    # Removed and added, because the member id is the key of its records.
    draft.remove_member(old.member_id)
    draft.put_member(member)
    draft.set_target(member_id, target)
    assert member.instance_id is not None
    draft.add_note(MemberJoined(draft.group.group_id, member_id, member.instance_id, protocol))
    return member


def updated_member(member: ConsumerMember, event: ConsumerHeartbeat) -> ConsumerMember:
    """Return a member with the values of its heartbeat; omitted fields are unchanged."""
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
    goal = ReconciliationGoal(group.assignment_epoch, group.target(member_id), topics, group.owners, owned, is_changed)
    moved = advance_to_goal(member, goal)
    if moved != member:
        draft.put_member(moved)
        report_move(draft, moved)
    return moved


def report_move(draft: ConsumerDraft, member: ConsumerMember) -> None:
    """Start the rebalance timeout of a member that has to revoke partitions."""
    sizes = len(member.assigned), len(member.revoking)
    draft.add_note(MemberMoved(draft.group.group_id, member.member_id, member.epoch, member.state.name, *sizes))
    # Such a member has no list of what it owns in its heartbeats; REJOIN watches over it instead.
    if member.classic is not None:
        return
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        draft.schedule(REVOCATION, member.rebalance_timeout_ms, member.member_id)
    else:
        draft.cancel(member.member_id, REVOCATION)


def build_response(
    member: ConsumerMember, interval_ms: int, assignment: Assignment | None
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment,
    )


def assignment_of(owned: PartitionEpochs) -> Assignment:
    return Assignment([TopicPartitions(topic_id, partitions) for topic_id, partitions in by_topic(owned).items()])

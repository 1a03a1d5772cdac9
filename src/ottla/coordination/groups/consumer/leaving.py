"""Members that leave, are removed by an administrator, or have an expired session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ottla.coordination.groups.consumer.draft import FETCH, REJOIN, REVOCATION, SESSION, ConsumerDraft
from ottla.coordination.groups.consumer.events import ConsumerHeartbeat
from ottla.coordination.groups.consumer.member import LEAVING_FOR_A_WHILE, NO_PARTITIONS, ConsumerMember, MemberState
from ottla.coordination.groups.consumer.notes import MemberGone, StaticMemberPaused
from ottla.coordination.groups.consumer.subscribing import begin_epoch
from ottla.coordination.groups.consumer.validation import find_member
from ottla.coordination.groups.events import TimerName
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

REASONS: Mapping[str, str] = {
    SESSION: "the member session expired",
    REVOCATION: "it did not give its partitions back within its rebalance timeout",
    REJOIN: "it did not join again within its rebalance timeout",
    FETCH: "it did not fetch its partitions in time",
}
"""The reason for which a member is removed, by the kind of timer that expired."""


def handle_leave(draft: ConsumerDraft, event: ConsumerHeartbeat) -> None:
    """Handle a heartbeat by which a member leaves. A static member may leave temporarily and keeps its place until its session expires."""
    request = event.request
    member = find_member(draft.group, request.member_id, request.instance_id)
    epoch = request.member_epoch
    draft.reply(event.ticket, ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=epoch))
    if epoch == LEAVING_FOR_A_WHILE:
        pause_static_member(draft, member)
    else:
        remove_members(draft, [member], "it has left")


def pause_static_member(draft: ConsumerDraft, member: ConsumerMember) -> None:
    """Keep a static member's place, and everything it had, which it uses no more."""
    assert member.instance_id is not None
    # The session continues. If the member has not returned when it expires, its partitions are assigned to others.
    draft.put_member(replace(member, epoch=LEAVING_FOR_A_WHILE, state=MemberState.STABLE, revoking=NO_PARTITIONS))
    draft.cancel(member.member_id, REVOCATION)
    draft.add_note(StaticMemberPaused(draft.group.group_id, member.member_id, member.instance_id))


def remove_members(draft: ConsumerDraft, members: Iterable[ConsumerMember], why: str) -> None:
    """Remove members, and start an epoch without them."""
    gone = [member.member_id for member in members]
    for member_id in gone:
        draft.remove_member(member_id)
        draft.add_note(MemberGone(draft.group.group_id, member_id, why))
    if gone:
        draft.drop_unused_regexes()
        begin_epoch(draft, f"member {', '.join(gone)} is removed: {why}")


def handle_timer(draft: ConsumerDraft, name: TimerName) -> None:
    """Handle a timer that expired; a member that acted in time has cancelled it."""
    member = draft.group.members.get(name.member)
    if member is not None and name.kind in REASONS:
        remove_members(draft, [member], REASONS[name.kind])

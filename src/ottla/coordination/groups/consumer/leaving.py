"""Members that go, by their own will, by somebody's else, or because nothing was heard of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ottla.coordination.groups.consumer.draft import FETCH, REJOIN, REVOCATION, SESSION, ConsumerDraft
from ottla.coordination.groups.consumer.events import ConsumerHeartbeat
from ottla.coordination.groups.consumer.member import LEAVING_FOR_A_WHILE, NO_PARTITIONS, ConsumerMember, MemberState
from ottla.coordination.groups.consumer.notes import MemberGone, StaticMemberPaused
from ottla.coordination.groups.consumer.subscribing import begin_epoch
from ottla.coordination.groups.consumer.validation import identified
from ottla.coordination.groups.events import AlarmName
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

REASONS: Mapping[str, str] = {
    SESSION: "the member session expired",
    REVOCATION: "it did not give its partitions back within its rebalance timeout",
    REJOIN: "it did not join again within its rebalance timeout",
    FETCH: "it did not fetch its partitions in time",
}
"""Why a member is taken out when an alarm of a kind rings."""


def leave(draft: ConsumerDraft, event: ConsumerHeartbeat) -> None:
    """A member says that it goes. A static one may say that it comes back, and keeps its place for its session."""
    request = event.request
    member = identified(draft.group, request.member_id, request.instance_id)
    epoch = request.member_epoch
    draft.reply(event.ticket, ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=epoch))
    if epoch == LEAVING_FOR_A_WHILE:
        pause(draft, member)
    else:
        remove(draft, [member], "it has left")


def pause(draft: ConsumerDraft, member: ConsumerMember) -> None:
    """Keep a static member's place, and everything it had, which it uses no more."""
    assert member.instance_id is not None
    # Its session goes on: if it is not back by the end of that, its partitions go to others.
    draft.put(replace(member, epoch=LEAVING_FOR_A_WHILE, state=MemberState.STABLE, revoking=NO_PARTITIONS))
    draft.cancel(member.member_id, REVOCATION)
    draft.note(StaticMemberPaused(draft.group.group_id, member.member_id, member.instance_id))


def remove(draft: ConsumerDraft, members: Iterable[ConsumerMember], why: str) -> None:
    """Take members out, and begin an epoch without them."""
    gone = [member.member_id for member in members]
    for member_id in gone:
        draft.remove(member_id)
        draft.note(MemberGone(draft.group.group_id, member_id, why))
    if gone:
        draft.drop_unused_regexes()
        begin_epoch(draft, f"member {', '.join(gone)} is gone: {why}")


def ring(draft: ConsumerDraft, name: AlarmName) -> None:
    """A moment has come that was waited for; members that did in time what it is about have cancelled it."""
    member = draft.group.members.get(name.member)
    if member is not None and name.kind in REASONS:
        remove(draft, [member], REASONS[name.kind])

"""JoinGroup: a member comes, or comes back.

Who comes without an id is given one, and comes again with it (KIP-394); who has a name of its own takes its old place
(KIP-345, in `static_joining`); who is known already makes the group rebalance, or learns that there is no need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ottla.coordination.groups.classic.answers import join_refused, joined
from ottla.coordination.groups.classic.draft import SESSION, ClassicDraft
from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.coordination.groups.classic.member import ClassicMember, Protocols, as_named, as_said
from ottla.coordination.groups.classic.notes import MemberIdGiven
from ottla.coordination.groups.classic.rebalancing import maybe_complete_join, rebalance_or_complete_join
from ottla.coordination.groups.classic.state import ClassicGroupState
from ottla.coordination.groups.classic.static_joining import replace_instance
from ottla.coordination.groups.classic.validation import member_error
from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.events import JoinRequested
from ottla.errors import ErrorCode
from ottla.protocol.messages.join_group import JoinGroupRequest

REQUIRED_SINCE = 4
"""From this version on a new member is to know its id before it joins (KIP-394)."""


def join(draft: ClassicDraft, event: JoinRequested) -> None:
    """What is to be done about a join."""
    refusal = join_error(draft, event.request)
    if refusal:
        draft.reply(event.ticket, join_refused(refusal, event.request.member_id))
        # There is no room in the next generation for what was a member, or was just given an id: to keep it would make
        # everybody wait for a join that is always refused.
        if refusal is ErrorCode.GROUP_MAX_SIZE_REACHED:
            turn_away(draft, event.request.member_id)
    elif not event.request.member_id:
        join_new(draft, event)
    else:
        join_known(draft, event)


def join_error(draft: ClassicDraft, request: JoinGroupRequest) -> ErrorCode:
    """Why nobody may join like that."""
    group = draft.group
    if is_full(group, request.member_id, draft.config.max_size):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if not group.supports(request.protocol_type, {protocol.name for protocol in request.protocols}):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def grants_session(config: GroupConfig, request: JoinGroupRequest) -> bool:
    """Whether a session may be as long as a member asks, whoever it is."""
    return config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms


def is_full(group: ClassicGroup, member_id: str, most: int) -> bool:
    """Whether there is no room for this member; while a group rebalances, those count that have joined."""
    known = group.members.get(member_id)
    # Members that have not joined yet may turn out to be gone, so they take nobody's room.
    if group.state is ClassicGroupState.PREPARING_REBALANCE:
        return group.joining >= most and not (known and known.joining)
    return len(group.members) >= most and known is None


def join_new(draft: ClassicDraft, event: JoinRequested) -> None:
    request = event.request
    known = draft.group.instance(request.group_instance_id)
    if known is not None:
        replace_instance(draft, event, known, updated_member(known, event, event.fresh_id))
    elif request.group_instance_id is None and event.version >= REQUIRED_SINCE:
        give_id(draft, event)
    else:
        add_member(draft, event, event.fresh_id)


# Without this step a client whose answer was lost would come as somebody new each time it tries again, and leave a member
# behind that nobody is, for which every rebalance would wait. An id that nobody uses costs nothing but a name.
def give_id(draft: ClassicDraft, event: JoinRequested) -> None:
    """Tell a client its id, and remember for a session that it may come with it."""
    draft.note(MemberIdGiven(draft.group.group_id, event.fresh_id, draft.group.state))
    draft.group = draft.group.changed(pending=draft.group.pending | {event.fresh_id})
    draft.schedule(SESSION, event.request.session_timeout_ms / 1000, event.fresh_id)
    draft.reply(event.ticket, join_refused(ErrorCode.MEMBER_ID_REQUIRED, event.fresh_id))


def join_known(draft: ClassicDraft, event: JoinRequested) -> None:
    """One with an id: it was just given, or the member has joined before."""
    request = event.request
    # A static member never has to come twice: its name is what it is known by.
    if request.member_id in draft.group.pending and request.group_instance_id is None:
        add_member(draft, event, request.member_id)
        return
    error = member_error(draft.group, request.member_id, request.group_instance_id)
    if error:
        draft.reply(event.ticket, join_refused(error, request.member_id))
    else:
        REJOINS[draft.group.state](draft, event, draft.group.members[request.member_id])


def add_member(draft: ClassicDraft, event: JoinRequested, member_id: str) -> None:
    """Take in a new member."""
    request, group = event.request, draft.group
    member = ClassicMember(
        member_id,
        request.group_instance_id,
        event.client_id,
        event.client_host,
        rebalance_timeout_of(request),
        request.session_timeout_ms,
        protocols_of(request),
        joining=event.ticket,
        is_new=True,
    )
    # Of an empty group only the offsets are old; whoever comes first says anew what kind of group it is.
    if not group.members:
        group = group.changed(protocol_type=request.protocol_type)
    draft.group = group.with_member(member).changed(has_new_member=True)
    # Until its first answer it cannot send heartbeats, and nobody could tell whether it is still there.
    draft.schedule(SESSION, draft.config.new_member_join_timeout, member_id)
    name = as_named(member_id, request.group_instance_id)
    rebalance_or_complete_join(draft, f"{name} joins{as_said(request.reason)}")


def join_again(draft: ClassicDraft, event: JoinRequested, member: ClassicMember) -> None:
    """Let a member wait for the end of the join, with what it says now."""
    # The client has given up that connection and cannot hear this, but the connection may hold back requests behind
    # it.
    if member.joining:  # over a connection that it has given up
        draft.reply(member.joining, join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
    draft.group = draft.group.with_member(updated_member(member, event, member.member_id))
    rebalance_or_complete_join(draft, reason_of(draft.group, event, member))


def join_again_or_hear(draft: ClassicDraft, event: JoinRequested, member: ClassicMember) -> None:
    """While assignments are made: a member that has not changed just missed the answer."""
    # A generation has begun with what it said, so all it needs is to be told of it once more.
    if protocols_of(event.request) == member.protocols:
        draft.reply(event.ticket, joined(draft.group, member))
        draft.begin_session(member)
    else:
        join_again(draft, event, member)


def rebalance_or_hear(draft: ClassicDraft, event: JoinRequested, member: ClassicMember) -> None:
    """In a stable group: the leader asks for a rebalance by joining, a follower by joining with something new."""
    # Only the leader sees topics and partitions change; joining again is how it asks for a new assignment.
    if member.member_id == draft.group.leader:
        join_again(draft, event, member)
    else:
        join_again_or_hear(draft, event, member)


def not_here(draft: ClassicDraft, event: JoinRequested, member: ClassicMember) -> None:
    """A group without members knows nobody."""
    draft.reply(event.ticket, join_refused(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))


REJOINS: Mapping[ClassicGroupState, Callable[[ClassicDraft, JoinRequested, ClassicMember], None]] = {
    ClassicGroupState.EMPTY: not_here,
    ClassicGroupState.PREPARING_REBALANCE: join_again,
    ClassicGroupState.COMPLETING_REBALANCE: join_again_or_hear,
    ClassicGroupState.STABLE: rebalance_or_hear,
    ClassicGroupState.DEAD: not_here,
}
"""What it means that a member joins once more."""


def updated_member(member: ClassicMember, event: JoinRequested, member_id: str) -> ClassicMember:
    """A member with what its new join says."""
    request = event.request
    return replace(
        member,
        member_id=member_id,
        client_id=event.client_id,
        client_host=event.client_host,
        rebalance_timeout_ms=rebalance_timeout_of(request),
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols_of(request),
        joining=event.ticket,
        syncing=0,
        topics={},
    )


def reason_of(group: ClassicGroup, event: JoinRequested, member: ClassicMember) -> str:
    """Why a known member's join makes the group rebalance."""
    leads = group.state is ClassicGroupState.STABLE and member.member_id == group.leader
    name = f"the leader, {member.member_id}," if leads else member.member_id
    return f"{name} joins again in {group.state}{as_said(event.request.reason)}"


def protocols_of(request: JoinGroupRequest) -> Protocols:
    """What the client can do, as a value."""
    return tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols)


def rebalance_timeout_of(request: JoinGroupRequest) -> int:
    """The first version had one timeout for both."""
    return request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms


def turn_away(draft: ClassicDraft, member_id: str) -> None:
    """Take out a member that does not wait for an answer, and that nobody needs to wait for."""
    draft.cancel(SESSION, member_id)
    draft.group = draft.group.without(member_id)
    maybe_complete_join(draft)

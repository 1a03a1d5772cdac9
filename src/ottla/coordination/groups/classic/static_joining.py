"""A static member comes back: it takes its old place under a new id (KIP-345).

Nothing is rebalanced when the group is stable and the member wants what it wanted before.
"""

from __future__ import annotations

from dataclasses import replace

from ottla.coordination.groups.classic.answers import join_refused, joined, sync_refused
from ottla.coordination.groups.classic.draft import SESSION, ClassicDraft
from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.coordination.groups.classic.member import CONSUMER, ClassicMember, as_named, as_said
from ottla.coordination.groups.classic.notes import InstanceReplaced
from ottla.coordination.groups.classic.rebalancing import rebalance_or_complete_join
from ottla.coordination.groups.classic.state import ClassicGroupState
from ottla.coordination.groups.classic.subscription import assigned_partitions, owned_partitions
from ottla.coordination.groups.events import JoinRequested
from ottla.errors import ErrorCode

SKIPPING_SINCE = 9
"""From this version on a leader can be told to keep to the assignment there is (KIP-814)."""


def replace_instance(draft: ClassicDraft, event: JoinRequested, old: ClassicMember, new: ClassicMember) -> None:
    """Put `new` in the place of `old`, and send away whoever still waits as `old`."""
    # Two processes with one name, or one that came back before its predecessor was noticed to be gone: the newer one
    # counts, and the older hears that it is fenced.
    draft.reply(old.joining, join_refused(ErrorCode.FENCED_INSTANCE_ID, old.member_id))
    draft.reply(old.syncing, sync_refused(ErrorCode.FENCED_INSTANCE_ID))
    before = draft.group
    assert new.instance_id is not None
    draft.note(InstanceReplaced(before.group_id, new.instance_id, old.member_id, new.member_id))
    draft.cancel(SESSION, old.member_id)
    draft.group = before.replace_static_member(old.member_id, new)
    draft.begin_session(new)
    if (
        before.state is ClassicGroupState.STABLE
        and keeps_assignment(before, draft.group)
        and not has_to_revoke(before, old)
    ):
        welcome_back(draft, event, new, before.leader)
    else:
        name = as_named(new.member_id, new.instance_id)
        rebalance_or_complete_join(draft, f"{name} joins again{as_said(event.request.reason)}")


def keeps_assignment(before: ClassicGroup, after: ClassicGroup) -> bool:
    """Whether the assignment is still what the members want.

    Kafka asks only for the protocol. A member that came back for other topics would then wait for them until
    somebody else makes the group rebalance.
    """
    protocol = before.protocol_name
    return after.elected_protocol() == protocol and after.read_topics(protocol) == before.topics


def has_to_revoke(group: ClassicGroup, member: ClassicMember) -> bool:
    """Whether a member was to give something back, and to join again then (KIP-429).

    Who comes in its place has nothing to give back, and would not join again: what was taken from it were nobody's.
    """
    owned = owned_partitions(member.metadata(group.protocol_name)) if group.protocol_type == CONSUMER else frozenset()
    return bool(owned) and not owned <= assigned_partitions(member.assignment)


def welcome_back(draft: ClassicDraft, event: JoinRequested, member: ClassicMember, leader_before: str | None) -> None:
    """Tell it that nothing has changed; a leader that cannot be told to skip the assignment is told it does not lead.

    It recognizes itself by the leader's id, so the id that it had before does that.
    """
    answered = replace(member, joining=0, is_new=False)
    draft.group = draft.group.with_member(answered)
    draft.keep()
    leads = draft.group.leader == member.member_id
    answer = joined(draft.group, answered, skip_assignment=leads)
    if event.version < SKIPPING_SINCE:
        answer.skip_assignment, answer.members, answer.leader = False, (), leader_before or ""
    draft.reply(event.ticket, answer)

"""What a member reads, and whether that or the topics have changed so that partitions are to be shared out anew."""

from __future__ import annotations

from ottla.coordination.groups.consumer.draft import ConsumerDraft
from ottla.coordination.groups.consumer.events import Sees
from ottla.coordination.groups.consumer.group import Resolved
from ottla.coordination.groups.consumer.member import ConsumerMember
from ottla.coordination.groups.consumer.notes import EpochBegun
from ottla.coordination.groups.consumer.refusal import Refused
from ottla.coordination.regular_expression import TooMuchWork
from ottla.errors import ErrorCode

REFRESH_MS = 600_000
"""How soon a change of what a member may see counts for topics that were found before, as in Kafka."""


def subscribe(draft: ConsumerDraft, before: ConsumerMember, member: ConsumerMember, sees: Sees | None = None) -> bool:
    """Keep what a member says, and begin an epoch where that is needed; whether it has changed what it reads.

    `sees` says which topics its client may know of; None: all.
    """
    draft.put(member)
    names, regex = before.topics != member.topics, before.regex != member.regex
    if regex:
        # Before the new one is resolved, so that an expression which nobody has any more is not looked at again.
        draft.drop_unused_regexes()
    # A member of the classic protocol has none, and nobody has asked what it may see.
    found = member.classic is None and resolve_regexes(draft, member.regex, sees)
    reason = reason_to_begin(draft, f"member {member.member_id}" if names or regex else "", found)
    if reason:
        begin_epoch(draft, reason)
    return names or regex


def resolve_regexes(draft: ConsumerDraft, regex: str, sees: Sees | None) -> bool:
    """Look which topics match by now, this expression and the others; whether they are others than before."""
    changed = False
    for each in sorted({*draft.group.regexes, regex} - {""}):
        before = draft.group.regexes.get(each)
        if before is not None and sees is not None and not is_due(draft, before):
            continue
        try:
            topics = draft.image.matching(each)
        except TooMuchWork as fault:
            if before is None:
                text = f"subscribed topics `{each}`: {fault}"
                raise Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, text) from None
            continue  # another member's, which goes on with the topics that it matched before
        if sees is not None:
            topics = frozenset(filter(sees, topics))
        if before is None or before.topics != topics:
            draft.resolve(each, topics)
            changed = True
    return changed


def is_due(draft: ConsumerDraft, resolved: Resolved) -> bool:
    """Whether to look again where members may see different topics: not at each heartbeat, or theirs would undo each other's."""
    return resolved.version != draft.image.version or draft.wall_ms - resolved.wall_ms >= REFRESH_MS


def reason_to_begin(draft: ConsumerDraft, who: str, found: bool) -> str:
    """Why the target is no longer right; empty where it is."""
    if who:
        return f"{who} has changed its subscription"
    if found:
        return "other topics match its regular expressions"
    if draft.group.epoch == 0:
        return "it is new"
    # Topics are looked at when a member sends a heartbeat, and not when they change: a group without heartbeats has
    # nobody to tell.
    if draft.image.digest(draft.group.names) != draft.group.metadata_hash:
        return "its topics have changed"
    return ""


def begin_epoch(draft: ConsumerDraft, reason: str) -> None:
    draft.bump_epoch()
    draft.note(EpochBegun(draft.group.group_id, draft.group.epoch, reason))

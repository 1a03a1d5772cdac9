"""The subscription of a member, and the decision whether it or the topics have changed so that a new assignment is needed."""

from __future__ import annotations

from ottla.coordination.groups.consumer.draft import ConsumerDraft
from ottla.coordination.groups.consumer.events import Sees
from ottla.coordination.groups.consumer.group import Resolved
from ottla.coordination.groups.consumer.member import ConsumerMember
from ottla.coordination.groups.consumer.notes import EpochBegun
from ottla.coordination.groups.consumer.refusal import RequestRejected
from ottla.coordination.regular_expression import TooMuchWork
from ottla.errors import ErrorCode

REFRESH_MS = 600_000
"""How soon a change of what a member may see counts for topics that were found before, as in Kafka."""


def subscribe(draft: ConsumerDraft, before: ConsumerMember, member: ConsumerMember, sees: Sees | None = None) -> bool:
    """Write a member's subscription, and start an epoch if necessary. Return True if the member's subscription has changed.

    `sees` returns True for topics that the client may see; None for all.
    """
    draft.put_member(member)
    names, regex = before.topics != member.topics, before.regex != member.regex
    if regex:
        # Before the new one is resolved, so that an unused expression is not resolved again.
        draft.drop_unused_regexes()
    # A classic member has no expression, and its permissions were not checked.
    found = member.classic is None and resolve_regexes(draft, member.regex, sees)
    reason = new_epoch_reason(draft, f"member {member.member_id}" if names or regex else "", found)
    if reason:
        begin_epoch(draft, reason)
    return names or regex


def resolve_regexes(draft: ConsumerDraft, regex: str, sees: Sees | None) -> bool:
    """Resolve this expression and the outdated ones. Return True if the matching topics have changed."""
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
                raise RequestRejected(ErrorCode.INVALID_REGULAR_EXPRESSION, text) from None
            continue  # another member's, which keeps the topics that it matched before
        if sees is not None:
            topics = frozenset(filter(sees, topics))
        if before is None or before.topics != topics:
            draft.set_regex_topics(each, topics)
            changed = True
    return changed


def is_due(draft: ConsumerDraft, resolved: Resolved) -> bool:
    """Return True if an expression may be resolved again although members may see different topics.

    Not at each heartbeat, or they would undo each other's result.
    """
    return resolved.version != draft.image.version or draft.wall_ms - resolved.wall_ms >= REFRESH_MS


def new_epoch_reason(draft: ConsumerDraft, who: str, found: bool) -> str:
    """Return the reason for which the target assignment is outdated; empty if it is not."""
    if who:
        return f"{who} has changed its subscription"
    if found:
        return "other topics match its regular expressions"
    if draft.group.epoch == 0:
        return "it is new"
    # Topics are compared when a member sends a heartbeat, not when they change: a group without heartbeats has no member to notify.
    if draft.image.digest(draft.group.names) != draft.group.metadata_hash:
        return "its topics have changed"
    return ""


def begin_epoch(draft: ConsumerDraft, reason: str) -> None:
    draft.bump_epoch()
    draft.add_note(EpochBegun(draft.group.group_id, draft.group.epoch, reason))

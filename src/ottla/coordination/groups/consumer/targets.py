"""The target assignment: what everybody is to have, worked out anew in each epoch of a group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ottla.coordination.groups.consumer.assignors import ASSIGNORS
from ottla.coordination.groups.consumer.draft import ConsumerDraft
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.group_spec import GroupSpec
from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.consumer.notes import TargetChanged


def update_target_assignment(draft: ConsumerDraft) -> None:
    """Work out who is to have what, if that was for an earlier epoch."""
    group = draft.group
    # One target for each epoch: what an assignor says may depend on what it said last time, so it is not asked twice.
    if group.epoch <= group.assignment_epoch:
        return
    name = assignor_of(group, draft.config.consumer_assignors)
    assignment = ASSIGNORS[name](wishes_of(group, draft.image))
    draft.set_target_assignment({member_id: frozenset(partitions) for member_id, partitions in assignment.items()})
    draft.note(TargetChanged(group.group_id, draft.group.assignment_epoch, name, len(assignment)))


def assignor_of(group: ConsumerGroup, known: Sequence[str]) -> str:
    """What most members that care want; otherwise the first that the broker names."""
    # While a fleet is moved from one assignor to another its members ask for different ones.
    votes = Counter(member.assignor for member in group.members.values() if member.assignor in known)
    return str(votes.most_common(1)[0][0]) if votes else known[0]


def wishes_of(group: ConsumerGroup, image: TopicImage) -> GroupSpec:
    """What is to be shared out. Members are served in the order of their ids, whoever came first."""
    by_names = {names: image.ids_of(names) for names in {group.names_of(member) for member in group.members.values()}}
    return GroupSpec(
        {topic.topic_id: topic.partitions for topic in image.known(group.names)},
        {member_id: by_names[group.names_of(group.members[member_id])] for member_id in sorted(group.members)},
        group.targets,
    )

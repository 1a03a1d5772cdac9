"""The target assignment: the partitions of each member, computed once for each group epoch."""

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
    """Compute the target assignment if the present one is for an earlier epoch."""
    group = draft.group
    # An assignor's result may depend on its previous result, so it is called once per epoch.
    if group.epoch <= group.assignment_epoch:
        return
    name = assignor_of(group, draft.config.consumer_assignors)
    assignment = ASSIGNORS[name](build_group_spec(group, draft.image))
    draft.set_target_assignment({member_id: frozenset(partitions) for member_id, partitions in assignment.items()})
    draft.add_note(TargetChanged(group.group_id, draft.group.assignment_epoch, name, len(assignment)))


def assignor_of(group: ConsumerGroup, known: Sequence[str]) -> str:
    """Return the assignor that most members request; the first one of the broker's list if none does."""
    # During a rolling change of the assignor the members request different ones.
    votes = Counter(member.assignor for member in group.members.values() if member.assignor in known)
    return str(votes.most_common(1)[0][0]) if votes else known[0]


def build_group_spec(group: ConsumerGroup, image: TopicImage) -> GroupSpec:
    """Return the input of the assignor. Members are ordered by id, independent of their arrival."""
    by_names = {names: image.ids_of(names) for names in {group.names_of(member) for member in group.members.values()}}
    return GroupSpec(
        {topic.topic_id: topic.partitions for topic in image.known(group.names)},
        {member_id: by_names[group.names_of(group.members[member_id])] for member_id in sorted(group.members)},
        group.targets,
    )

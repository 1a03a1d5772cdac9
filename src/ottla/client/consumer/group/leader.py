"""What the leader of a group does: shares the partitions out among the members.

Runs in the heartbeat's thread, so that a group does not wait for a leader whose user is at work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ottla.client.consumer.assignors.assignor import Assignment, Assignor, RebalanceProtocol, Subscription
from ottla.client.consumer.assignors.wire import decode_subscription, encode_assignment
from ottla.client.metadata.cluster import Cluster
from ottla.errors import IllegalStateError
from ottla.model import TopicPartition
from ottla.protocol.messages.join_group import JoinGroupResponse

ClusterOf = Callable[[Collection[str]], Cluster]


class GroupLeader:
    """Runs the assignor that the group has agreed on."""

    def __init__(
        self,
        assignors: Mapping[str, Assignor],
        protocol: RebalanceProtocol,
        cluster_of: ClusterOf,
        log: logging.LoggerAdapter[Any],
    ) -> None:
        self._assignors = assignors
        self._protocol = protocol
        self._cluster_of = cluster_of
        self._log = log

    def lead(self, answer: JoinGroupResponse) -> tuple[Mapping[str, bytes], Mapping[str, int]]:
        """An assignment for each member id, and the numbers of partitions it is based on."""
        wanted = {m.member_id: decode_subscription(m.metadata, m.group_instance_id) for m in answer.members}
        topics = {topic for subscription in wanted.values() for topic in subscription.topics}
        cluster = self._cluster_of(topics)
        counts = {topic: len(cluster.topics[topic].partitions) for topic in sorted(topics) if topic in cluster.topics}
        if answer.skip_assignment:  # this leader has come back under its old name: all keep what they have (KIP-814)
            return {}, counts
        assignor = self._assignors[answer.protocol_name or ""]
        self._log.debug("Performing assignment using strategy %s with subscriptions %s", assignor.name, wanted)
        given = dict(assignor.assign(cluster, wanted))
        self._check(assignor.name, wanted, given)
        self._complain(topics, given)
        shares = {member: list(map(str, assignment.partitions)) for member, assignment in given.items()}
        self._log.info("shared out for generation %d: %s", answer.generation_id, shares)
        return {member: encode_assignment(given.get(member, Assignment())) for member in wanted}, counts

    def _check(self, name: str, wanted: Mapping[str, Subscription], given: Mapping[str, Assignment]) -> None:
        owner: dict[TopicPartition, str] = {}
        for member, assignment in given.items():
            if member not in wanted:
                raise IllegalStateError(f"assignor {name!r} gave partitions to {member!r}, who is no member")
            for tp in assignment.partitions:
                if owner.setdefault(tp, member) != member:
                    raise IllegalStateError(f"assignor {name!r} gave {tp} to two members, {owner[tp]} and {member}")
        if self._protocol is RebalanceProtocol.COOPERATIVE:
            check_cooperative(name, wanted, owner)

    def _complain(self, topics: Collection[str], given: Mapping[str, Assignment]) -> None:
        left = set(topics) - {tp.topic for assignment in given.values() for tp in assignment.partitions}
        if left:
            self._log.warning("nobody reads these topics, though the group subscribes to them: %s", sorted(left))


def counted(cluster: Cluster, topics: Collection[str], before: Mapping[str, int], *, complete: bool) -> dict[str, int]:
    """The group's topics with their numbers of partitions, to be compared with those `before`.

    Where the cluster is not known completely, a topic that has not been asked for yet counts as before.
    """
    wanted = {*topics, *before}
    counts = {topic: len(info.partitions) for topic, info in cluster.topics.items() if topic in wanted}
    unheard = () if complete else before.keys() - cluster.topics.keys() - cluster.errors.keys()
    counts.update((topic, before[topic]) for topic in unheard)
    return counts


def check_cooperative(name: str, wanted: Mapping[str, Subscription], owner: Mapping[TopicPartition, str]) -> None:
    """A partition that moves is to be free for a round; an assignor that hands it over at once is not cooperative."""
    newest = max((s.generation_id for s in wanted.values()), default=-1)
    for member, subscription in wanted.items():
        if subscription.generation_id != newest:
            continue  # what it says it owns may be another's by now
        for tp in subscription.owned_partitions:
            if owner.get(tp, member) != member:
                raise IllegalStateError(
                    f"assignor {name!r} moved {tp} from {member} to {owner[tp]} in one step: with the cooperative "
                    f"protocol a partition must be given up before it is given to another"
                )

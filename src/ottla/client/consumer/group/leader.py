"""The leader of a group: assigns the partitions to the members.

Runs in the heartbeat thread, so that the group does not wait for a busy user of the leader.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ottla.client.consumer.assignors.assignor import Assignment, Assignor, RebalanceProtocol, Subscription
from ottla.client.consumer.assignors.wire import decode_subscription, encode_assignment
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.errors import IllegalStateError
from ottla.model import TopicPartition
from ottla.protocol.messages.join_group import JoinGroupResponse

FetchCluster = Callable[[Collection[str]], MetadataSnapshot]


class GroupLeader:
    """Runs the assignor that the members agreed on."""

    def __init__(
        self,
        assignors: Mapping[str, Assignor],
        protocol: RebalanceProtocol,
        fetch_cluster: FetchCluster,
        log: logging.LoggerAdapter[Any],
    ) -> None:
        self._assignors = assignors
        self._protocol = protocol
        self._cluster_of = fetch_cluster
        self._log = log

    def assign(self, response: JoinGroupResponse) -> tuple[Mapping[str, bytes], Mapping[str, int]]:
        """Return an assignment for each member id, and the partition counts it is based on."""
        wanted = {m.member_id: decode_subscription(m.metadata, m.group_instance_id) for m in response.members}
        topics = {topic for subscription in wanted.values() for topic in subscription.topics}
        cluster = self._cluster_of(topics)
        counts = {topic: len(cluster.topics[topic].partitions) for topic in sorted(topics) if topic in cluster.topics}
        if (
            response.skip_assignment
        ):  # the leader has rejoined under its old id: all members keep their assignment (KIP-814)
            return {}, counts
        assignor = self._assignors[response.protocol_name or ""]
        self._log.debug("Performing assignment using strategy %s with subscriptions %s", assignor.name, wanted)
        assignments = dict(assignor.assign(cluster, wanted))
        self._check(assignor.name, wanted, assignments)
        self._warn_unassigned(topics, assignments)
        shares = {member: list(map(str, assignment.partitions)) for member, assignment in assignments.items()}
        self._log.info("Assignment computed generation=%d assignment=%s", response.generation_id, shares)
        return {member: encode_assignment(assignments.get(member, Assignment())) for member in wanted}, counts

    def _check(self, name: str, wanted: Mapping[str, Subscription], assignments: Mapping[str, Assignment]) -> None:
        owner: dict[TopicPartition, str] = {}
        for member, assignment in assignments.items():
            if member not in wanted:
                raise IllegalStateError(f"assignor {name!r} gave partitions to {member!r}, which is not a member")
            for tp in assignment.partitions:
                if owner.setdefault(tp, member) != member:
                    raise IllegalStateError(f"assignor {name!r} gave {tp} to two members, {owner[tp]} and {member}")
        if self._protocol is RebalanceProtocol.COOPERATIVE:
            check_cooperative(name, wanted, owner)

    def _warn_unassigned(self, topics: Collection[str], assignments: Mapping[str, Assignment]) -> None:
        unassigned = set(topics) - {tp.topic for assignment in assignments.values() for tp in assignment.partitions}
        if unassigned:
            self._log.warning("subscribed topics have no assigned partitions topics=%s", sorted(unassigned))


def count_partitions(
    cluster: MetadataSnapshot, topics: Collection[str], before: Mapping[str, int], *, complete: bool
) -> dict[str, int]:
    """Return the partition counts of the group's topics, for a comparison with the counts in `before`.

    If the metadata is not complete yet, a topic without metadata keeps its count from `before`.
    """
    wanted = {*topics, *before}
    counts = {topic: len(info.partitions) for topic, info in cluster.topics.items() if topic in wanted}
    not_received = () if complete else before.keys() - cluster.topics.keys() - cluster.errors.keys()
    counts.update((topic, before[topic]) for topic in not_received)
    return counts


def check_cooperative(name: str, wanted: Mapping[str, Subscription], owner: Mapping[TopicPartition, str]) -> None:
    """Check that moved partitions are unassigned for one rebalance; otherwise the assignor is not cooperative."""
    newest = max((s.generation_id for s in wanted.values()), default=-1)
    for member, subscription in wanted.items():
        if subscription.generation_id != newest:
            continue  # its claims may be outdated
        for tp in subscription.owned_partitions:
            if owner.get(tp, member) != member:
                raise IllegalStateError(
                    f"assignor {name!r} moved {tp} from {member} to {owner[tp]} in one step: with the cooperative "
                    f"protocol a partition must be given up before it is given to another"
                )

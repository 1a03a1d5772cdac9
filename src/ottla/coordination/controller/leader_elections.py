"""Leader elections by ElectLeaders, and the periodic ones (KIP-183, KIP-460).

A *preferred* election makes the first replica the leader again; `auto.leader.rebalance.enable` runs it periodically. An
*unclean* election gives a leaderless partition any active replica as its leader and may lose committed records. It runs
by request, and periodically for topics with `unclean.leader.election.enable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ottla.coordination.cluster.topic import ClusterTopic, PartitionState
from ottla.coordination.controller.draft import UNASSIGNED, ClusterDraft, has_no_leader
from ottla.coordination.controller.partition_change import ElectionType, RequestedChange
from ottla.errors import ErrorCode
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

MOST_ELECTIONS = 1000
"""The maximum number of periodic elections in one decision; the rest follows in the next one."""
ELECTIONS = {0: ElectionType.PREFERRED, 1: ElectionType.UNCLEAN}
"""The numbers of ElectLeaders."""


def decide(draft: ClusterDraft, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Elect leaders and return one result per requested partition.

    Without a list of partitions, return results for those that need an election.
    """
    election = ELECTIONS.get(request.election_type)
    if election is None:
        return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
    named: list[tuple[str, Sequence[int]]]
    if request.topic_partitions is None:
        named = [(topic.name, range(len(topic.partitions))) for topic in draft.metadata.topics.values()]
    else:
        named = [(each.topic, each.partitions) for each in request.topic_partitions]
    results = []
    for name, partitions in named:
        elected = [elect_leader(draft, name, index, election) for index in partitions]
        if request.topic_partitions is None:
            elected = [each for each in elected if each.error_code != ErrorCode.ELECTION_NOT_NEEDED]
            if not elected:
                continue
        results.append(ReplicaElectionResult(name, elected))
    return ElectLeadersResponse(replica_election_results=results)


def elect_leader(draft: ClusterDraft, name: str, index: int, election: ElectionType) -> PartitionResult:
    """Elect the leader of one partition and return the result."""
    topic = draft.metadata.topics.get(name)
    state = None if topic is None else draft.find_partition(topic, index)
    if topic is None or state is None:
        missing = f"No such topic as {name}" if topic is None else f"No such partition as {name}-{index}"
        return PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, missing)
    if not is_election_needed(state, election):
        return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, f"{name}-{index} is led by {state.leader} already")
    if draft.change_partition(topic, state, RequestedChange(election)) is not None:
        return PartitionResult(index)
    if election is ElectionType.UNCLEAN and elect_empty_replica(draft, topic, state):
        return PartitionResult(index)
    if election is ElectionType.PREFERRED:
        why = f"{state.replicas[0]}, which is preferred for {name}-{index}, is not in sync or not available"
        return PartitionResult(index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, why)
    why = f"none of the brokers {list(state.replicas)} of {name}-{index} is available"
    return PartitionResult(index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, why)


def elect_empty_replica(draft: ClusterDraft, topic: ClusterTopic, state: PartitionState) -> bool:
    """Elect an active replica even if its directory is lost, because no other replica is left.

    The partition starts empty.
    """
    here = {each: UNASSIGNED for each in state.replicas if draft.is_active(each)}
    return (
        bool(here)
        and draft.change_partition(topic, state, RequestedChange(ElectionType.UNCLEAN, directories=here)) is not None
    )


def is_election_needed(state: PartitionState, election: ElectionType) -> bool:
    """Return True if the partition is not led by its preferred leader, or, for an unclean election, has no leader."""
    return state.leader != state.replicas[0] if election is ElectionType.PREFERRED else has_no_leader(state)


def elect_preferred_leaders(draft: ClusterDraft) -> bool:
    """Elect the preferred leaders that are available. Return true if there may be more to elect."""
    return elect_leaders(draft, find_unbalanced_partitions(draft), ElectionType.PREFERRED)


def elect_missing_leaders(draft: ClusterDraft) -> bool:
    """Elect leaders for leaderless partitions that allow unclean elections.

    Return true if there may be more to elect.
    """
    return elect_leaders(draft, find_leaderless_partitions(draft), ElectionType.UNCLEAN)


def elect_leaders(
    draft: ClusterDraft, due: Iterator[tuple[ClusterTopic, PartitionState]], election: ElectionType
) -> bool:
    """Elect a leader for each partition. Return true if the limit stopped it."""
    for topic, state in due:
        draft.change_partition(topic, state, RequestedChange(election))
        if len(draft.records) >= MOST_ELECTIONS:
            return True
    return False


def find_unbalanced_partitions(draft: ClusterDraft) -> Iterator[tuple[ClusterTopic, PartitionState]]:
    return ((topic, state) for topic, state in draft.partitions() if is_election_needed(state, ElectionType.PREFERRED))


def find_leaderless_partitions(draft: ClusterDraft) -> Iterator[tuple[ClusterTopic, PartitionState]]:
    for topic, state in draft.partitions():
        if has_no_leader(state) and draft.find_automatic_election(topic) is ElectionType.UNCLEAN:
            yield topic, state

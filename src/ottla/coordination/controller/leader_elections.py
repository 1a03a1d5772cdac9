"""ElectLeaders, and the elections that nobody asks for: leaders go back to the preferred replicas, and where losing records is allowed a
partition that nobody leads gets a leader (KIP-183, KIP-460).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ottla.coordination.cluster.topic import PartitionState, Topic
from ottla.coordination.controller.draft import UNASSIGNED, ClusterDraft, leaderless
from ottla.coordination.controller.partition_change import Election, Wanted
from ottla.errors import ErrorCode
from ottla.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

MOST_ELECTIONS = 1000
"""At once, of those that nobody asks for."""
ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}
"""As the request numbers them."""


def decide(draft: ClusterDraft, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """A result for each partition that is named; where none is, for each that needs an election."""
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
        answers = [elect(draft, name, index, election) for index in partitions]
        if request.topic_partitions is None:
            answers = [each for each in answers if each.error_code != ErrorCode.ELECTION_NOT_NEEDED]
        results.append(ReplicaElectionResult(name, answers))
    return ElectLeadersResponse(replica_election_results=results)


def elect(draft: ClusterDraft, name: str, index: int, election: Election) -> PartitionResult:
    topic = draft.metadata.topics.get(name)
    state = None if topic is None else draft.partition(topic, index)
    if topic is None or state is None:
        missing = f"No such topic as {name}" if topic is None else f"No such partition as {name}-{index}"
        return PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, missing)
    if not needed(state, election):
        return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, f"{name}-{index} is led by {state.leader} already")
    if draft.change(topic, state, Wanted(election)) is not None:
        return PartitionResult(index)
    if election is Election.UNCLEAN and begin_anew(draft, topic, state):
        return PartitionResult(index)
    if election is Election.PREFERRED:
        why = f"{state.replicas[0]}, which is preferred for {name}-{index}, is not in sync or not there"
        return PartitionResult(index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, why)
    why = f"none of the brokers {list(state.replicas)} of {name}-{index} is there"
    return PartitionResult(index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, why)


def begin_anew(draft: ClusterDraft, topic: Topic, state: PartitionState) -> bool:
    """Let a broker lead whose copy went with its directory, as there is no other: the partition is empty, and of use again."""
    here = {each: UNASSIGNED for each in state.replicas if draft.active(each)}
    return bool(here) and draft.change(topic, state, Wanted(Election.UNCLEAN, directories=here)) is not None


def needed(state: PartitionState, election: Election) -> bool:
    return state.leader != state.replicas[0] if election is Election.PREFERRED else leaderless(state)


def balance(draft: ClusterDraft) -> bool:
    """Let the preferred replicas lead that can; whether there may be more to do."""
    return elect_each(draft, unbalanced(draft), Election.PREFERRED)


def recover(draft: ClusterDraft) -> bool:
    """Let somebody lead what nobody does, where losing records is allowed; whether there may be more to do."""
    return elect_each(draft, recoverable(draft), Election.UNCLEAN)


def elect_each(draft: ClusterDraft, due: Iterator[tuple[Topic, PartitionState]], election: Election) -> bool:
    for topic, state in due:
        draft.change(topic, state, Wanted(election))
        if len(draft.records) >= MOST_ELECTIONS:
            return True
    return False


def unbalanced(draft: ClusterDraft) -> Iterator[tuple[Topic, PartitionState]]:
    return ((topic, state) for topic, state in draft.partitions() if needed(state, Election.PREFERRED))


def recoverable(draft: ClusterDraft) -> Iterator[tuple[Topic, PartitionState]]:
    for topic, state in draft.partitions():
        if leaderless(state) and draft.election(topic) is Election.UNCLEAN:
            yield topic, state

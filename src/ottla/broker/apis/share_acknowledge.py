"""ShareAcknowledge: acknowledge records that a member of a share group has acquired (KIP-932)."""

from __future__ import annotations

from ottla.broker.apis.deferred_response import DeferredResponse
from ottla.broker.apis.share_calls import (
    LEADER_ERRORS,
    Codes,
    acknowledge_all,
    batches_in,
    endpoints_of,
    present_leader,
)
from ottla.broker.apis.share_state_calls import group_fault
from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.share.share_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SharedPartition,
    ShareSession,
    ShareSessions,
)
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation
from ottla.protocol.messages.share_acknowledge import (
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from ottla.protocol.messages.share_fetch import LeaderIdAndEpoch
from ottla.protocol.schema import Message


def handle(node: BrokerNode, call: Call, request: ShareAcknowledgeRequest) -> Message | Outcome:
    """Acknowledge records, and respond when the results are persisted. The last request of a session releases the others."""
    group_id, member_id, epoch = request.group_id or "", request.member_id or "", request.share_session_epoch
    fault = group_fault(node, call, group_id, Operation.READ)
    if fault is not None:
        return refused(*fault)
    sessions = node.share_partitions.sessions
    try:
        session = find_session(sessions, group_id, member_id, epoch)
    except KafkaError as error:
        return refused(error.code, error.message)
    batches = batches_in(
        (SharedPartition(topic.topic_id, each.partition_index), each.acknowledgement_batches)
        for topic in request.topics
        for each in topic.partitions
    )
    response = DeferredResponse(call)

    def finish(codes: Codes) -> None:
        response.send(build_response(node, call, group_id, codes))

    def release(codes: Codes) -> None:
        """Release the records that the member still has, after its last acknowledgements."""
        if epoch != FINAL_EPOCH:
            finish(codes)
            return
        sessions.close(group_id, member_id)
        left = list(session.partitions)
        remaining = set(left)

        def released(place: SharedPartition, code: int) -> None:
            remaining.discard(place)
            if not remaining:
                finish(codes)

        if not left:
            finish(codes)
        node.share_partitions.release(group_id, member_id, left, released)

    acknowledge_all(node, call, group_id, member_id, batches, request.is_renew_ack, release)
    return response.result()


def find_session(sessions: ShareSessions, group_id: str, member_id: str, epoch: int) -> ShareSession:
    """Return the share session of a request. Raise KafkaError."""
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "a share session is opened by ShareFetch")
    if epoch == FINAL_EPOCH:
        return sessions.find(group_id, member_id)
    return sessions.advance(group_id, member_id, epoch)


def build_response(node: BrokerNode, call: Call, group_id: str, codes: Codes) -> ShareAcknowledgeResponse:
    topics: dict[object, ShareAcknowledgeTopicResponse] = {}
    leaders: list[int] = []
    for place, code in codes.items():
        leader = LeaderIdAndEpoch()
        if code in LEADER_ERRORS:
            leader = present_leader(node, place)
            leaders.append(leader.leader_id)
        topic = topics.setdefault(place.topic_id, ShareAcknowledgeTopicResponse(place.topic_id, []))
        topic.partitions.append(PartitionData(place.partition, code, current_leader=leader))  # type: ignore[attr-defined]
    duration_ms = round(node.share_settings(group_id).limits.lock_duration * 1000)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=duration_ms,
        responses=list(topics.values()),
        node_endpoints=endpoints_of(node, call, leaders),
    )


def refused(code: int, text: str | None) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(error_code=code, error_message=text)

"""BrokerHeartbeat: the session of a broker, fencing, unfencing and controlled shutdown (KIP-631).

Each heartbeat extends the session of the broker and reports the offset up to which it has replayed the metadata. The
request has the state that the broker wants (`want_fence`, `want_shut_down`), the response the state that it has now
(`is_fenced`, `should_shut_down`). The transitions are in `broker_states`. A heartbeat also reports offline directories
(KIP-858) and cordoned ones (KIP-1066).
"""

from __future__ import annotations

from ottla.coordination.cluster.registration import BrokerRegistration
from ottla.coordination.controller import broker_changes
from ottla.coordination.controller.broker_states import BrokerControlState, next_state
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.sessions import NO_HANDOVER, BrokerHeartbeatReceived, SessionEnded
from ottla.errors import ErrorCode
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.schema import replace

TRANSITIONS = {
    BrokerControlState.FENCED: broker_changes.fence_broker,
    BrokerControlState.UNFENCED: broker_changes.unfence_broker,
    BrokerControlState.CONTROLLED_SHUTDOWN: broker_changes.start_controlled_shutdown,
    BrokerControlState.SHUTDOWN_NOW: broker_changes.fence_broker,
}
"""The function that writes the records for the transition to a state."""


def find_epoch_error(draft: ClusterDraft, broker: int, epoch: int) -> int:
    """Return STALE_BROKER_EPOCH unless the request is from the registered incarnation of the broker."""
    known = draft.registrations.get(broker)
    return ErrorCode.NONE if known is not None and known.epoch == epoch else ErrorCode.STALE_BROKER_EPOCH


def decide(draft: ClusterDraft, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    """Apply a heartbeat and return the new state of the broker.

    A broker requests to stay fenced until it has caught up. The broker in the process of the only controller gets the
    response that it is fenced, but remains unfenced in the metadata and keeps its partitions: see `registrations`.
    """
    is_starting = request.want_fence
    if request.broker_id == draft.config.own_broker:
        request = replace(request, want_fence=False)
    error = find_epoch_error(draft, request.broker_id, request.broker_epoch)
    if error:
        return BrokerHeartbeatResponse(error_code=error)
    broker = draft.registrations[request.broker_id]
    caught_up = request.current_metadata_offset >= draft.registration_offsets[request.broker_id]
    state = find_state(draft, broker)
    after = next_state(
        state,
        request,
        caught_up,
        lambda: draft.leads_partition(broker.broker_id),
        lambda: is_handed_over(draft, broker),
    )
    if after is not state:
        TRANSITIONS[after](draft, broker.broker_id)
    broker_changes.remove_offline_directories(draft, broker.broker_id, request.offline_log_dirs)
    broker_changes.cordon_directories(draft, broker.broker_id, request.cordoned_log_dirs)
    update_session(draft, request, after)
    return BrokerHeartbeatResponse(
        is_caught_up=caught_up,
        is_fenced=after.is_fenced or is_starting,
        should_shut_down=after is BrokerControlState.SHUTDOWN_NOW,
    )


def find_state(draft: ClusterDraft, broker: BrokerRegistration) -> BrokerControlState:
    """Return the present state of the broker, from its registration and its session."""
    session = draft.sessions.find_session(broker)
    if session is not None and session.is_handing_over:
        return BrokerControlState.CONTROLLED_SHUTDOWN
    return BrokerControlState.FENCED if broker.fenced else BrokerControlState.UNFENCED


def is_handed_over(draft: ClusterDraft, broker: BrokerRegistration) -> bool:
    """Return True if every other active broker has replayed the elections that replaced this broker."""
    own = draft.sessions.find_session(broker)
    others = (
        draft.sessions.find_session(each) for number, each in draft.registrations.items() if draft.is_active(number)
    )
    known = [-1 if other is None else other.metadata_offset for other in others]
    return own is not None and all(own.handover_offset <= offset for offset in known)


def update_session(draft: ClusterDraft, request: BrokerHeartbeatRequest, after: BrokerControlState) -> None:
    """Extend the session of the broker; end it if the response lets the broker stop.

    Without a session, a new incarnation can register at once. In a controlled shutdown the session also remembers the
    offset that the other brokers must have replayed.
    """
    number = request.broker_id
    if after is BrokerControlState.SHUTDOWN_NOW:
        draft.session_changes.append(SessionEnded(number))
        return
    session = draft.sessions.find_session(draft.registrations[number])
    handover = NO_HANDOVER
    if after is BrokerControlState.CONTROLLED_SHUTDOWN:
        is_started = session is not None and session.is_handing_over
        handover = session.handover_offset if is_started and session else draft.end_offset + len(draft.records) - 1
    draft.session_changes.append(
        BrokerHeartbeatReceived(number, request.broker_epoch, draft.now, request.current_metadata_offset, handover)
    )

"""BrokerHeartbeat: a broker is there, and is let in, fenced, or let go (KIP-631)."""

from __future__ import annotations

from ottla.coordination.cluster.registration import Registration
from ottla.coordination.controller import comings
from ottla.coordination.controller.broker_states import BrokerState, next_state
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.sessions import NOT_HANDING_OVER, BrokerHeard, SessionEnded
from ottla.errors import ErrorCode
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

STEPS = {
    BrokerState.FENCED: comings.fence,
    BrokerState.UNFENCED: comings.unfence,
    BrokerState.CONTROLLED_SHUTDOWN: comings.begin_shutdown,
    BrokerState.SHUTDOWN_NOW: comings.fence,
}
"""What is done where a broker comes into a state."""


def epoch_error(draft: ClusterDraft, broker: int, epoch: int) -> int:
    """What is wrong with a request of a broker in an epoch of it."""
    known = draft.registrations.get(broker)
    return ErrorCode.NONE if known is not None and known.epoch == epoch else ErrorCode.STALE_BROKER_EPOCH


def decide(draft: ClusterDraft, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    """What becomes of the broker."""
    error = epoch_error(draft, request.broker_id, request.broker_epoch)
    if error:
        return BrokerHeartbeatResponse(error_code=error)
    broker = draft.registrations[request.broker_id]
    caught_up = request.current_metadata_offset >= draft.registered_at[request.broker_id]
    state = state_of(draft, broker)
    after = next_state(
        state,
        request,
        caught_up,
        lambda: draft.leads(broker.broker_id),
        lambda: handed_over(draft, broker),
    )
    if after is not state:
        STEPS[after](draft, broker.broker_id)
    comings.lose_directories(draft, broker.broker_id, request.offline_log_dirs)
    comings.cordon(draft, broker.broker_id, request.cordoned_log_dirs)
    note(draft, request, after)
    return BrokerHeartbeatResponse(
        is_caught_up=caught_up, is_fenced=after.fenced, should_shut_down=after is BrokerState.SHUTDOWN_NOW
    )


def state_of(draft: ClusterDraft, broker: Registration) -> BrokerState:
    session = draft.sessions.of(broker)
    if session is not None and session.handing_over:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.FENCED if broker.fenced else BrokerState.UNFENCED


def handed_over(draft: ClusterDraft, broker: Registration) -> bool:
    """Whether every other broker that is there knows who leads now what this one led."""
    own = draft.sessions.of(broker)
    others = (draft.sessions.of(each) for number, each in draft.registrations.items() if draft.active(number))
    known = [-1 if other is None else other.metadata_offset for other in others]
    return own is not None and all(own.handover_offset <= offset for offset in known)


def note(draft: ClusterDraft, request: BrokerHeartbeatRequest, after: BrokerState) -> None:
    """That it was heard; who is told to stop is waited for no more, and may come back at once."""
    number = request.broker_id
    if after is BrokerState.SHUTDOWN_NOW:
        draft.heard.append(SessionEnded(number))
        return
    session = draft.sessions.of(draft.registrations[number])
    handover = NOT_HANDING_OVER
    if after is BrokerState.CONTROLLED_SHUTDOWN:
        begun = session is not None and session.handing_over
        handover = session.handover_offset if begun and session else draft.end_offset + len(draft.records) - 1
    draft.heard.append(BrokerHeard(number, request.broker_epoch, draft.now, request.current_metadata_offset, handover))

"""BrokerRegistration and UnregisterBroker: who belongs to the cluster, in which incarnation (KIP-631, KIP-858, KIP-966)."""

from __future__ import annotations

from collections import Counter

from ottla.coordination.cluster.features import METADATA_VERSION
from ottla.coordination.cluster.node_records import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller import comings
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.sessions import SessionEnded
from ottla.errors import ErrorCode
from ottla.kafka_id import LAST_RESERVED
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def register(draft: ClusterDraft, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
    """Let a broker be known: fenced until it has caught up, or as it is where it only says something new of itself."""
    try:
        check_identity(draft, request)
        check_directories(draft, request)
        check_features(draft, request)
    except Refusal as refusal:
        draft.notes.append(f"broker {request.broker_id} is turned away: {refusal}")
        return BrokerRegistrationResponse(error_code=refusal.code)
    record = amended(draft, request) or begun(draft, request)
    draft.write(record)
    return BrokerRegistrationResponse(broker_epoch=record.broker_epoch)


def check_identity(draft: ClusterDraft, request: BrokerRegistrationRequest) -> None:
    """Refuse a broker of another cluster, and a second one of the same number."""
    if request.cluster_id != draft.config.cluster_id:
        raise Refusal(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"it belongs to cluster {request.cluster_id!r}, this one is {draft.config.cluster_id!r}",
        )
    present = draft.registrations.get(request.broker_id)
    if present and present.incarnation_id != request.incarnation_id and draft.sessions.valid(present, draft.now):
        raise Refusal(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"another broker of that number was heard within {draft.config.session_timeout:g} s: stop that, or wait",
        )
    if request.is_migrating_zk_broker:
        raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, "it comes from ZooKeeper, which is no more")


def check_directories(draft: ClusterDraft, request: BrokerRegistrationRequest) -> None:
    """Refuse directories that could not be told apart."""
    for fault in directory_faults(draft, request):
        raise Refusal(ErrorCode.INVALID_REGISTRATION, fault)


def directory_faults(draft: ClusterDraft, request: BrokerRegistrationRequest) -> list[str]:
    if not request.log_dirs:
        return ["it names no directory"]
    owners = {place: each.broker_id for each in draft.registrations.values() for place in each.log_dirs}
    named = Counter(request.log_dirs)
    faults = [f"directory id {place} is reserved" for place in named if place <= LAST_RESERVED]
    faults += [f"directory {place} is named twice" for place, count in named.items() if count > 1]
    taken = ((place, owners.get(place, request.broker_id)) for place in named)
    return faults + [f"directory {place} is broker {owner}'s" for place, owner in taken if owner != request.broker_id]


def check_features(draft: ClusterDraft, request: BrokerRegistrationRequest | ControllerRegistrationRequest) -> None:
    """Refuse a broker or a controller that cannot run what the cluster runs."""
    finalized = draft.metadata.features
    levels = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    for name in [*levels, *(name for name in finalized if name not in levels and name != METADATA_VERSION)]:
        first, last = levels.get(name, (0, 0))
        if not first <= finalized.get(name, 0) <= last:
            raise Refusal(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the cluster runs {name} {finalized.get(name, 0)}, and it can run {first} to {last}",
            )
    if METADATA_VERSION not in levels:
        raise Refusal(ErrorCode.INVALID_REGISTRATION, f"it does not say which {METADATA_VERSION} it can run")


def amended(draft: ClusterDraft, request: BrokerRegistrationRequest) -> RegisterBrokerRecord | None:
    """The same incarnation, with something new; None where it is another."""
    present = draft.registrations.get(request.broker_id)
    if present is None or present.incarnation_id != request.incarnation_id:
        return None
    return record_of(request, present.epoch, present.fenced, present.in_controlled_shutdown)


def begun(draft: ClusterDraft, request: BrokerRegistrationRequest) -> RegisterBrokerRecord:
    """A new incarnation: the one before is taken out of sync first, and out of who may lead unless it was stopped cleanly."""
    present = draft.registrations.get(request.broker_id)
    clean = present is not None and present.epoch == request.previous_broker_epoch
    comings.restart(draft, request.broker_id, clean, request.log_dirs)
    draft.heard.append(SessionEnded(request.broker_id))
    return record_of(request, draft.end_offset + len(draft.records), True, False)


def record_of(
    request: BrokerRegistrationRequest, epoch: int, fenced: bool, in_controlled_shutdown: bool
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=[BrokerEndpoint(e.name, e.host, e.port, e.security_protocol) for e in request.listeners],
        features=[BrokerFeature(e.name, e.min_supported_version, e.max_supported_version) for e in request.features],
        rack=request.rack,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=sorted(request.log_dirs),
    )


def unregister(draft: ClusterDraft, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Strike a broker off the list."""
    if request.broker_id not in draft.registrations:
        return UnregisterBrokerResponse(
            error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
            error_message=f"no broker {request.broker_id} is registered",
        )
    comings.unregister(draft, request.broker_id)
    draft.heard.append(SessionEnded(request.broker_id))
    return UnregisterBrokerResponse()


def register_controller(draft: ClusterDraft, request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
    """Let a controller be known, if it can run what the cluster runs."""
    try:
        check_features(draft, request)
    except Refusal as refusal:
        draft.notes.append(f"controller {request.controller_id} is turned away: {refusal}")
        return ControllerRegistrationResponse(error_code=refusal.code, error_message=str(refusal))
    draft.write(
        RegisterControllerRecord(
            request.controller_id,
            request.incarnation_id,
            end_points=[ControllerEndpoint(e.name, e.host, e.port, e.security_protocol) for e in request.listeners],
            features=[
                ControllerFeature(e.name, e.min_supported_version, e.max_supported_version) for e in request.features
            ],
        )
    )
    return ControllerRegistrationResponse()

"""Registration and unregistration of brokers and controllers (KIP-631, KIP-858, KIP-919, KIP-966, KIP-1312).

A broker registers at each start, with a new incarnation id, its listeners, features and directories. Its broker epoch
is the offset of the registration record, and identifies the incarnation in later requests. A registration is rejected
while another incarnation has a valid session. The previous incarnation is removed from all ISRs, and from the ELRs too
unless the request proves a clean shutdown by the previous broker epoch. The broker remains fenced until it has caught
up.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ottla.coordination.cluster.features import METADATA_VERSION
from ottla.coordination.cluster.node_records import (
    BrokerEndpoint,
    BrokerFeature,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterControllerRecord,
)
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller import broker_changes
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.sessions import SessionEnded
from ottla.errors import ErrorCode
from ottla.kafka_id import LAST_RESERVED
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

if TYPE_CHECKING:
    from ottla.protocol.messages.controller_registration import (
        ControllerRegistrationRequest,
        ControllerRegistrationResponse,
    )
    from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
    from ottla.protocol.messages.unregister_controller import (
        UnregisterControllerRequest,
        UnregisterControllerResponse,
    )

UNREGISTRATION_SINCE = 33
"""The first metadata.version in which the registration of a controller can be removed (KIP-1312)."""


def register_broker(draft: ClusterDraft, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
    """Register a broker as fenced.

    A running incarnation that registers again keeps its state and updates its registration.
    """
    try:
        check_identity(draft, request)
        check_directories(draft, request)
        check_features(draft, request)
    except Refusal as refusal:
        draft.notes.append(f"broker {request.broker_id} is rejected: {refusal}")
        return BrokerRegistrationResponse(error_code=refusal.code)
    record = update_incarnation(draft, request) or start_incarnation(draft, request)
    draft.write(record)
    if request.broker_id == draft.config.own_broker:
        broker_changes.elect_missing_leaders(draft, request.broker_id)
    return BrokerRegistrationResponse(broker_epoch=record.broker_epoch)


def check_identity(draft: ClusterDraft, request: BrokerRegistrationRequest) -> None:
    """Raise Refusal for a broker of another cluster, or a second broker with the same id."""
    if request.cluster_id != draft.config.cluster_id:
        raise Refusal(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"it belongs to cluster {request.cluster_id!r}, this one is {draft.config.cluster_id!r}",
        )
    present = draft.registrations.get(request.broker_id)
    if present and present.incarnation_id != request.incarnation_id and draft.sessions.is_valid(present, draft.now):
        raise Refusal(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"another broker with this id sent a heartbeat within {draft.config.session_timeout:g} s: stop it, or wait",
        )
    if request.is_migrating_zk_broker:
        raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, "brokers of a ZooKeeper migration are not supported")


def check_directories(draft: ClusterDraft, request: BrokerRegistrationRequest) -> None:
    """Raise Refusal if the directory ids are missing, reserved, repeated or used by another broker."""
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
    """Raise Refusal if the broker or controller does not support a feature level of the cluster."""
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
        raise Refusal(ErrorCode.INVALID_REGISTRATION, f"it does not list the {METADATA_VERSION} that it supports")


def update_incarnation(draft: ClusterDraft, request: BrokerRegistrationRequest) -> RegisterBrokerRecord | None:
    """Return the updated registration of the running incarnation; None if the request is from a new one."""
    present = draft.registrations.get(request.broker_id)
    if present is None or present.incarnation_id != request.incarnation_id:
        return None
    return build_registration_record(request, present.epoch, present.fenced, present.in_controlled_shutdown)


def start_incarnation(draft: ClusterDraft, request: BrokerRegistrationRequest) -> RegisterBrokerRecord:
    """Return the record of a new incarnation.

    It follows the records by which the previous incarnation leaves the ISRs, and the ELRs unless it stopped cleanly.

    The broker in the process of the only controller remains the leader of its partitions: no other broker could have
    led them meanwhile. So its start writes one record, however many partitions there are.
    """
    if request.broker_id == draft.config.own_broker:
        return build_registration_record(request, draft.end_offset + len(draft.records), False, False)
    present = draft.registrations.get(request.broker_id)
    clean = present is not None and present.epoch == request.previous_broker_epoch
    broker_changes.restart_broker(draft, request.broker_id, clean, request.log_dirs)
    draft.session_changes.append(SessionEnded(request.broker_id))
    return build_registration_record(request, draft.end_offset + len(draft.records), True, False)


def build_registration_record(
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


def unregister_broker(draft: ClusterDraft, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Remove the registration of a broker, and its replicas from all ISRs and ELRs."""
    from ottla.protocol.messages.unregister_broker import UnregisterBrokerResponse

    if request.broker_id not in draft.registrations:
        return UnregisterBrokerResponse(
            error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
            error_message=f"no broker {request.broker_id} is registered",
        )
    broker_changes.unregister_broker(draft, request.broker_id)
    draft.session_changes.append(SessionEnded(request.broker_id))
    return UnregisterBrokerResponse()


def register_controller(draft: ClusterDraft, request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
    """Register a controller, if it supports the feature levels of the cluster (KIP-919)."""
    from ottla.protocol.messages.controller_registration import ControllerRegistrationResponse

    try:
        check_features(draft, request)
    except Refusal as refusal:
        draft.notes.append(f"controller {request.controller_id} is rejected: {refusal}")
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


def unregister_controller(draft: ClusterDraft, request: UnregisterControllerRequest) -> UnregisterControllerResponse:
    """Remove the registration of a controller that will not return. One that still runs registers again (KIP-1312)."""
    from ottla.protocol.messages.unregister_controller import UnregisterControllerResponse

    try:
        check_unregistration(draft, request.controller_id)
    except Refusal as refusal:
        return UnregisterControllerResponse(error_code=refusal.code, error_message=str(refusal))
    draft.write(UnregisterControllerRecord(request.controller_id))
    return UnregisterControllerResponse()


def check_unregistration(draft: ClusterDraft, controller: int) -> None:
    """Raise Refusal if the controller cannot be unregistered now."""
    version = draft.metadata.features.get(METADATA_VERSION, 0)
    if controller == draft.config.node_id:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"controller {controller} is the active one: stop it, so that another takes over, then unregister it",
        )
    if version < UNREGISTRATION_SINCE:
        raise Refusal(
            ErrorCode.UNSUPPORTED_VERSION,
            f"controllers can be unregistered since {METADATA_VERSION} {UNREGISTRATION_SINCE}, and the cluster is at {version}: raise it first",
        )
    if controller not in draft.metadata.controllers:
        raise Refusal(ErrorCode.CONTROLLER_ID_NOT_REGISTERED, f"no controller {controller} is registered")

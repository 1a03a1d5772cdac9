"""What a cluster of one broker decides as well, and what follows from it where there are several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ottla.coordination.cluster import features
from ottla.coordination.cluster.events import (
    AclsRequested,
    AclsUnwanted,
    ClientQuotasChanged,
    ConfigsChanged,
    ConfigsReplaced,
    Event,
    FeaturesRequested,
    ScramCredentialsRequested,
    TokenRequested,
    TokensUnwanted,
    TopicsUnwanted,
)
from ottla.coordination.cluster.features import ELR_VERSION, OF_A_BROKER, level_fault
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.min_isr import cleared_by, one_for_all
from ottla.coordination.machine import Decision, Reply
from ottla.errors import ErrorCode
from ottla.protocol.messages.update_features import FeatureUpdateKey
from ottla.protocol.schema import Message

ALIKE = (
    AclsRequested,
    AclsUnwanted,
    ClientQuotasChanged,
    ConfigsChanged,
    ConfigsReplaced,
    FeaturesRequested,
    ScramCredentialsRequested,
    TokenRequested,
    TokensUnwanted,
    TopicsUnwanted,
)
"""Not what lays partitions out: that is asked of the controller by Kafka's requests."""


def handed_on(metadata: ClusterMetadata, event: Event, now: float, config: ControllerConfig) -> Decision[Message]:
    """What one broker alone would decide, if all brokers can have it."""
    assert isinstance(event, ALIKE), f"{type(event).__name__} is decided for one broker alone"
    if isinstance(event, FeaturesRequested):
        return levels_changed(metadata, event, config)
    decision = metadata.decide(event, now)
    if not metadata.features.get(ELR_VERSION):
        return decision
    records = [each for record in decision.records for each in (record, *cleared_by(record))]
    return Decision(tuple(records), decision.replies, decision.alarms, decision.notes)


def levels_changed(metadata: ClusterMetadata, event: FeaturesRequested, config: ControllerConfig) -> Decision[Message]:
    """Other levels, and what has to be so before they can be."""
    fault = next((fault for update in event.updates for fault in level_faults(metadata, update)), None)
    if fault is not None:
        return Decision((), (Reply(event.ticket, Refusal(ErrorCode.INVALID_UPDATE_VERSION, fault)),))
    decision = features.decide(metadata.features, event, OF_A_BROKER)
    done = not event.validate_only and not isinstance(decision.replies[0].message, Refusal)
    wanted = any(each.feature == ELR_VERSION and each.max_version_level > 0 for each in event.updates)
    before = one_for_all(metadata.brokers, config) if done and wanted else []
    return Decision((*before, *decision.records), decision.replies)


def level_faults(metadata: ClusterMetadata, update: FeatureUpdateKey) -> Iterator[str]:
    """Brokers and controllers that could not run the level."""
    if level_fault(update.feature, update.max_version_level, OF_A_BROKER) is not None:
        return  # Told by the decision itself.
    for kind, number, levels in levels_of_nodes(metadata):
        first, last = levels.get(update.feature, (0, 0))
        if not first <= update.max_version_level <= last:
            yield (
                f"{update.feature} {update.max_version_level} is more than {kind} {number} can run, "
                f"which knows {first} to {last}: upgrade that {kind} first"
            )


def levels_of_nodes(metadata: ClusterMetadata) -> Iterator[tuple[str, int, Mapping[str, tuple[int, int]]]]:
    """What each can run that has registered."""
    for number, broker in sorted(metadata.registrations.items()):
        yield "broker", number, dict(broker.features)
    for number, controller in sorted(metadata.controllers.items()):
        known = {each.name: (each.min_supported_version, each.max_supported_version) for each in controller.features}
        yield "controller", number, known

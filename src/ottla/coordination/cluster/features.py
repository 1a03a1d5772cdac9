"""The feature levels that this version supports, and the decision of UpdateFeatures (KIP-584, KIP-1022). Pure.

A finalized level is in the metadata log and holds for every broker and controller. A level can be raised if all of them
support it; the caller checks that for the registered ones. `metadata.version` is lowered only to a level with the
same metadata: nothing that is in the log may lose its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.coordination.cluster.events import FeatureChangeRequested
from ottla.coordination.cluster.records import FeatureLevelRecord
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.machine import Decision, Reply
from ottla.errors import ErrorCode
from ottla.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesResponse,
)
from ottla.protocol.schema import Message


class Levels(NamedTuple):
    """The first and the last supported level of a feature; 0 means that the feature is off."""

    first: int
    last: int


METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
"""From 2 on each transaction has its own producer epoch, and the broker adds partitions to it (KIP-890)."""
GROUP_VERSION = "group.version"
"""From 1 on the group coordinator can assign the partitions of a group (KIP-848)."""
ELR_VERSION = "eligible.leader.replicas.version"
"""From 1 on replicas in the ELR may be elected. Controllers decide that; brokers only replay the result (KIP-966)."""
SHARE_VERSION = "share.version"
"""From 1 on there are share groups (KIP-932), from 2 on with dead letter queues (KIP-1191)."""
STREAMS_VERSION = "streams.version"
"""From 1 on there are streams groups (KIP-1071)."""
SUPPORTED: Mapping[str, Levels] = {
    GROUP_VERSION: Levels(0, 1),
    KRAFT_VERSION: Levels(0, 1),
    METADATA_VERSION: Levels(7, 33),
    SHARE_VERSION: Levels(0, 2),
    STREAMS_VERSION: Levels(0, 1),
    TRANSACTION_VERSION: Levels(0, 2),
}
"""The levels that a broker supports. Add a feature here only together with its behaviour."""
BROKER_LEVELS: Mapping[str, Levels] = {**SUPPORTED, ELR_VERSION: Levels(0, 1)}
"""The levels that a broker supports in a cluster with controllers."""
METADATA_CHANGES = frozenset((8, 11, 13, 14, 15, 17, 23, 30, 32, 33))
"""The levels of metadata.version, from 8 on, that allow records or values which earlier levels do not have, as in Kafka 4.4.

30 has cordoned directories (KIP-1066), 32 address ranges in ACLs (KIP-1276), 33 the removal of controllers (KIP-1312). A
downgrade must not cross one of them. 31 only changes the default of `share.version` (KIP-1191).
"""
REQUIRED_METADATA_VERSIONS: Mapping[str, int] = {ELR_VERSION: 23}
"""Feature → the lowest metadata.version with which it can be switched on."""
INITIAL_LEVELS: Mapping[str, int] = {
    GROUP_VERSION: 1,
    METADATA_VERSION: 33,
    SHARE_VERSION: 2,
    STREAMS_VERSION: 1,
    TRANSACTION_VERSION: 2,
}
"""The feature levels in the log of a new cluster."""
INITIAL_CLUSTER_LEVELS: Mapping[str, int] = {**INITIAL_LEVELS, ELR_VERSION: 1}
"""The feature levels of a new cluster with controllers, as in Kafka since 4.1."""
FIXED: Mapping[str, int] = {KRAFT_VERSION: 1}
"""Levels that are not in the log: the quorum has one voter, identified by its directory (KIP-853)."""
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
PER_FEATURE_UNTIL = 1
"""The last version of the UpdateFeatures response with a result per feature."""
ALL_OR_NONE = "no feature was changed, as one cannot be: "


def build_first_records(given: Sequence[Message] = ()) -> tuple[Message, ...]:
    """Return the first records of a cluster of one node.

    These are the given feature levels that are supported here, and the other given records. Without a supported
    metadata.version among them, the levels are those of a new cluster.
    """
    levels = [each for each in given if isinstance(each, FeatureLevelRecord)]
    others = [each for each in given if not isinstance(each, FeatureLevelRecord)]
    known = [each for each in levels if find_level_fault(each.name, each.feature_level, BROKER_LEVELS) is None]
    if not any(each.name == METADATA_VERSION for each in known):
        known = [FeatureLevelRecord(name, level) for name, level in INITIAL_CLUSTER_LEVELS.items()]
    return (*known, *others)


def decide(
    features: Mapping[str, int],
    event: FeatureChangeRequested,
    supported: Mapping[str, Levels] = SUPPORTED,
    fixed: Mapping[str, int] = FIXED,
) -> Decision[Message]:
    """Return the records of the requested levels: all of them, or none if the request is rejected.

    The reply is None, a Refusal of the whole request, or a mapping of the features that are rejected by themselves.
    Only unsupported features are rejected by themselves, and only if the response has a result per feature.

    `kafka-features upgrade --release-version` names every feature of a release together with its metadata.version.
    Features above the level of the release remain there.
    """
    records: dict[str, Message] = {}
    alone: dict[str, Refusal] = {}
    is_release = any(each.feature == METADATA_VERSION for each in event.updates)
    after = {**features, **{each.feature: each.max_version_level for each in event.updates}}
    try:
        for update in event.updates:
            is_upgrade = update.upgrade_type == UPGRADE and not update.allow_downgrade
            if is_release and is_upgrade and update.feature != METADATA_VERSION and is_lowering(features, update):
                continue
            if event.is_per_feature and update.feature not in supported:
                fault = find_level_fault(update.feature, update.max_version_level, supported)
                text = f"{update.feature}={update.max_version_level}: {fault}"
                alone[update.feature] = Refusal(ErrorCode.INVALID_UPDATE_VERSION, text)
                continue
            check_level({**features, **fixed}, update, supported, after.get(METADATA_VERSION, 0), fixed)
            if features.get(update.feature, 0) != update.max_version_level and update.feature not in fixed:
                records[update.feature] = FeatureLevelRecord(update.feature, update.max_version_level)
    except Refusal as refusal:
        return Decision((), (Reply(event.ticket, Refusal(refusal.code, ALL_OR_NONE + str(refusal))),))
    return Decision(() if event.validate_only else tuple(records.values()), (Reply(event.ticket, alone or None),))


def is_lowering(features: Mapping[str, int], update: FeatureUpdateKey) -> bool:
    """Return True if the update is to a level below the present one."""
    return 0 <= update.max_version_level < features.get(update.feature, 0)


def build_response(
    updates: Sequence[FeatureUpdateKey], result: Refusal | Mapping[str, Refusal] | None, version: int
) -> UpdateFeaturesResponse:
    """Return the UpdateFeatures response. Up to version 1 a success has a result per feature."""
    if isinstance(result, Refusal):
        return UpdateFeaturesResponse(error_code=result.code, error_message=str(result))
    if version > PER_FEATURE_UNTIL:
        return UpdateFeaturesResponse()
    results = [
        UpdatableFeatureResult(each.feature, refusal.code, str(refusal))
        if (refusal := (result or {}).get(each.feature))
        else UpdatableFeatureResult(each.feature)
        for each in updates
    ]
    return UpdateFeaturesResponse(results=results)


def check_level(
    features: Mapping[str, int],
    update: FeatureUpdateKey,
    supported: Mapping[str, Levels],
    metadata_version: int,
    fixed: Mapping[str, int],
) -> None:
    """Raise Refusal for an invalid level, or one that needs a later metadata.version than there will be."""
    name, level = update.feature, update.max_version_level
    fault = find_level_fault(name, level, supported) or find_direction_fault(features.get(name, 0), update, fixed)
    if not fault and level and metadata_version < REQUIRED_METADATA_VERSIONS.get(name, 0):
        fault = f"it needs {METADATA_VERSION} {REQUIRED_METADATA_VERSIONS[name]}, and that is at {metadata_version}: raise it first"
    if fault:
        raise Refusal(ErrorCode.INVALID_UPDATE_VERSION, f"{name}={level}: {fault}")
    crossed = find_crossed_change(features.get(name, 0), level) if name == METADATA_VERSION else None
    if crossed is not None:
        why = f"Metadata of level {crossed} may exist, and lower levels have no place for it."
        if update.upgrade_type == UNSAFE_DOWNGRADE:
            why += " A downgrade that loses metadata is not supported."
        raise Refusal(
            ErrorCode.INVALID_UPDATE_VERSION, f"{name} cannot be lowered from {features[name]} to {level}. {why}"
        )


def find_crossed_change(present: int, level: int) -> int | None:
    """Return the lowest level of metadata.version that prevents a downgrade; None if nothing prevents it."""
    return min((each for each in METADATA_CHANGES if level < each <= present), default=None)


def find_level_fault(name: str, level: int, supported: Mapping[str, Levels] = SUPPORTED) -> str | None:
    """Return the error if the feature has no such level; None if it has."""
    levels = supported.get(name)
    if level < 0:
        return f"level {level} does not exist: levels begin at 0"
    if levels is None:
        return f"this broker knows no such feature; there are {', '.join(supported)}"
    # Level 0 switches a feature off, if it can be off.
    if not levels.first <= level <= levels.last:
        return f"this broker has levels {levels.first} to {levels.last}, not {level}"
    return None


def find_direction_fault(present: int, update: FeatureUpdateKey, fixed: Mapping[str, int] = FIXED) -> str | None:
    """Return the error if the feature cannot be raised or lowered in this way; None if it can."""
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return f"upgrade type {update.upgrade_type} does not exist: take 1 (upgrade), 2 or 3 (downgrades)"
    if update.max_version_level > present and update.upgrade_type != UPGRADE:
        return f"it is at {present}: to raise it, request an upgrade (upgrade type 1)"
    if update.max_version_level >= present:
        return None
    if update.feature in fixed:
        return "this feature's level is fixed"
    if update.upgrade_type == UPGRADE and not update.allow_downgrade:
        return f"it is at {present}: to lower it, request a downgrade (upgrade type 2 or 3)"
    return None

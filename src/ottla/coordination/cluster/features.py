"""Features of a cluster: the levels this broker can run, and what to answer to a wish for others (KIP-584). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.coordination.cluster.events import FeaturesRequested
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
    """The levels of a feature that can be run; 0 is without it."""

    first: int
    last: int


METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
"""From 2 on each transaction has an epoch of its own, and the broker takes partitions into it (KIP-890)."""
GROUP_VERSION = "group.version"
"""From 1 on groups may have the coordinator assign their partitions (KIP-848)."""
ELR_VERSION = "eligible.leader.replicas.version"
"""From 1 on copies may lead that fell out of sync as the last ones; the controllers choose, a broker follows (KIP-966)."""
SUPPORTED: Mapping[str, Levels] = {
    GROUP_VERSION: Levels(0, 1),
    KRAFT_VERSION: Levels(0, 1),
    METADATA_VERSION: Levels(7, 30),
    TRANSACTION_VERSION: Levels(0, 2),
}
"""What this broker can run, with Kafka 4.3's levels. A feature that is named here is claimed: add it with what it means."""
OF_A_BROKER: Mapping[str, Levels] = {**SUPPORTED, ELR_VERSION: Levels(0, 1)}
"""The levels that a broker supports in a cluster with controllers."""
NOT_HERE: Mapping[str, Levels] = {"share.version": Levels(0, 0), "streams.version": Levels(0, 0)}
"""Features of Kafka 4.3 without which a cluster runs: share groups and groups of Kafka Streams. They can only be off here."""
ALONE: Mapping[str, int] = {ELR_VERSION: 1}
"""Further levels that are fixed for a broker that is its own controller: without other replicas none can be eligible."""
NEEDS: Mapping[str, int] = {ELR_VERSION: 23}
"""The metadata.version below which a feature cannot be."""
AT_FIRST: Mapping[str, int] = {
    GROUP_VERSION: 1,
    METADATA_VERSION: 30,
    TRANSACTION_VERSION: 2,
}
"""What a new cluster runs; written into its log."""
OF_SEVERAL: Mapping[str, int] = {**AT_FIRST, ELR_VERSION: 1}
"""What a new cluster runs that has controllers, as a new one of Kafka's since 4.1."""
FIXED: Mapping[str, int] = {KRAFT_VERSION: 1}
"""What is run without being in the log: the quorum is one voter, known by its directory (KIP-853)."""
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
PER_FEATURE_UNTIL = 1
"""The last version of an UpdateFeatures response that has a result per feature."""
ALL_OR_NONE = "no feature was changed, as one cannot be: "


def first_records(told: Sequence[Message] = ()) -> tuple[Message, ...]:
    """What the log of a new cluster begins with: the levels of today, or those that were told and are here, and users."""
    levels = [each for each in told if isinstance(each, FeatureLevelRecord)]
    others = [each for each in told if not isinstance(each, FeatureLevelRecord)]
    known = [each for each in levels if level_fault(each.name, each.feature_level) is None]
    if not any(each.name == METADATA_VERSION for each in known):
        known = [FeatureLevelRecord(name, level) for name, level in AT_FIRST.items()]
    return (*known, *others)


def decide(
    features: Mapping[str, int],
    event: FeaturesRequested,
    possible: Mapping[str, Levels] = SUPPORTED,
    fixed: Mapping[str, int] = FIXED,
) -> Decision[Message]:
    """Return the records of the requested levels, all or none.

    The reply is None, the Refusal of all, or a mapping of the features that are refused by themselves. Only features that are not supported at
    all are refused so, and only if the response can say it.

    `kafka-features upgrade --release-version` names every feature of a release with its metadata.version. Of these, the features that are
    not here stay off, as in a directory that is formatted with `--release-version`.
    """
    records: dict[str, Message] = {}
    alone: dict[str, Refusal] = {}
    is_release = any(each.feature == METADATA_VERSION for each in event.updates)
    after = {**features, **{each.feature: each.max_version_level for each in event.updates}}
    try:
        for update in event.updates:
            if update.feature in NOT_HERE and (is_release or update.max_version_level == 0):
                if features.get(update.feature, 0) != 0:
                    records[update.feature] = FeatureLevelRecord(update.feature, 0)
                continue
            if event.is_per_feature and update.feature not in possible:
                fault = level_fault(update.feature, update.max_version_level, possible)
                text = f"{update.feature}={update.max_version_level}: {fault}"
                alone[update.feature] = Refusal(ErrorCode.INVALID_UPDATE_VERSION, text)
                continue
            check({**features, **fixed}, update, possible, after.get(METADATA_VERSION, 0), fixed)
            if features.get(update.feature, 0) != update.max_version_level and update.feature not in fixed:
                records[update.feature] = FeatureLevelRecord(update.feature, update.max_version_level)
    except Refusal as refusal:
        return Decision((), (Reply(event.ticket, Refusal(refusal.code, ALL_OR_NONE + str(refusal))),))
    return Decision(() if event.validate_only else tuple(records.values()), (Reply(event.ticket, alone or None),))


def results_of(
    updates: Sequence[FeatureUpdateKey], answer: Refusal | Mapping[str, Refusal] | None, version: int
) -> UpdateFeaturesResponse:
    """Return the response to UpdateFeatures. Up to version 1 a success names each feature, with the refusals of single ones."""
    if isinstance(answer, Refusal):
        return UpdateFeaturesResponse(error_code=answer.code, error_message=str(answer))
    if version > PER_FEATURE_UNTIL:
        return UpdateFeaturesResponse()
    results = [
        UpdatableFeatureResult(each.feature, refusal.code, str(refusal))
        if (refusal := (answer or {}).get(each.feature))
        else UpdatableFeatureResult(each.feature)
        for each in updates
    ]
    return UpdateFeaturesResponse(results=results)


def check(
    features: Mapping[str, int],
    update: FeatureUpdateKey,
    possible: Mapping[str, Levels],
    metadata_version: int,
    fixed: Mapping[str, int],
) -> None:
    """Refuse a level that cannot be, by itself or at the metadata.version that there will be."""
    name, level = update.feature, update.max_version_level
    fault = level_fault(name, level, possible) or direction_fault(features.get(name, 0), update, fixed)
    if not fault and level and metadata_version < NEEDS.get(name, 0):
        fault = f"it needs {METADATA_VERSION} {NEEDS[name]}, and that is at {metadata_version}: raise it first"
    if fault:
        raise Refusal(ErrorCode.INVALID_UPDATE_VERSION, f"{name}={level}: {fault}")
    if name == METADATA_VERSION and level < features.get(name, 0):
        why = (
            "Metadata of later versions would be lost: a downgrade that loses nothing is not possible from there."
            if update.upgrade_type == SAFE_DOWNGRADE or update.allow_downgrade
            else "A downgrade that loses metadata is not offered."
        )
        raise Refusal(
            ErrorCode.INVALID_UPDATE_VERSION, f"{name} cannot go from {features[name]} down to {level}. {why}"
        )


def level_fault(name: str, level: int, possible: Mapping[str, Levels] = SUPPORTED) -> str | None:
    """Why there is no such level; None where there is."""
    levels = possible.get(name)
    if level < 0:
        return f"level {level} does not exist: levels begin at 0"
    if levels is None:
        return f"this broker knows no such feature; there are {', '.join(possible)}"
    # Level 0 removes a feature, where it may be missing.
    if not levels.first <= level <= levels.last:
        return f"this broker has levels {levels.first} to {levels.last}, not {level}"
    return None


def direction_fault(present: int, update: FeatureUpdateKey, fixed: Mapping[str, int] = FIXED) -> str | None:
    """Why a feature cannot go from its present level to the wished one in that way; None where it can."""
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return f"upgrade type {update.upgrade_type} does not exist: take 1 (upgrade), 2 or 3 (downgrades)"
    if update.max_version_level > present and update.upgrade_type != UPGRADE:
        return f"it is at {present}: to raise it, ask for an upgrade (upgrade type 1)"
    if update.max_version_level >= present:
        return None
    if update.feature in fixed:
        return "this feature's level is fixed"
    if update.upgrade_type == UPGRADE and not update.allow_downgrade:
        return f"it is at {present}: to lower it, ask for a downgrade (upgrade type 2 or 3)"
    return None

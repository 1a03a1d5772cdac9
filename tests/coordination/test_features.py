"""Features: the levels of a new cluster, and accepted and rejected changes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ottla.coordination.cluster.events import FeatureChangeRequested
from ottla.coordination.cluster.features import (
    ELR_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
    build_first_records,
    decide,
)
from ottla.coordination.cluster.records import FeatureLevelRecord, UserScramCredentialRecord
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import ErrorCode
from ottla.protocol.messages.update_features import FeatureUpdateKey
from ottla.protocol.schema import Message

UPGRADE, SAFE, UNSAFE = 1, 2, 3
UNKNOWN = (
    "this broker knows no such feature; there are group.version, kraft.version, metadata.version, share.version, "
    "streams.version, transaction.version"
)
PRESENT = {GROUP_VERSION: 0, METADATA_VERSION: 29, TRANSACTION_VERSION: 1}


def request_levels(
    *updates: FeatureUpdateKey, present: dict[str, int] = PRESENT, validate_only: bool = False
) -> tuple[Sequence[Message], str]:
    """Return the records and the errors of a request."""
    event = FeatureChangeRequested(1, updates, True) if validate_only else FeatureChangeRequested(1, updates)
    decision = decide(present, event)
    (answer,) = (reply.message for reply in decision.replies)
    if answer is None:
        return decision.records, ""
    assert isinstance(answer, Refusal)
    assert answer.code == ErrorCode.INVALID_UPDATE_VERSION
    return decision.records, str(answer).removeprefix("no feature was changed, as one cannot be: ")


def level(feature: str, number: int, way: int = UPGRADE) -> FeatureUpdateKey:
    return FeatureUpdateKey(feature, number, upgrade_type=way)


def test_a_new_cluster_has_the_levels_of_kafka() -> None:
    assert build_first_records() == (
        FeatureLevelRecord("group.version", 1),
        FeatureLevelRecord("metadata.version", 33),
        FeatureLevelRecord("share.version", 2),
        FeatureLevelRecord("streams.version", 1),
        FeatureLevelRecord("transaction.version", 2),
        FeatureLevelRecord("eligible.leader.replicas.version", 1),
    )


def test_a_new_cluster_uses_the_requested_levels_if_supported() -> None:
    known, user = FeatureLevelRecord("metadata.version", 25), UserScramCredentialRecord("alice", 1)
    unknown = FeatureLevelRecord("other.version", 1)
    assert build_first_records((unknown, known, user)) == (known, user)
    newer = FeatureLevelRecord("metadata.version", 34)
    assert build_first_records((newer, user)) == (*build_first_records(), user)


@pytest.mark.parametrize(
    ("feature", "number", "way"),
    [
        (GROUP_VERSION, 1, UPGRADE),
        (SHARE_VERSION, 1, UPGRADE),
        (SHARE_VERSION, 2, UPGRADE),
        (TRANSACTION_VERSION, 2, UPGRADE),
        (TRANSACTION_VERSION, 0, SAFE),
        (TRANSACTION_VERSION, 0, UNSAFE),
        (METADATA_VERSION, 30, UPGRADE),
        (METADATA_VERSION, 33, UPGRADE),
    ],
)
def test_a_valid_level_is_written(feature: str, number: int, way: int) -> None:
    assert request_levels(level(feature, number, way)) == ((FeatureLevelRecord(feature, number),), "")


def test_the_lowest_levels_can_be_requested_for_a_new_cluster() -> None:
    lowest = (level(GROUP_VERSION, 0), level(METADATA_VERSION, 7), level(TRANSACTION_VERSION, 0))
    assert request_levels(*lowest, present={}) == ((FeatureLevelRecord(METADATA_VERSION, 7),), "")


def test_an_unsupported_feature_is_rejected_alone_if_each_has_a_result() -> None:
    updates = (level(GROUP_VERSION, 1), level("other.version", 1), level(TRANSACTION_VERSION, 2))
    decision = decide(PRESENT, FeatureChangeRequested(1, updates, is_per_feature=True))
    assert decision.records == (FeatureLevelRecord(GROUP_VERSION, 1), FeatureLevelRecord(TRANSACTION_VERSION, 2))
    (answer,) = (reply.message for reply in decision.replies)
    assert isinstance(answer, dict)
    assert {name: str(refusal) for name, refusal in answer.items()} == {"other.version": f"other.version=1: {UNKNOWN}"}
    looked = decide(PRESENT, FeatureChangeRequested(1, updates, True, True))
    assert looked.records == ()
    assert [reply.message.keys() for reply in looked.replies if isinstance(reply.message, dict)] == [answer.keys()]


def test_an_invalid_change_of_a_supported_feature_rejects_all_changes() -> None:
    updates = (level(GROUP_VERSION, 2), level("other.version", 1), level(TRANSACTION_VERSION, 2))
    decision = decide(PRESENT, FeatureChangeRequested(1, updates, is_per_feature=True))
    assert decision.records == ()
    (answer,) = (reply.message for reply in decision.replies)
    assert isinstance(answer, Refusal)
    assert "group.version=2" in str(answer)


@pytest.mark.parametrize("is_per_feature", [True, False])
def test_a_release_upgrade_raises_each_feature(is_per_feature: bool) -> None:
    release = (level(METADATA_VERSION, 30), level(SHARE_VERSION, 1), level(STREAMS_VERSION, 1))
    decision = decide(PRESENT, FeatureChangeRequested(1, release, is_per_feature=is_per_feature))
    assert decision.records == (
        FeatureLevelRecord(METADATA_VERSION, 30),
        FeatureLevelRecord(SHARE_VERSION, 1),
        FeatureLevelRecord(STREAMS_VERSION, 1),
    )
    assert [reply.message for reply in decision.replies] == [None]


def test_features_can_be_switched_off() -> None:
    off = (level("share.version", 0, SAFE), level("streams.version", 0, UNSAFE))
    assert request_levels(*off) == ((), "")
    for name in ("share.version", "streams.version"):
        assert request_levels(*off, present={**PRESENT, name: 1}) == ((FeatureLevelRecord(name, 0),), "")


def test_a_release_upgrade_leaves_features_above_its_level() -> None:
    present = {**PRESENT, SHARE_VERSION: 2}
    release = (level(METADATA_VERSION, 30), level(SHARE_VERSION, 1))
    assert request_levels(*release, present=present) == ((FeatureLevelRecord(METADATA_VERSION, 30),), "")
    lowered = request_levels(level(SHARE_VERSION, 1), present=present)
    assert lowered == ((), "share.version=1: it is at 2: to lower it, request a downgrade (upgrade type 2 or 3)")


def test_an_unchanged_level_is_not_written_again() -> None:
    assert request_levels(
        level(METADATA_VERSION, 29), level(TRANSACTION_VERSION, 1, SAFE), level(KRAFT_VERSION, 1)
    ) == ((), "")


def test_validate_only_writes_nothing_and_returns_the_same_errors() -> None:
    assert request_levels(level(GROUP_VERSION, 1), validate_only=True) == ((), "")
    assert "knows no such feature" in request_levels(level("foo", 1), validate_only=True)[1]


def test_an_old_request_may_allow_a_downgrade_without_an_upgrade_type() -> None:
    asked = FeatureUpdateKey(TRANSACTION_VERSION, 0, allow_downgrade=True)
    assert request_levels(asked) == ((FeatureLevelRecord(TRANSACTION_VERSION, 0),), "")


def test_one_invalid_change_rejects_all_changes() -> None:
    records, why = request_levels(level(GROUP_VERSION, 1), level("foo", 1))
    assert (records, why) == ((), f"foo=1: {UNKNOWN}")


@pytest.mark.parametrize(
    ("update", "why"),
    [
        (level("foo", 0), UNKNOWN),
        (level("foo", -1), "level -1 does not exist: levels begin at 0"),
        (level(GROUP_VERSION, 2), "this broker has levels 0 to 1, not 2"),
        (level(KRAFT_VERSION, 2), "this broker has levels 0 to 1, not 2"),
        (level(TRANSACTION_VERSION, 3), "this broker has levels 0 to 2, not 3"),
        (level(METADATA_VERSION, 34), "this broker has levels 7 to 33, not 34"),
        (level(METADATA_VERSION, 6, SAFE), "this broker has levels 7 to 33, not 6"),
        (level(GROUP_VERSION, 1, 0), "upgrade type 0 does not exist: take 1 (upgrade), 2 or 3 (downgrades)"),
        (level(GROUP_VERSION, 1, 4), "upgrade type 4 does not exist: take 1 (upgrade), 2 or 3 (downgrades)"),
        (level(TRANSACTION_VERSION, 0), "it is at 1: to lower it, request a downgrade (upgrade type 2 or 3)"),
        (level(KRAFT_VERSION, 0, SAFE), "this feature's level is fixed"),
        (level(METADATA_VERSION, 30, SAFE), "it is at 29: to raise it, request an upgrade (upgrade type 1)"),
        (level(TRANSACTION_VERSION, 2, UNSAFE), "it is at 1: to raise it, request an upgrade (upgrade type 1)"),
        (level(ELR_VERSION, 1), UNKNOWN),
    ],
)
def test_an_invalid_level_is_rejected(update: FeatureUpdateKey, why: str) -> None:
    assert request_levels(update) == ((), f"{update.feature}={update.max_version_level}: {why}")


@pytest.mark.parametrize("way", [SAFE, UNSAFE])
@pytest.mark.parametrize(
    ("present", "lower", "crossed"), [(33, 32, 33), (33, 31, 32), (32, 31, 32), (31, 29, 30), (29, 22, 23), (8, 7, 8)]
)
def test_a_downgrade_to_a_level_with_less_metadata_is_rejected(
    present: int, lower: int, crossed: int, way: int
) -> None:
    records, refusal = request_levels(level(METADATA_VERSION, lower, way), present={METADATA_VERSION: present})
    assert records == ()
    reason = f"Metadata of level {crossed} may exist, and lower levels have no place for it."
    unsafe = " A downgrade that loses metadata is not supported." if way == UNSAFE else ""
    assert refusal == f"metadata.version cannot be lowered from {present} to {lower}. {reason}{unsafe}"


@pytest.mark.parametrize("way", [SAFE, UNSAFE])
@pytest.mark.parametrize(("present", "lower"), [(31, 30), (29, 23), (22, 17), (10, 8)])
def test_a_downgrade_to_a_level_with_the_same_metadata_is_written(present: int, lower: int, way: int) -> None:
    written = request_levels(level(METADATA_VERSION, lower, way), present={METADATA_VERSION: present})
    assert written == ((FeatureLevelRecord(METADATA_VERSION, lower),), "")


def test_an_old_request_lowers_the_metadata_version_as_far_as_a_new_one() -> None:
    lower, too_low = (FeatureUpdateKey(METADATA_VERSION, each, allow_downgrade=True) for each in (30, 29))
    present = {METADATA_VERSION: 31}
    assert request_levels(lower, present=present) == ((FeatureLevelRecord(METADATA_VERSION, 30),), "")
    assert "Metadata of level 30 may exist" in request_levels(too_low, present=present)[1]

"""Features: what a new cluster runs, and which wishes for other levels are granted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ottla.coordination.cluster.events import FeaturesRequested
from ottla.coordination.cluster.features import (
    ELR_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    TRANSACTION_VERSION,
    decide,
    first_records,
)
from ottla.coordination.cluster.records import FeatureLevelRecord, UserScramCredentialRecord
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import ErrorCode
from ottla.protocol.messages.update_features import FeatureUpdateKey
from ottla.protocol.schema import Message

UPGRADE, SAFE, UNSAFE = 1, 2, 3
UNKNOWN = (
    "this broker knows no such feature; there are group.version, kraft.version, metadata.version, transaction.version"
)
PRESENT = {GROUP_VERSION: 0, METADATA_VERSION: 29, TRANSACTION_VERSION: 1}


def wish(
    *updates: FeatureUpdateKey, present: dict[str, int] = PRESENT, validate_only: bool = False
) -> tuple[Sequence[Message], str]:
    """The records that come of it, and why not."""
    event = FeaturesRequested(1, updates, True) if validate_only else FeaturesRequested(1, updates)
    decision = decide(present, event)
    (answer,) = (reply.message for reply in decision.replies)
    if answer is None:
        return decision.records, ""
    assert isinstance(answer, Refusal)
    assert answer.code == ErrorCode.INVALID_UPDATE_VERSION
    return decision.records, str(answer).removeprefix("no feature was changed, as one cannot be: ")


def level(feature: str, number: int, way: int = UPGRADE) -> FeatureUpdateKey:
    return FeatureUpdateKey(feature, number, upgrade_type=way)


def test_a_new_cluster_runs_what_kafka_4_3_does() -> None:
    assert first_records() == (
        FeatureLevelRecord("group.version", 1),
        FeatureLevelRecord("metadata.version", 30),
        FeatureLevelRecord("transaction.version", 2),
    )


def test_a_new_cluster_runs_what_was_told_as_far_as_that_is_here() -> None:
    known, user = FeatureLevelRecord("metadata.version", 25), UserScramCredentialRecord("alice", 1)
    unknown = FeatureLevelRecord("share.version", 1)
    assert first_records((unknown, known, user)) == (known, user)
    newer = FeatureLevelRecord("metadata.version", 31)
    assert first_records((newer, user)) == (*first_records(), user)


@pytest.mark.parametrize(
    ("feature", "number", "way"),
    [
        (GROUP_VERSION, 1, UPGRADE),
        (TRANSACTION_VERSION, 2, UPGRADE),
        (TRANSACTION_VERSION, 0, SAFE),
        (TRANSACTION_VERSION, 0, UNSAFE),
        (METADATA_VERSION, 30, UPGRADE),
    ],
)
def test_a_level_that_can_be_is_written(feature: str, number: int, way: int) -> None:
    assert wish(level(feature, number, way)) == ((FeatureLevelRecord(feature, number),), "")


def test_the_lowest_levels_can_be_wished_for_by_who_has_none() -> None:
    lowest = (level(GROUP_VERSION, 0), level(METADATA_VERSION, 7), level(TRANSACTION_VERSION, 0))
    assert wish(*lowest, present={}) == ((FeatureLevelRecord(METADATA_VERSION, 7),), "")


def test_a_feature_that_is_not_supported_is_refused_by_itself_where_the_response_has_a_result_for_each() -> None:
    updates = (level(GROUP_VERSION, 1), level("share.version", 1), level(TRANSACTION_VERSION, 2))
    decision = decide(PRESENT, FeaturesRequested(1, updates, is_per_feature=True))
    assert decision.records == (FeatureLevelRecord(GROUP_VERSION, 1), FeatureLevelRecord(TRANSACTION_VERSION, 2))
    (answer,) = (reply.message for reply in decision.replies)
    assert isinstance(answer, dict)
    assert {name: str(refusal) for name, refusal in answer.items()} == {"share.version": f"share.version=1: {UNKNOWN}"}
    looked = decide(PRESENT, FeaturesRequested(1, updates, True, True))
    assert looked.records == ()
    assert [reply.message.keys() for reply in looked.replies if isinstance(reply.message, dict)] == [answer.keys()]


def test_a_supported_feature_that_cannot_change_keeps_all_others_from_it_also_where_each_has_a_result() -> None:
    updates = (level(GROUP_VERSION, 2), level("share.version", 1), level(TRANSACTION_VERSION, 2))
    decision = decide(PRESENT, FeaturesRequested(1, updates, is_per_feature=True))
    assert decision.records == ()
    (answer,) = (reply.message for reply in decision.replies)
    assert isinstance(answer, Refusal)
    assert "group.version=2" in str(answer)


@pytest.mark.parametrize("is_per_feature", [True, False])
def test_features_that_are_not_here_stay_off_when_the_cluster_goes_to_a_release(is_per_feature: bool) -> None:
    release = (level(METADATA_VERSION, 30), level("share.version", 1), level("streams.version", 1))
    decision = decide(PRESENT, FeaturesRequested(1, release, is_per_feature=is_per_feature))
    assert decision.records == (FeatureLevelRecord(METADATA_VERSION, 30),)
    assert [reply.message for reply in decision.replies] == [None]


def test_features_that_are_not_here_can_be_switched_off() -> None:
    off = (level("share.version", 0, SAFE), level("streams.version", 0, UNSAFE))
    assert wish(*off) == ((), "")
    assert wish(*off, present={**PRESENT, "share.version": 1}) == ((FeatureLevelRecord("share.version", 0),), "")
    assert wish(level("share.version", 1)) == ((), f"share.version=1: {UNKNOWN}")


def test_what_is_so_already_is_not_written_again() -> None:
    assert wish(level(METADATA_VERSION, 29), level(TRANSACTION_VERSION, 1, SAFE), level(KRAFT_VERSION, 1)) == ((), "")


def test_looking_only_writes_nothing_and_refuses_the_same() -> None:
    assert wish(level(GROUP_VERSION, 1), validate_only=True) == ((), "")
    assert "knows no such feature" in wish(level("foo", 1), validate_only=True)[1]


def test_an_old_question_may_allow_a_downgrade_without_naming_a_way() -> None:
    asked = FeatureUpdateKey(TRANSACTION_VERSION, 0, allow_downgrade=True)
    assert wish(asked) == ((FeatureLevelRecord(TRANSACTION_VERSION, 0),), "")


def test_one_that_cannot_be_keeps_the_others_from_being_changed() -> None:
    records, why = wish(level(GROUP_VERSION, 1), level("foo", 1))
    assert (records, why) == ((), f"foo=1: {UNKNOWN}")


@pytest.mark.parametrize(
    ("update", "why"),
    [
        (level("foo", 0), UNKNOWN),
        (level("foo", -1), "level -1 does not exist: levels begin at 0"),
        (level(GROUP_VERSION, 2), "this broker has levels 0 to 1, not 2"),
        (level(KRAFT_VERSION, 2), "this broker has levels 0 to 1, not 2"),
        (level(TRANSACTION_VERSION, 3), "this broker has levels 0 to 2, not 3"),
        (level(METADATA_VERSION, 31), "this broker has levels 7 to 30, not 31"),
        (level(METADATA_VERSION, 6, SAFE), "this broker has levels 7 to 30, not 6"),
        (level(GROUP_VERSION, 1, 0), "upgrade type 0 does not exist: take 1 (upgrade), 2 or 3 (downgrades)"),
        (level(GROUP_VERSION, 1, 4), "upgrade type 4 does not exist: take 1 (upgrade), 2 or 3 (downgrades)"),
        (level(TRANSACTION_VERSION, 0), "it is at 1: to lower it, ask for a downgrade (upgrade type 2 or 3)"),
        (level(KRAFT_VERSION, 0, SAFE), "this feature's level is fixed"),
        (level(METADATA_VERSION, 30, SAFE), "it is at 29: to raise it, ask for an upgrade (upgrade type 1)"),
        (level(TRANSACTION_VERSION, 2, UNSAFE), "it is at 1: to raise it, ask for an upgrade (upgrade type 1)"),
        (level(ELR_VERSION, 1), UNKNOWN),
    ],
)
def test_a_level_that_cannot_be_is_refused(update: FeatureUpdateKey, why: str) -> None:
    assert wish(update) == ((), f"{update.feature}={update.max_version_level}: {why}")


@pytest.mark.parametrize(
    ("update", "why"),
    [
        (level(METADATA_VERSION, 28, SAFE), "a downgrade that loses nothing is not possible from there."),
        (FeatureUpdateKey(METADATA_VERSION, 28, allow_downgrade=True), "a downgrade that loses nothing is not"),
        (level(METADATA_VERSION, 28, UNSAFE), "A downgrade that loses metadata is not offered."),
    ],
)
def test_metadata_are_not_lost_by_going_back(update: FeatureUpdateKey, why: str) -> None:
    records, refusal = wish(update)
    assert records == ()
    assert refusal.startswith("metadata.version cannot go from 29 down to 28. ")
    assert why in refusal

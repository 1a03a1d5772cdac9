"""UpdateFeatures: valid and invalid levels.

Error codes, and texts that do not name the implementation, are those of Kafka 4.4.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.wire import Wire

UPGRADE, SAFE, UNSAFE = 1, 2, 3


@pytest.mark.parametrize(
    ("feature", "level", "kind", "reason"),
    [
        ("foo", 1, UPGRADE, "knows no such feature"),
        ("metadata.version", 300, UPGRADE, "has levels 7 to 33, not 300"),
        ("metadata.version", 0, SAFE, "has levels 7 to 33, not 0"),
        ("metadata.version", -1, UPGRADE, "level -1 does not exist"),
        ("metadata.version", 29, UPGRADE, "it is at 33: to lower it, request a downgrade"),
        ("metadata.version", 32, SAFE, "Metadata of level 33 may exist"),
        ("metadata.version", 32, UNSAFE, "that loses metadata is not supported"),
        ("metadata.version", 33, 9, "upgrade type 9 does not exist"),
        ("kraft.version", 0, UNSAFE, "this feature's level is fixed"),
        ("eligible.leader.replicas.version", 2, UPGRADE, "has levels 0 to 1, not 2"),
    ],
)
def test_an_invalid_level_is_rejected(wire: Wire, feature: str, level: int, kind: int, reason: str) -> None:
    wish = FeatureUpdateKey(feature, level, upgrade_type=kind)
    response = wire.ask(UpdateFeaturesRequest(feature_updates=[wish]), 2)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert response.error_message.startswith("no feature was changed, as one cannot be")
    assert reason in response.error_message


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_present_level_may_be_requested(wire: Wire, version: int) -> None:
    levels = {"metadata.version": 33, "kraft.version": 1, "eligible.leader.replicas.version": 1}
    wishes = [FeatureUpdateKey(name, level) for name, level in levels.items()]
    response = wire.ask(UpdateFeaturesRequest(feature_updates=wishes), version)
    assert response.error_code == 0
    assert [result.feature for result in response.results] == (list(levels) if version < 2 else [])


@pytest.mark.parametrize("validate_only", [True, False])
def test_up_to_version_1_an_unsupported_feature_is_rejected_alone_and_the_others_are_changed(
    validate_only: bool,
) -> None:
    wishes = [
        FeatureUpdateKey("transaction.version", 1, upgrade_type=SAFE),
        FeatureUpdateKey("other.version", 1, upgrade_type=UPGRADE),
    ]
    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        response = wire.ask(UpdateFeaturesRequest(feature_updates=wishes, validate_only=validate_only), 1)
        reported = wire.ask(ApiVersionsRequest("a", "1"), 4)
    assert response.error_code == 0
    assert [(each.feature, each.error_code) for each in response.results] == [
        ("transaction.version", 0),
        ("other.version", ErrorCode.INVALID_UPDATE_VERSION),
    ]
    assert "knows no such feature" in response.results[1].error_message
    levels = {each.name: each.max_version_level for each in reported.finalized_features}
    assert levels["transaction.version"] == (2 if validate_only else 1)


def test_a_level_of_the_only_node_can_be_lowered_and_stays_lowered(tmp_path: Path) -> None:
    name = "eligible.leader.replicas.version"
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wish = FeatureUpdateKey(name, 0, upgrade_type=SAFE)
        assert wire.ask(UpdateFeaturesRequest(feature_updates=[wish]), 2).error_code == 0
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        response = wire.ask(ApiVersionsRequest("a", "1"), 4)
    assert name not in {feature.name for feature in response.finalized_features}


def test_levels_persist_after_a_restart_and_their_epoch_increases_with_the_metadata_log(tmp_path: Path) -> None:
    answers = []
    for _ in range(2):
        with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
            answers.append(wire.ask(ApiVersionsRequest("a", "1"), 4))
    before, after = ({each.name: each.max_version_level for each in one.finalized_features} for one in answers)
    assert before["metadata.version"] == 33
    assert before == after
    assert answers[0].finalized_features_epoch < answers[1].finalized_features_epoch

"""UpdateFeatures: which levels may be wished for. Codes and, where they do not say who answers, texts are Kafka 4.3's."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.embedded import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.wire import Wire

UPGRADE, SAFE, UNSAFE = 1, 2, 3


@pytest.mark.parametrize(
    ("feature", "level", "kind", "reason"),
    [
        ("foo", 1, UPGRADE, "knows no such feature"),
        ("metadata.version", 300, UPGRADE, "has levels 7 to 30, not 300"),
        ("metadata.version", 0, SAFE, "has levels 7 to 30, not 0"),
        ("metadata.version", -1, UPGRADE, "level -1 does not exist"),
        ("metadata.version", 29, UPGRADE, "it is at 30: to lower it, ask for a downgrade"),
        ("metadata.version", 29, SAFE, "later versions would be lost"),
        ("metadata.version", 29, UNSAFE, "that loses metadata is not offered"),
        ("metadata.version", 30, 9, "upgrade type 9 does not exist"),
        ("kraft.version", 0, UNSAFE, "this feature's level is fixed"),
        ("eligible.leader.replicas.version", 0, UNSAFE, "this feature's level is fixed"),
    ],
)
def test_a_level_that_cannot_be_is_refused(wire: Wire, feature: str, level: int, kind: int, reason: str) -> None:
    wish = FeatureUpdateKey(feature, level, upgrade_type=kind)
    response = wire.ask(UpdateFeaturesRequest(feature_updates=[wish]), 2)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert response.error_message.startswith("no feature was changed, as one cannot be")
    assert reason in response.error_message


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_present_level_may_be_wished_for(wire: Wire, version: int) -> None:
    levels = {"metadata.version": 30, "kraft.version": 1, "eligible.leader.replicas.version": 1}
    wishes = [FeatureUpdateKey(name, level) for name, level in levels.items()]
    response = wire.ask(UpdateFeaturesRequest(feature_updates=wishes), version)
    assert response.error_code == 0
    assert [result.feature for result in response.results] == (list(levels) if version < 2 else [])


@pytest.mark.parametrize("validate_only", [True, False])
def test_up_to_version_1_an_unsupported_feature_is_refused_by_itself_and_the_others_are_changed(
    validate_only: bool,
) -> None:
    wishes = [
        FeatureUpdateKey("transaction.version", 1, upgrade_type=SAFE),
        FeatureUpdateKey("share.version", 1, upgrade_type=UPGRADE),
    ]
    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        response = wire.ask(UpdateFeaturesRequest(feature_updates=wishes, validate_only=validate_only), 1)
        told = wire.ask(ApiVersionsRequest("a", "1"), 4)
    assert response.error_code == 0
    assert [(each.feature, each.error_code) for each in response.results] == [
        ("transaction.version", 0),
        ("share.version", ErrorCode.INVALID_UPDATE_VERSION),
    ]
    assert "knows no such feature" in response.results[1].error_message
    levels = {each.name: each.max_version_level for each in told.finalized_features}
    assert levels["transaction.version"] == (2 if validate_only else 1)


def test_levels_are_there_after_a_restart_and_written_once(tmp_path: Path) -> None:
    epochs = []
    for _ in range(2):
        with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
            response = wire.ask(ApiVersionsRequest("a", "1"), 4)
            epochs.append(response.finalized_features_epoch)
            assert {"metadata.version": 30}.items() <= {
                feature.name: feature.max_version_level for feature in response.finalized_features
            }.items()
    assert epochs[0] == epochs[1]

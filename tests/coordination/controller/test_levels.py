"""The level of `eligible.leader.replicas.version` is raised and lowered in a running cluster, as by Kafka's
controllers.
"""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.settings.dynamic_config import dynamic_options
from ottla.coordination.cluster.events import ConfigChangeRequested, FeatureChangeRequested
from ottla.coordination.cluster.features import ELR_VERSION, METADATA_VERSION
from ottla.coordination.cluster.records import BROKER_RESOURCE, ConfigRecord, FeatureLevelRecord
from ottla.errors import ErrorCode
from ottla.protocol.messages.incremental_alter_configs import DELETE, SET, AlterableConfig, AlterConfigsResource
from ottla.protocol.messages.update_features import FeatureUpdateKey
from tests.coordination.controller.cluster import Cluster

UPGRADE, SAFE = 1, 2
MIN_ISR = "min.insync.replicas"


def level(cluster: Cluster, number: int, way: int = UPGRADE, **said: Any) -> Any:
    return cluster.happen(FeatureChangeRequested(1, [FeatureUpdateKey(ELR_VERSION, number, upgrade_type=way)], **said))


def min_isr_of(cluster: Cluster, broker: str, value: str | None) -> Any:
    """Request a change of min.insync.replicas and return the error, if any."""
    config = AlterableConfig(MIN_ISR, DELETE if value is None else SET, value)
    change = ConfigChangeRequested(
        1, [AlterConfigsResource(BROKER_RESOURCE, broker, [config])], node_id=None, broker_options=dynamic_options()
    )
    (refusal,) = cluster.happen(change)
    return refusal


def test_raising_the_elr_level_unifies_min_insync_replicas() -> None:
    cluster = Cluster(1, 2, elr=False, min_isr=2)
    assert min_isr_of(cluster, "2", "1") is None
    written = len(cluster.log)
    assert level(cluster, 1) is None
    assert cluster.log[written:] == [
        ConfigRecord(BROKER_RESOURCE, "", MIN_ISR, "2"),
        ConfigRecord(BROKER_RESOURCE, "2", MIN_ISR, None),
        FeatureLevelRecord(ELR_VERSION, 1),
    ]


def test_an_existing_cluster_wide_min_isr_is_kept() -> None:
    cluster = Cluster(1, elr=False, min_isr=2)
    assert min_isr_of(cluster, "", "3") is None
    written = len(cluster.log)
    assert level(cluster, 1) is None
    assert cluster.log[written:] == [FeatureLevelRecord(ELR_VERSION, 1)]


def test_a_repeated_level_writes_a_missing_cluster_wide_min_isr() -> None:
    cluster = Cluster(1, min_isr=2)
    written = len(cluster.log)
    assert level(cluster, 1) is None
    assert cluster.log[written:] == [ConfigRecord(BROKER_RESOURCE, "", MIN_ISR, "2")]


def test_a_validated_level_writes_nothing() -> None:
    cluster = Cluster(1, elr=False)
    written = len(cluster.log)
    assert level(cluster, 1, validate_only=True) is None
    assert len(cluster.log) == written


@pytest.mark.parametrize(
    ("broker", "value", "why"),
    [("1", "2", "change it for all brokers, or for a topic"), ("", None, "there has to be one: set another")],
)
def test_a_single_broker_has_no_min_isr_of_its_own_while_elr_is_enabled(
    broker: str, value: str | None, why: str
) -> None:
    cluster = Cluster(1, elr=False)
    assert level(cluster, 1) is None
    refusal = min_isr_of(cluster, broker, value)
    assert (refusal.code, why in str(refusal)) == (ErrorCode.INVALID_CONFIG, True)
    assert min_isr_of(cluster, "", "2") is None


def test_elr_requires_a_metadata_version_that_can_be_raised_in_the_same_request() -> None:
    cluster = Cluster(1, elr=False)
    cluster.write([FeatureLevelRecord(METADATA_VERSION, 22)])
    assert "it needs metadata.version 23, and that is at 22: raise it first" in str(level(cluster, 1))
    both = [FeatureUpdateKey(METADATA_VERSION, 23), FeatureUpdateKey(ELR_VERSION, 1)]
    assert cluster.happen(FeatureChangeRequested(1, both)) is None


def test_a_level_is_lowered_only_by_a_downgrade_request() -> None:
    cluster = Cluster(1)
    assert "to lower it, request a downgrade" in str(level(cluster, 0))
    assert level(cluster, 0, SAFE) is None
    assert cluster.log[-1] == FeatureLevelRecord(ELR_VERSION, 0)
    assert "to raise it, request an upgrade" in str(level(cluster, 1, SAFE))


def test_the_last_isr_member_leads_again_although_elr_was_disabled_meanwhile() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2))
    cluster.beat(2, want_shut_down=True)
    cluster.wait(20)
    assert (cluster.partition().isr, cluster.partition().elr, cluster.partition().leader) == ((), (1,), -1)
    assert level(cluster, 0, SAFE) is None
    cluster.beat(2)
    assert cluster.partition().leader == -1
    cluster.beat(1)
    assert (cluster.partition().isr, cluster.partition().elr, cluster.partition().leader) == ((1,), (), 1)


def test_the_first_controller_of_a_cluster_with_elr_writes_the_cluster_wide_min_isr() -> None:
    cluster = Cluster.empty()
    cluster.fail_over()
    assert cluster.log[-1] == ConfigRecord(BROKER_RESOURCE, "", MIN_ISR, "1")

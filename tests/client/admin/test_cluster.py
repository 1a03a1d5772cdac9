"""Describe and change a cluster, its features, its quorum and its log directories."""

from __future__ import annotations

import uuid

import pytest

from ottla import Admin
from ottla.client.admin import FeatureUpdate, ReplicaLogDirInfo, TopicPartitionReplica
from ottla.client.admin.quorum import format_directory_id, parse_directory_id
from ottla.errors import ErrorCode, KafkaError


def test_a_cluster_has_a_name_brokers_and_a_controller(admin: Admin) -> None:
    cluster = admin.describe_cluster()
    assert cluster.controller in cluster.nodes
    assert len(str(cluster.cluster_id)) == 22


def test_one_broker_alone_is_its_own_quorum(admin: Admin) -> None:
    quorum = admin.describe_metadata_quorum()
    (voter,) = quorum.voters
    assert voter.replica_id == quorum.leader_id
    assert voter.log_end_offset >= quorum.high_watermark > 0
    assert list(quorum.nodes[quorum.leader_id]) == []  # no controller can connect to it
    assert parse_directory_id(voter.replica_directory_id).int
    assert quorum.observers == ()


def test_feature_levels_are_upgraded_and_downgraded(admin: Admin) -> None:
    described = admin.describe_features()
    runs = described.finalized_features["transaction.version"]
    could = described.supported_features["transaction.version"]
    assert runs.max_version_level == could.max_version
    assert described.finalized_features_epoch is not None
    lower = FeatureUpdate(runs.max_version_level - 1, "SAFE_DOWNGRADE")
    admin.update_features({"transaction.version": lower}, validate_only=True)
    assert admin.describe_features().finalized_features["transaction.version"] == runs
    admin.update_features({"transaction.version": lower})
    now = admin.describe_features().finalized_features["transaction.version"]
    admin.update_features({"transaction.version": runs.max_version_level})
    assert now.max_version_level == runs.max_version_level - 1


def test_no_feature_is_changed_together_with_one_that_is_not_supported(admin: Admin) -> None:
    before = admin.describe_features().finalized_features
    wrong = r"no feature was changed.*nosuch\.version=1: this broker knows no such feature"
    with pytest.raises(KafkaError, match=wrong):
        admin.update_features({"group.version": FeatureUpdate(0, "SAFE_DOWNGRADE"), "nosuch.version": 1})
    assert admin.describe_features().finalized_features == before


def test_a_feature_downgrade_has_to_be_explicit(admin: Admin) -> None:
    with pytest.raises(KafkaError, match=r"transaction\.version"):
        admin.update_features({"transaction.version": 1})


def test_the_only_broker_cannot_be_unregistered(admin: Admin) -> None:
    (broker,) = admin.describe_cluster().nodes
    with pytest.raises(KafkaError, match="INVALID_REQUEST"):
        admin.unregister_broker(broker.node_id)
    with pytest.raises(KafkaError) as caught:
        admin.unregister_broker(broker.node_id + 7)
    assert caught.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_the_active_controller_cannot_be_unregistered(admin: Admin) -> None:
    (voter,) = admin.describe_metadata_quorum().voters
    with pytest.raises(KafkaError, match="INVALID_REQUEST"):
        admin.unregister_controller(voter.replica_id)
    with pytest.raises(KafkaError) as caught:
        admin.unregister_controller(voter.replica_id + 7)
    assert caught.value.code == ErrorCode.CONTROLLER_ID_NOT_REGISTERED


def test_a_replica_is_in_a_directory_of_its_broker(admin: Admin, topic: str) -> None:
    (broker,) = admin.describe_cluster().nodes
    copy, none = (TopicPartitionReplica(topic, number, broker.node_id) for number in (0, 4711))
    found = admin.describe_replica_log_dirs([copy, none])
    path = found[copy].current_replica_log_dir
    assert path in admin.describe_log_dirs()[broker.node_id]
    assert found[none] == ReplicaLogDirInfo(None, -1, None, -1)
    admin.alter_replica_log_dirs({copy: str(path)})
    with pytest.raises(KafkaError, match=f"broker {broker.node_id} has no log directory '/elsewhere'"):
        admin.alter_replica_log_dirs({copy: "/elsewhere"})
    with pytest.raises(KafkaError, match="there is no broker 4711"):
        admin.describe_replica_log_dirs([copy._replace(broker_id=4711)])


def test_a_directory_id_is_converted_to_text_and_back() -> None:
    some = uuid.uuid4()
    assert parse_directory_id(format_directory_id(some)) == some
    assert format_directory_id(uuid.UUID(int=0)) == ""

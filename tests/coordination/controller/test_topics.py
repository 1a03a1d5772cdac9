"""Topics and partitions of a cluster of several brokers, blocks of producer ids, and what `cluster/` decides."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.coordination.cluster.events import ConfigChangeRequested, FeatureChangeRequested, TopicDeletionRequested
from ottla.coordination.cluster.records import ClearElrRecord
from ottla.coordination.controller.events import RandomValues
from ottla.errors import ErrorCode
from ottla.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import DeleteTopicState
from ottla.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from ottla.protocol.messages.update_features import FeatureUpdateKey
from tests.coordination.controller.cluster import TOPIC, Cluster, directory


def create(cluster: Cluster, *topics: CreatableTopic, dry: bool = False) -> list[CreatableTopicResult]:
    chance = RandomValues([UUID(int=2000 + number) for number in range(len(topics))], 7)
    return list(cluster.ask(CreateTopicsRequest(topics, validate_only=dry), CreateTopicsResponse, chance).topics)


def assigned(name: str, *replicas: tuple[int, ...]) -> CreatableTopic:
    return CreatableTopic(name, -1, -1, [CreatableReplicaAssignment(i, each) for i, each in enumerate(replicas)])


def grow(cluster: Cluster, count: int, *replicas: tuple[int, ...], dry: bool = False) -> CreatePartitionsTopicResult:
    assignments = [CreatePartitionsAssignment(each) for each in replicas] or None
    wanted = CreatePartitionsTopic("t", count, assignments)
    return cluster.ask(CreatePartitionsRequest([wanted], validate_only=dry), CreatePartitionsResponse).results[0]


def test_a_topic_has_replicas_on_different_brokers_and_a_leader_for_each_partition() -> None:
    cluster = Cluster(1, 2, 3)
    result = create(cluster, CreatableTopic("t", 6, 2, configs=[CreatableTopicConfig("retention.ms", "5")]))[0]
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 6, 2)
    topic = cluster.controller.metadata.topics["t"]
    assert topic.configs == {"retention.ms": "5"}
    for state in topic.partitions:
        assert len(set(state.replicas)) == 2
        assert (state.leader, state.isr) == (state.replicas[0], state.replicas)
        assert state.directories == tuple(map(directory, state.replicas))
    assert {state.leader for state in topic.partitions} == {1, 2, 3}


def test_a_fenced_broker_is_a_replica_outside_the_isr() -> None:
    cluster = Cluster(1, 2)
    cluster.register(3)
    create(cluster, CreatableTopic("t", 4, 3))
    for state in cluster.controller.metadata.topics["t"].partitions:
        assert (set(state.replicas), set(state.isr)) == ({1, 2, 3}, {1, 2})


def test_a_broker_with_cordoned_directories_only_gets_no_replicas() -> None:
    cluster = Cluster(1, 2)
    cluster.beat(2, cordoned_log_dirs=[directory(2)])
    create(cluster, CreatableTopic("t", 4, 1))
    assert {state.leader for state in cluster.controller.metadata.topics["t"].partitions} == {1}
    assert create(cluster, CreatableTopic("u", 1, 2))[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    refused = create(cluster, assigned("u", (2, 1)))[0]
    assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "broker 2, and all its directories are cordoned" in (refused.error_message or "")


def test_a_broker_with_several_directories_reports_the_chosen_one_later() -> None:
    cluster = Cluster()
    cluster.join(1, log_dirs=[directory(1), UUID(int=501)])
    create(cluster, CreatableTopic("t", 1, 1))
    assert cluster.partition().directories == (UUID(int=1),)


def test_a_validated_request_returns_results_and_writes_nothing() -> None:
    cluster = Cluster(1)
    written = len(cluster.log)
    result = create(cluster, CreatableTopic("t", 2, 1), dry=True)[0]
    assert (result.error_code, result.num_partitions, result.topic_id) == (0, 2, UUID(int=0))
    assert len(cluster.log) == written


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (CreatableTopic("", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("t", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (CreatableTopic("u", 1, 1, configs=[CreatableTopicConfig("retention.ms", None)]), ErrorCode.INVALID_CONFIG),
        (CreatableTopic("u", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("u", 1, 5), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("u", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("u", 10_001, 1), ErrorCode.POLICY_VIOLATION),
        (CreatableTopic("u", 1, -1, [CreatableReplicaAssignment(0, [1])]), ErrorCode.INVALID_REQUEST),
        (assigned("u", (1,), (1, 2)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("u", (1, 1)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("u", (9,)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("u", ()), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("u", (3,)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("u", -1, -1, [CreatableReplicaAssignment(1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_an_invalid_topic_is_rejected_and_writes_nothing(topic: CreatableTopic, error: ErrorCode) -> None:
    cluster = Cluster(1, 2)
    cluster.register(3)
    cluster.topic((1, 2))
    written = len(cluster.log)
    result = create(cluster, topic)[0]
    assert (result.error_code, len(cluster.log)) == (error, written)
    assert result.error_message


def test_a_rejected_topic_does_not_prevent_the_other_one() -> None:
    cluster = Cluster(1)
    results = create(cluster, CreatableTopic("a", 1, 1), CreatableTopic("b", 1, 7), CreatableTopic("c", -1, -1))
    assert [result.error_code for result in results] == [0, ErrorCode.INVALID_REPLICATION_FACTOR, 0]
    assert list(cluster.controller.metadata.topics) == ["a", "c"]


def test_a_topic_named_twice_is_not_created() -> None:
    results = create(Cluster(1), CreatableTopic("a", 1, 1), CreatableTopic("a", 2, 1))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2


def test_added_partitions_have_the_replication_factor_of_the_topic() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.topic((1, 2))
    assert grow(cluster, 4, dry=True).error_code == 0
    assert len(cluster.controller.metadata.topics["t"].partitions) == 1
    assert grow(cluster, 4).error_code == 0
    states = cluster.controller.metadata.topics["t"].partitions
    assert [len(state.replicas) for state in states] == [2, 2, 2, 2]
    assert grow(cluster, 5, (3, 1)).error_code == 0
    assert cluster.led(4) == (3, (3, 1))


def test_an_invalid_number_of_partitions_is_rejected() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2))
    assert grow(cluster, 1).error_code == ErrorCode.INVALID_PARTITIONS
    assert grow(cluster, 2, (1, 2), (2, 1)).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(cluster, 2, (1,)).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(cluster, 2, (1, 9)).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    cluster.wait(20)
    assert grow(cluster, 2).error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_every_block_of_producer_ids_is_allocated_to_one_broker() -> None:
    cluster = Cluster(1, 2)

    def block(broker: int) -> tuple[int, int]:
        request = AllocateProducerIdsRequest(broker, cluster.epoch(broker))
        answer = cluster.ask(request, AllocateProducerIdsResponse)
        return answer.producer_id_start, answer.producer_id_len

    assert [block(1), block(2)] == [(0, 1000), (1000, 1000)]
    cluster.fail_over()
    assert block(1) == (2000, 1000)
    stale = cluster.ask(AllocateProducerIdsRequest(1, 0), AllocateProducerIdsResponse)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_topic_is_deleted_as_in_a_cluster_of_one_node() -> None:
    cluster = Cluster(1, 2)
    cluster.topic((1, 2))
    assert cluster.happen(TopicDeletionRequested(1, [DeleteTopicState("t")]))[0].error_code == 0
    assert cluster.controller.metadata.topics == {}


def test_a_change_of_min_insync_replicas_clears_the_elr() -> None:
    cluster = Cluster(1, 2, 3, min_isr=3)
    cluster.topic((1, 2, 3))
    cluster.beat(3, want_shut_down=True)
    assert cluster.partition().elr == (3,)
    lower = AlterConfigsResource(2, "t", [AlterableConfig("min.insync.replicas", 0, "2")])
    cluster.happen(ConfigChangeRequested(1, [lower]))
    assert cluster.log[-1] == ClearElrRecord("t")
    assert cluster.partition().elr == ()


def test_a_level_that_a_broker_does_not_support_is_rejected_by_its_name() -> None:
    refusal = Cluster(1).happen(FeatureChangeRequested(1, [FeatureUpdateKey("group.version", 1)]))
    assert refusal.code == ErrorCode.INVALID_UPDATE_VERSION
    assert "group.version 1 is more than broker 1 can run, which knows 0 to 0" in str(refusal)


def test_a_new_topic_gets_an_id_of_its_own() -> None:
    cluster = Cluster(1)
    cluster.topic((1,))
    assert cluster.controller.metadata.find_topic_by_id(TOPIC) is not None
    assert create(cluster, CreatableTopic("u", 1, 1))[0].topic_id == UUID(int=2000)

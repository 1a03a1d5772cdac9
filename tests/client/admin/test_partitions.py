"""Adding, truncating, electing, moving and locating partitions."""

from __future__ import annotations

from typing import Any

import pytest

from ottla import Admin, Producer, TopicPartition
from ottla.client.admin import NewPartitions
from ottla.client.admin.log_dir_calls import read_log_dirs
from ottla.client.admin.partition_calls import partition_error
from ottla.errors import ErrorCode, KafkaError, UnknownTopicOrPartitionError
from ottla.model import EARLIEST
from ottla.protocol.messages.alter_partition_reassignments import ReassignablePartitionResponse
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsResponse, DescribeLogDirsResult
from tests.client.conftest import NewTopicName, fresh_name

NO_LISTS: Any = [1]


def count_of(admin: Admin, topic: str) -> int:
    return len(admin.describe_topics([topic])[topic].partitions)


def test_a_topic_gets_more_partitions(admin: Admin, new_topic: NewTopicName) -> None:
    topic = new_topic()
    before = count_of(admin, topic)
    admin.create_partitions({topic: before + 2}, validate_only=True)
    assert count_of(admin, topic) == before
    admin.create_partitions({topic: before + 2})
    assert count_of(admin, topic) == before + 2


def test_new_partitions_are_assigned_to_the_named_brokers(admin: Admin, new_topic: NewTopicName) -> None:
    topic = new_topic()
    before = count_of(admin, topic)
    (broker,) = (each.node_id for each in admin.describe_cluster().nodes)
    admin.create_partitions({topic: NewPartitions(before + 1, [[broker]])})
    assert admin.describe_topics([topic])[topic].partitions[-1].replicas == (broker,)
    with pytest.raises(KafkaError, match="INVALID_REPLICA_ASSIGNMENT"):
        admin.create_partitions({topic: NewPartitions(before + 2, [[broker + 1000]])})


def test_each_topic_grows_or_not_by_itself(admin: Admin, new_topic: NewTopicName) -> None:
    topic = new_topic()
    before = count_of(admin, topic)
    with pytest.raises(KafkaError, match="'there-is-none'"):
        admin.create_partitions({topic: before + 1, "there-is-none": 3})
    assert count_of(admin, topic) == before + 1
    with pytest.raises(KafkaError, match="INVALID_PARTITIONS"):
        admin.create_partitions({topic: before})


def test_records_before_an_offset_are_deleted(admin: Admin, servers: str, topic: str) -> None:
    place = TopicPartition(topic, 0)
    with Producer(bootstrap_servers=servers) as producer:
        for _ in range(5):
            producer.send(topic, b"x", partition=0)
    assert admin.delete_records({place: 3}) == {place: 3}
    assert admin.list_offsets({place: EARLIEST})[place].offset == 3
    assert admin.delete_records({place: -1}) == {place: 5}
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        admin.delete_records({place: 6})
    with pytest.raises(UnknownTopicOrPartitionError, match="there is no partition"):
        admin.delete_records({TopicPartition(topic, 4711): 0})


def test_a_leader_that_is_already_preferred_is_not_elected(admin: Admin, topic: str) -> None:
    assert admin.elect_leaders(partitions=[TopicPartition(topic, 0)]) == set()
    assert admin.elect_leaders() == set()
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.elect_leaders("UNCLEAN", [TopicPartition(fresh_name(), 0)])


def test_a_partition_is_assigned_only_to_existing_brokers(admin: Admin, topic: str) -> None:
    place = TopicPartition(topic, 0)
    (broker,) = (each.node_id for each in admin.describe_cluster().nodes)
    admin.alter_partition_reassignments({place: [broker]})
    assert admin.list_partition_reassignments() == {}
    assert admin.list_partition_reassignments([place]) == {}
    with pytest.raises(KafkaError, match="INVALID_REPLICA_ASSIGNMENT"):
        admin.alter_partition_reassignments({place: [broker + 1000]})
    with pytest.raises(KafkaError, match="NO_REASSIGNMENT_IN_PROGRESS"):
        admin.alter_partition_reassignments({place: None})


def test_the_directories_of_a_broker_have_its_partitions(admin: Admin, servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        producer.send(topic, bytes(1000), partition=0)
    ((broker, directories),) = admin.describe_log_dirs().items()
    (found,) = (each for each in directories.values() if TopicPartition(topic, 0) in each.replica_infos)
    replica = found.replica_infos[TopicPartition(topic, 0)]
    assert (replica.size > 1000, replica.offset_lag, replica.is_future) == (True, 0, False)
    assert found.usable_bytes is not None
    assert 0 < found.usable_bytes < (found.total_bytes or 0)
    assert admin.describe_log_dirs([broker]).keys() == {broker}
    with pytest.raises(KafkaError, match=f"there is no broker {broker + 1000}"):
        admin.describe_log_dirs([broker + 1000])


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("create_partitions", (["flights"],), "must be a dict, such as {'flights': 6}"),
        ("create_partitions", ({"flights": "6"},), "must be the total number of partitions, a whole number"),
        ("create_partitions", ({"flights": NewPartitions(6, NO_LISTS)},), "brokers = 1: must be a list"),
        ("delete_records", ([TopicPartition("flights", 0)],), "must be a dict"),
        ("delete_records", ({TopicPartition("flights", 0): -2},), "an offset, -1 for the end, from -1"),
        ("elect_leaders", ("preferred",), "must be one of PREFERRED, UNCLEAN"),
        ("elect_leaders", ("PREFERRED", TopicPartition("flights", 0)), "is one partition: hand over a list"),
        ("alter_partition_reassignments", ({TopicPartition("flights", 0): 2},), "must be a list, such as \\[2, 3\\]"),
        ("describe_log_dirs", (1,), "must be a list, such as \\[1, 2\\]"),
    ],
)
def test_invalid_arguments_are_rejected_before_any_request_is_sent(
    admin: Admin, call: str, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        getattr(admin, call)(*arguments)


def test_a_directory_that_has_failed_is_an_error_that_names_it() -> None:
    failed = DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, "/disk2")
    (error,) = read_log_dirs([3], DescribeLogDirsResponse(results=[failed])).values()
    assert "directory /disk2 of broker 3" in str(error)
    well = DescribeLogDirsResult(ErrorCode.NONE, "/disk1", total_bytes=10, usable_bytes=5)
    (found,) = read_log_dirs([3], DescribeLogDirsResponse(results=[failed, well])).values()
    assert isinstance(found, dict)
    assert [(path, each.error is None) for path, each in sorted(found.items())] == [("/disk1", True), ("/disk2", False)]
    (error,) = read_log_dirs([3], DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)).values()
    assert "the directories of broker 3" in str(error)


def test_an_error_without_a_text_names_the_partition() -> None:
    answer = ReassignablePartitionResponse(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert "flights-0" in str(partition_error(TopicPartition("flights", 0), answer))

"""Our clients and our command line have the same results at our broker and at Apache Kafka."""

from __future__ import annotations

import io
import sys
import time
import uuid

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from interop.conftest import NewTopicName
from interop.rows import START
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.cli.main import main
from ottla.client.admin import FeatureUpdate, TopicPartitionReplica
from ottla.errors import (
    KafkaError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from ottla.model import EARLIEST, LATEST
from rivals.kafka_cluster import wait_for

PATIENCE = 30.0


def fill(address: str, topic: str, count: int) -> None:
    with Producer(bootstrap_servers=address) as producer:
        for i in range(count):
            producer.send(topic, b"%d" % i, partition=0, timestamp=START + 10 * i)


def test_topics_are_created_and_deleted(any_broker: str) -> None:
    name = f"managed-{uuid.uuid4().hex[:8]}"
    with Admin(bootstrap_servers=any_broker) as admin:
        admin.create_topics([NewTopic(name, 3, configs={"retention.ms": "3600000"})])
        wait_for(lambda: name in admin.list_topics(), "Apache Kafka's broker hears of it from its controller")
        described = admin.describe_topics([name])[name]
        assert [(p.partition, p.leader, p.replicas) for p in described.partitions] == [(i, 1, (1,)) for i in range(3)]
        partitions = [TopicPartition(name, p) for p in range(3)]
        assert [found.offset for found in admin.list_offsets(dict.fromkeys(partitions, LATEST)).values()] == [0, 0, 0]
        admin.delete_topics([name])
        wait_for(lambda: name not in admin.list_topics(), "and that it is gone")


def test_errors_are_the_same(any_broker: str, fresh_topic: NewTopicName) -> None:
    topic = fresh_topic(any_broker)
    with Admin(bootstrap_servers=any_broker) as admin:
        with pytest.raises(TopicAlreadyExistsError):
            admin.create_topics([NewTopic(topic)])
        with pytest.raises(UnknownTopicOrPartitionError):
            admin.delete_topics([f"no-{topic}"])
        with pytest.raises(UnknownTopicOrPartitionError):
            admin.describe_topics([f"no-{topic}"])
        with pytest.raises(KafkaError, match="INVALID_REPLICATION_FACTOR"):
            admin.create_topics([NewTopic(f"{topic}-2", 1, 3)])
        with pytest.raises(KafkaError, match="INVALID_PARTITIONS"):
            admin.create_topics([NewTopic(f"{topic}-2", 0)])
        with pytest.raises(KafkaError, match="INVALID_CONFIG"):
            admin.create_topics([NewTopic(f"{topic}-2", configs={"retention.sm": "1"})])
        with pytest.raises(KafkaError, match="INVALID_TOPIC_EXCEPTION"):
            admin.create_topics([NewTopic("not/a/name")])
        assert f"{topic}-2" not in admin.list_topics()


def test_partitions_are_added_emptied_and_listed_by_directory(any_broker: str, fresh_topic: NewTopicName) -> None:
    topic = fresh_topic(any_broker)
    fill(any_broker, topic, 10)
    first = TopicPartition(topic, 0)
    with Admin(bootstrap_servers=any_broker) as admin:
        before = len(admin.describe_topics([topic])[topic].partitions)
        admin.create_partitions({topic: before + 2})
        deadline = time.monotonic() + PATIENCE
        while len(admin.describe_topics([topic])[topic].partitions) < before + 2:
            assert time.monotonic() < deadline
        with pytest.raises(KafkaError, match="INVALID_PARTITIONS"):
            admin.create_partitions({topic: 1})
        assert admin.delete_records({first: 4}) == {first: 4}
        assert admin.list_offsets({first: EARLIEST})[first].offset == 4
        with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
            admin.delete_records({first: 11})
        ((broker, directories),) = admin.describe_log_dirs().items()
        (directory,) = directories.values()
        assert directory.replica_infos[first].size > 0
        assert admin.elect_leaders(partitions=[first]) == set()
        assert admin.list_partition_reassignments() == {}
        admin.alter_partition_reassignments({first: [broker]})
        with pytest.raises(KafkaError, match="INVALID_REPLICA_ASSIGNMENT"):
            admin.alter_partition_reassignments({first: [broker + 1000]})
        with pytest.raises(KafkaError, match="NO_REASSIGNMENT_IN_PROGRESS"):
            admin.alter_partition_reassignments({first: None})


CHANGES = frozenset({"create", "alter", "describe", "describe-configs", "alter-configs"})
"""The operations that both topics and the cluster have."""


def test_authorized_operations_are_described(any_broker: str, fresh_topic: NewTopicName) -> None:
    topic = fresh_topic(any_broker)
    with Admin(bootstrap_servers=any_broker) as admin:
        of_topic = admin.describe_topics([topic], include_authorized_operations=True)[topic].authorized_operations
        of_cluster = admin.describe_cluster(include_authorized_operations=True).authorized_operations
    assert of_topic == CHANGES | {"read", "write", "delete"}
    assert of_cluster == CHANGES | {"cluster-action", "idempotent-write"}


def test_a_cluster_its_quorum_and_its_features_are_described(any_broker: str, fresh_topic: NewTopicName) -> None:
    topic = fresh_topic(any_broker)
    with Admin(bootstrap_servers=any_broker) as admin:
        cluster = admin.describe_cluster()
        (broker,) = (each.node_id for each in cluster.nodes)
        assert (len(str(cluster.cluster_id)), cluster.controller) == (22, cluster.nodes[0])
        quorum = admin.describe_metadata_quorum()
        assert (quorum.leader_id, [each.replica_id for each in quorum.voters]) == (broker, [broker])
        hosts = [listener.host for listener in quorum.nodes[broker]]
        assert hosts in (["127.0.0.1"], []), "the only voter of ours has no listener for controllers"
        features = admin.describe_features()
        level = features.finalized_features["transaction.version"].max_version_level
        assert level == features.supported_features["transaction.version"].max_version
        admin.update_features({"transaction.version": FeatureUpdate(level - 1, "SAFE_DOWNGRADE")}, validate_only=True)
        with pytest.raises(KafkaError, match=r"transaction\.version"):
            admin.update_features({"transaction.version": level - 1})
        with pytest.raises(KafkaError, match="BROKER_ID_NOT_REGISTERED"):
            admin.unregister_broker(broker + 7)
        copy = TopicPartitionReplica(topic, 0, broker)
        path = admin.describe_replica_log_dirs([copy])[copy].current_replica_log_dir
        assert path is not None
        admin.alter_replica_log_dirs({copy: path})
        with pytest.raises(KafkaError, match="LOG_DIR_NOT_FOUND"):
            admin.alter_replica_log_dirs({copy: "/elsewhere"})
        with pytest.raises(KafkaError, match="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"):
            admin.create_delegation_token()


def reader_of(address: str, group: str) -> Consumer[bytes, bytes]:
    return Consumer(bootstrap_servers=address, group_id=group, group_instance_id="i")


def test_members_are_removed_and_producers_are_fenced(any_broker: str, fresh_topic: NewTopicName) -> None:
    topic = fresh_topic(any_broker)
    writer = Producer(bootstrap_servers=any_broker, transactional_id=topic)
    with Admin(bootstrap_servers=any_broker) as admin, reader_of(any_broker, topic) as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + PATIENCE
        while not consumer.assignment():
            assert time.monotonic() < deadline
            consumer.poll(0.1)
        with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
            admin.remove_members_from_consumer_group(topic, ["j"])
        admin.remove_members_from_consumer_group(topic)
        assert admin.describe_consumer_groups([topic])[topic].members == ()
        writer.init_transactions()
        writer.begin_transaction()
        writer.send(topic, b"lost")
        writer.flush()
        assert admin.fence_producers([topic])[topic].epoch > 0
        with pytest.raises(KafkaError, match=r"PRODUCER_FENCED|INVALID_PRODUCER_EPOCH"):
            writer.commit_transaction()
    writer.close(0)


def test_a_record_that_is_too_large_for_its_topic_is_rejected(any_broker: str) -> None:
    topic = f"small-{uuid.uuid4().hex[:8]}"
    with Admin(bootstrap_servers=any_broker) as admin:
        admin.create_topics([NewTopic(topic, 1, configs={"max.message.bytes": "1000"})])
    with Producer(bootstrap_servers=any_broker) as producer:
        with pytest.raises(RecordTooLargeError):
            producer.send(topic, bytes(2000)).result(PATIENCE)
        assert producer.send(topic, bytes(100)).result(PATIENCE).offset == 0


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_every_kind_of_acknowledgement_delivers(any_broker: str, fresh_topic: NewTopicName, acks: str) -> None:
    topic = fresh_topic(any_broker)
    with Producer({"bootstrap.servers": any_broker, "acks": acks}) as producer:
        metadata = producer.send(topic, b"x", key=b"k").result(PATIENCE)
    assert metadata.offset == (-1 if acks == "0" else 0)
    with Consumer(bootstrap_servers=any_broker, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [record.value for record in consumer.poll(PATIENCE)] == [b"x"]


def test_positions_are_found_by_offset_and_by_time(any_broker: str, fresh_topic: NewTopicName) -> None:
    topic = fresh_topic(any_broker)
    fill(any_broker, topic, 10)
    partition = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=any_broker, auto_offset_reset="none") as consumer:
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 10}
        found = consumer.offsets_for_times({partition: START + 35})[partition]
        assert found is not None
        assert (found.offset, found.timestamp) == (4, START + 40)
        assert consumer.offsets_for_times({partition: START + 1000}) == {partition: None}
        consumer.assign([partition])
        consumer.seek(partition, 7)
        assert [record.value for record in consumer.poll(PATIENCE)] == [b"7", b"8", b"9"]
        assert consumer.position(partition) == 10
        consumer.seek(partition, 99)
        with pytest.raises(OffsetOutOfRangeError):
            list(consumer)  # reads without end


def test_a_hundred_thousand_rows_are_written_and_read_as_columns(any_broker: str) -> None:
    topic, partitions, count = f"columns-{uuid.uuid4().hex[:8]}", 4, 100_000
    with Admin(bootstrap_servers=any_broker) as admin:
        admin.create_topics([NewTopic(topic, partitions)])
    numbers = pa.array(range(count), pa.int64())
    table = pa.table(
        {"key": pc.cast(pc.bit_wise_and(numbers, 1023), pa.string()), "value": pc.cast(numbers, pa.string())}
    )
    with Producer(bootstrap_servers=any_broker, compression_type="lz4") as producer:
        producer.send_table(topic, table)
        producer.flush(PATIENCE)
    tables: list[pa.Table] = []
    everything = [TopicPartition(topic, p) for p in range(partitions)]
    with Consumer(bootstrap_servers=any_broker, auto_offset_reset="earliest") as consumer:
        consumer.assign(everything)
        deadline = time.monotonic() + PATIENCE
        while sum(table.num_rows for table in tables) < count and time.monotonic() < deadline:
            tables.append(consumer.poll_arrow(0.5))
    read = pa.concat_tables(tables).select(["key", "value", "partition"]).combine_chunks()
    values = pc.cast(pc.cast(read["value"], pa.string()), pa.int64())
    assert values.take(pc.sort_indices(values)).to_pylist() == list(range(count))
    homes = read.group_by("key").aggregate([("partition", "count_distinct")])
    assert homes["partition_count_distinct"].unique().to_pylist() == [1]


def test_a_metadata_request_creates_the_topic(any_broker: str) -> None:
    topic = f"asked-for-{uuid.uuid4().hex[:8]}"
    with Producer(bootstrap_servers=any_broker) as producer:
        assert producer.send(topic, b"x").result(PATIENCE).offset == 0
    with Admin(bootstrap_servers=any_broker) as admin:
        (offset,) = admin.list_offsets({TopicPartition(topic, 0): EARLIEST}).values()
        assert offset.offset == 0


def test_the_command_line_works(
    any_broker: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, at = f"shell-{uuid.uuid4().hex[:8]}", ["--bootstrap-server", any_broker]
    assert main(["topics", "create", topic, "--partitions", "2", *at]) == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"k1:one\nk2:two\n")))
    assert main(["produce", topic, "--key-separator", ":", *at]) == 0
    assert main(["topics", "describe", topic, *at]) == 0
    assert main(["topics", "list", *at]) == 0
    out, err = capsys.readouterr()
    assert f"{topic}: 2 partitions" in out
    assert err == ""

"""The places where independent brokers fail first, one test for each that no other file has by name.

Groups and transactions have theirs in the files on groups, transactions and idempotence; order on a connection is in
`test_order.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.model import EARLIEST, LATEST, MAX_TIMESTAMP
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.broker.wire import Wire, batch, produce, values

BAD_NAMES = ["", ".", "..", "a b", "a/b", "é", "x" * 250]


def created(wire: Wire, topic: CreatableTopic, *, validate_only: bool = False) -> Any:
    """The result of making a topic."""
    (result,) = wire.ask(CreateTopicsRequest([topic], 1000, validate_only)).topics
    return result


def test_1_an_offset_inside_a_batch_returns_the_whole_batch(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"a", b"b", b"c")
    assert values(wire.fetch("t", 2)) == [b"a", b"b", b"c"]


def test_2_the_offsets_of_an_unknown_group_are_minus_1_without_an_error(wire: Wire) -> None:
    wire.create("t")
    topics = [OffsetFetchRequestTopics("t", partition_indexes=[0])]
    (group,) = wire.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup("nobody", topics=topics)]), 8).groups
    (found,) = group.topics[0].partitions
    assert (group.error_code, found.error_code, found.committed_offset) == (0, 0, -1)


@pytest.mark.parametrize("isolation", [0, 1])
@pytest.mark.parametrize(
    ("timestamp", "offset", "found"),
    [(EARLIEST, 0, -1), (LATEST, 3, -1), (MAX_TIMESTAMP, 1, 300), (150, 1, 300), (301, -1, -1)],
)
def test_3_offsets_are_found_by_timestamp_at_each_isolation_level(
    wire: Wire, isolation: int, timestamp: int, offset: int, found: int
) -> None:
    wire.create("t")
    for time in (100, 300, 200):
        wire.ask(produce("t", batch([b"x"], timestamp=time)), 11)
    topics = [ListOffsetsTopic("t", [ListOffsetsPartition(0, -1, timestamp)])]
    answer = wire.ask(ListOffsetsRequest(-1, isolation, topics)).topics[0].partitions[0]
    assert (answer.error_code, answer.offset, answer.timestamp) == (0, offset, found)


def test_5_a_batch_above_the_limit_is_too_large_and_not_appended(wire: Wire) -> None:
    wire.create("t", max_message_bytes=500)
    assert wire.produce("t", bytes(600)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert wire.produce("t", b"a").base_offset == 0


@pytest.mark.parametrize("name", BAD_NAMES)
def test_6_an_invalid_topic_name_is_rejected_by_every_api(wire: Wire, name: str) -> None:
    (described,) = wire.ask(MetadataRequest([MetadataRequestTopic(name=name)])).topics
    produced = wire.produce(name, b"a")
    made = created(wire, CreatableTopic(name, 1, 1))
    assert {described.error_code, produced.error_code, made.error_code} == {ErrorCode.INVALID_TOPIC_EXCEPTION}


def test_7_an_invalid_topic_is_rejected_and_a_validated_one_is_not_created(wire: Wire) -> None:
    bogus = CreatableTopic("t", 1, 1, configs=[CreatableTopicConfig("bogus", "1")])
    assert created(wire, bogus).error_code == ErrorCode.INVALID_CONFIG
    assert created(wire, CreatableTopic("t", 1, 2)).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert created(wire, CreatableTopic("t", 0, 1)).error_code == ErrorCode.INVALID_PARTITIONS
    assert created(wire, CreatableTopic("t", 1, 1), validate_only=True).error_code == 0
    assert wire.metadata("t").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_8_added_partitions_have_a_result_for_each_topic(wire: Wire) -> None:
    wire.create("t")
    wanted = [CreatePartitionsTopic("t", 3), CreatePartitionsTopic("u", 3)]
    results = wire.ask(CreatePartitionsRequest(wanted, 1000)).results
    assert [(each.name, each.error_code) for each in results] == [
        ("t", 0), ("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    ]  # fmt: skip
    assert len(wire.metadata("t").topics[0].partitions) == 3


OF_TOPICS_ALONE = {
    "errors.deadletterqueue.group.enable",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "segment.jitter.ms",
    "segment.ms",
}
"""Configs without a broker default under another name, as described by Kafka."""


def test_10_every_config_is_described_with_its_source_synonyms_type_and_description(wire: Wire) -> None:
    wire.create("t", retention_ms=1000)
    request = DescribeConfigsRequest([DescribeConfigsResource(2, "t", None)], True, True)
    (result,) = wire.ask(request).results
    configs = {config.name: config for config in result.configs}
    assert len(configs) == 37
    assert all(config.config_type and config.documentation for config in configs.values())
    assert {name for name, config in configs.items() if not config.synonyms} == OF_TOPICS_ALONE
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("1000", 1)
    assert (configs["segment.ms"].value, configs["segment.ms"].config_source) == ("604800000", 5)


def test_11_items_of_a_list_are_appended_and_subtracted(wire: Wire) -> None:
    wire.create("t")
    for operation, value, expected in ((2, "compact", "delete,compact"), (3, "delete", "compact")):
        change = AlterConfigsResource(2, "t", [AlterableConfig("cleanup.policy", operation, value)])
        assert wire.ask(IncrementalAlterConfigsRequest([change])).responses[0].error_code == 0
        request = DescribeConfigsRequest([DescribeConfigsResource(2, "t", ["cleanup.policy"])])
        assert wire.ask(request).results[0].configs[0].value == expected


@pytest.mark.parametrize(("allowed", "error"), [(True, 0), (False, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)])
def test_14_a_topic_is_created_when_it_is_first_used_if_that_is_allowed(wire: Wire, allowed: bool, error: int) -> None:
    request = MetadataRequest([MetadataRequestTopic(name="t")], allow_auto_topic_creation=allowed)
    assert wire.ask(request).topics[0].error_code == error


def test_15_a_topic_exists_for_every_client_when_its_creation_is_answered(wire: Wire, broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as other:
        for number in range(20):
            wire.create(f"t{number}", partitions=3)
            (topic,) = other.metadata(f"t{number}").topics
            assert [(each.error_code, each.leader_id) for each in topic.partitions] == [(0, 1)] * 3
            assert other.produce(f"t{number}", b"a", partition=2).error_code == 0


def test_18_produce_is_advertised_from_version_0_on(wire: Wire) -> None:
    reported = {api.api_key: api.min_version for api in wire.ask(ApiVersionsRequest("a", "1"), 3).api_keys}
    assert reported[0] == 0


def test_19_the_advertised_address_is_a_number_and_reachable(wire: Wire) -> None:
    (broker,) = wire.metadata().brokers
    (described,) = wire.ask(DescribeClusterRequest()).brokers
    assert (broker.host, broker.port) == (described.host, described.port) == wire.socket.getpeername()
    assert broker.host == "127.0.0.1"


def test_20_no_client_is_throttled_and_responses_are_in_the_order_of_the_requests(wire: Wire) -> None:
    wire.create("t")
    requests = [
        MetadataRequest(None),
        produce("t", batch([b"a"])),
        ApiVersionsRequest("a", "1"),
        DescribeClusterRequest(),
    ]
    sent = [wire.send(request, version) for request, version in zip(requests, (12, 11, 3, 1), strict=True)]
    answers = [wire.receive(request, version) for request, version in zip(requests, (12, 11, 3, 1), strict=True)]
    assert [correlation_id for correlation_id, _ in answers] == sent
    assert [answer.throttle_time_ms for _, answer in answers] == [0] * 4

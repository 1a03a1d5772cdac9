"""DescribeTopicPartitions: topics by name, a page at a time."""

from __future__ import annotations

import kafka.admin

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tests.broker.wire import Wire


def shape(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(topic.name, [partition.partition_index for partition in topic.partitions]) for topic in response.topics]


def describe_topics(
    wire: Wire, *names: str, limit: int = 2000, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest([TopicRequest(name) for name in names], limit, cursor)
    response: DescribeTopicPartitionsResponse = wire.ask(request)
    return response


def test_topics_are_described_in_order_of_their_names(wire: Wire) -> None:
    wire.create("b", 2)
    wire.create("a")
    response = describe_topics(wire, "b", "a", "b")
    assert shape(response) == [("a", [0]), ("b", [0, 1])]
    assert response.next_cursor is None
    first = response.topics[0]
    assert (first.error_code, first.topic_id) == (0, wire.metadata("a").topics[0].topic_id)
    partition = first.partitions[0]
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])


def test_a_request_without_names_describes_every_topic(wire: Wire) -> None:
    wire.create("b")
    wire.create("a")
    assert shape(describe_topics(wire)) == [("a", [0]), ("b", [0])]


def test_pages_follow_each_other_without_a_gap(wire: Wire) -> None:
    wire.create("a", 2)
    wire.create("b", 3)
    wire.create("c", 1)
    pages: list[list[tuple[str | None, list[int]]]] = []
    cursor = None
    while not pages or cursor is not None:
        response = describe_topics(wire, limit=2, cursor=cursor)
        pages.append(shape(response))
        cursor = response.next_cursor
    assert pages == [[("a", [0, 1])], [("b", [0, 1])], [("b", [2]), ("c", [0])]]


def test_an_unknown_topic_is_reported(wire: Wire) -> None:
    wire.create("a")
    response = describe_topics(wire, "a", "b", "no name")
    errors = {topic.name: topic.error_code for topic in response.topics}
    assert errors == {
        "a": 0,
        "b": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "no name": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


def test_an_invalid_cursor_is_rejected(wire: Wire) -> None:
    wire.create("a")
    for cursor in (Cursor("a", -1), Cursor("b", 0), Cursor("", 0)):
        response = describe_topics(wire, "a", cursor=cursor)
        assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]
    assert describe_topics(wire, cursor=Cursor("", 0)).topics[0].error_code == 0


def test_kafka_pythons_admin_client_describes_partitions(broker: Broker, wire: Wire) -> None:
    wire.create("a", 3)
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    found = admin.describe_topic_partitions(["a"])
    admin.close()
    assert [topic["name"] for topic in found["topics"]] == ["a"]
    assert len(found["topics"][0]["partitions"]) == 3

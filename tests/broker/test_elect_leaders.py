"""ElectLeaders: the one broker leads already."""

from __future__ import annotations

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.broker.wire import Wire


@pytest.mark.parametrize("version", range(3))
def test_no_election_is_needed(wire: Wire, version: int) -> None:
    wire.create("t")
    wanted = [TopicPartitions("t", [0, 1]), TopicPartitions("u", [0])]
    response = wire.ask(ElectLeadersRequest(0, wanted), version)
    assert response.error_code == 0
    assert [
        [result.error_code for result in topic.partition_result] for topic in response.replica_election_results
    ] == [
        [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    ]


def test_an_election_for_all_partitions_returns_only_those_that_changed(wire: Wire) -> None:
    wire.create("t")
    response = wire.ask(ElectLeadersRequest(1, None))
    assert (response.error_code, response.replica_election_results) == (0, [])


def test_an_unknown_election_type_is_rejected(wire: Wire) -> None:
    assert wire.ask(ElectLeadersRequest(2, None)).error_code == ErrorCode.INVALID_REQUEST


def test_confluents_admin_client_gets_the_error_that_no_election_is_needed(broker: Broker, wire: Wire) -> None:
    wire.create("t")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    partition = ck.TopicPartition("t", 0)
    results = admin.elect_leaders(ck.ElectionType.PREFERRED, [partition]).result(20)
    assert results[partition].code() == ck.KafkaError.ELECTION_NOT_NEEDED

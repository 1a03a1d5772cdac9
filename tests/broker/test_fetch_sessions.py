"""Fetch sessions over the wire: what is answered, and when a session is none any more (KIP-227)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from tests.broker.wire import Wire, values


class Reader:
    """A client with a session, as the Java consumer keeps one."""

    def __init__(self, wire: Wire, version: int = 12, topic_id: uuid.UUID | None = None) -> None:
        self.wire = wire
        self.version = version
        self.topic_id = topic_id
        self.session_id = 0
        self.epoch = 0

    def ask(self, *offsets: tuple[int, int], forget: tuple[int, ...] = (), **more: int) -> Any:
        """Partitions of topic t and the offsets from which to read them."""
        self.send(*offsets, forget=forget, **more)
        return self.receive()

    def send(self, *offsets: tuple[int, int], forget: tuple[int, ...] = (), **more: int) -> None:
        wanted = [FetchPartition(index, fetch_offset=offset, partition_max_bytes=2**20) for index, offset in offsets]
        name = {"topic_id": self.topic_id} if self.topic_id else {"topic": "t"}
        self.request = FetchRequest(
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[FetchTopic(partitions=wanted, **name)] if wanted else [],
            forgotten_topics_data=[ForgottenTopic(partitions=forget, **name)] if forget else [],
            **{"min_bytes": 1, **more},  # type: ignore[arg-type]
        )
        self.wire.send(self.request, self.version)

    def receive(self) -> Any:
        _, response = self.wire.receive(self.request, self.version)
        self.session_id = response.session_id
        self.epoch += 1
        return response


def partitions_by_index(response: Any) -> dict[int, Any]:
    """Return the partitions of a response by index."""
    assert response.error_code == 0
    return {partition.partition_index: partition for topic in response.responses for partition in topic.partitions}


def test_a_session_starts_with_everything_and_continues_with_changes(wire: Wire) -> None:
    wire.create("t", partitions=3)
    reader = Reader(wire)
    assert sorted(partitions_by_index(reader.ask((0, 0), (1, 0), (2, 0)))) == [0, 1, 2]
    assert reader.session_id > 0
    assert partitions_by_index(reader.ask()) == {}
    wire.produce("t", b"a", partition=1)
    found = partitions_by_index(reader.ask())
    assert [(index, values(data), data.high_watermark) for index, data in found.items()] == [(1, [b"a"], 1)]
    assert partitions_by_index(reader.ask((1, 1))) == {}


@pytest.mark.parametrize("version", range(7, 19))
def test_sessions_continue_in_every_version_that_has_them(wire: Wire, version: int) -> None:
    wire.create("t")
    reader = Reader(wire, version, wire.metadata("t").topics[0].topic_id if version >= 13 else None)
    partitions_by_index(reader.ask((0, 0)))
    wire.produce("t", b"a")
    assert values(partitions_by_index(reader.ask())[0]) == [b"a"]


def test_records_are_returned_until_the_client_advances(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    reader = Reader(wire)
    assert [values(partitions_by_index(reader.ask((0, 0)))[0]), values(partitions_by_index(reader.ask())[0])] == [
        [b"a"],
        [b"a"],
    ]
    assert partitions_by_index(reader.ask((0, 1))) == {}


def test_a_forgotten_partition_is_not_returned(wire: Wire) -> None:
    wire.create("t", partitions=2)
    reader = Reader(wire)
    reader.ask((0, 0), (1, 0))
    reader.ask(forget=(0,))
    wire.produce("t", b"a", partition=0)
    wire.produce("t", b"b", partition=1)
    assert list(partitions_by_index(reader.ask())) == [1]


def test_a_session_without_partitions_is_closed(wire: Wire) -> None:
    wire.create("t")
    reader = Reader(wire)
    reader.ask((0, 0))
    session_id = reader.session_id
    response = reader.ask(forget=(0,))
    assert (response.error_code, response.session_id) == (0, 0)
    reader.session_id = session_id
    assert reader.ask().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_unknown_session_is_not_found(wire: Wire) -> None:
    reader = Reader(wire)
    reader.session_id, reader.epoch = 99, 1
    assert reader.ask((0, 0)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_unexpected_epoch_is_rejected_and_the_session_stays(wire: Wire) -> None:
    wire.create("t")
    reader = Reader(wire)
    reader.ask((0, 0))
    session_id, reader.epoch = reader.session_id, 7
    assert reader.ask().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    reader.session_id, reader.epoch = session_id, 1
    assert reader.ask().error_code == 0


def test_a_session_by_names_does_not_continue_by_ids(wire: Wire) -> None:
    wire.create("t")
    reader = Reader(wire)
    reader.ask((0, 0))
    reader.version = 13
    assert reader.ask().error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_final_epoch_closes_a_session(wire: Wire) -> None:
    wire.create("t")
    reader = Reader(wire)
    reader.ask((0, 0))
    session_id, reader.epoch = reader.session_id, -1
    assert reader.ask((0, 0)).session_id == 0
    reader.session_id, reader.epoch = session_id, 1
    assert reader.ask().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_new_session_replaces_the_session_it_names(wire: Wire) -> None:
    wire.create("t")
    reader = Reader(wire)
    reader.ask((0, 0))
    first, reader.epoch = reader.session_id, 0
    reader.ask((0, 0))
    assert reader.session_id not in (0, first)
    reader.session_id = first
    assert reader.ask().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_without_a_free_slot_a_fetch_is_answered_without_a_session() -> None:
    with (
        Broker(max_incremental_fetch_session_cache_slots=1) as broker,
        Wire(broker.bootstrap_servers) as one,
        Wire(broker.bootstrap_servers) as two,
    ):
        one.create("t")
        first, second = Reader(one), Reader(two)
        first.ask((0, 0))
        assert list(partitions_by_index(second.ask((0, 0)))) == [0]
        assert (first.session_id > 0, second.session_id) == (True, 0)


def test_a_waiting_session_fetch_is_completed_by_any_of_its_partitions(wire: Wire, broker: Broker) -> None:
    wire.create("t", partitions=50)
    reader = Reader(wire)
    reader.ask(*((index, 0) for index in range(50)))
    reader.send(max_wait_ms=60_000)
    with Wire(broker.bootstrap_servers) as other:
        other.produce("t", b"a", partition=33)
    assert list(partitions_by_index(reader.receive())) == [33]


def test_of_two_concurrent_fetches_of_a_session_the_first_gets_an_epoch_error(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers) as one, Wire(broker.bootstrap_servers) as two:
        one.create("t")
        early, late = Reader(one), Reader(two)
        early.ask((0, 0))
        late.session_id, late.epoch = early.session_id, 2
        early.send(max_wait_ms=60_000)
        while late.ask().error_code:
            late.session_id, late.epoch = early.session_id, 2
        two.produce("t", b"a")
        assert early.receive().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_moved_log_start_is_returned(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    reader = Reader(wire)
    reader.ask((0, 1))
    wire.ask(DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 1)])]))
    assert partitions_by_index(reader.ask())[0].log_start_offset == 1
    assert partitions_by_index(reader.ask()) == {}


def test_a_recreated_topic_is_a_different_topic(wire: Wire) -> None:
    wire.create("t")
    reader = Reader(wire, 13, wire.metadata("t").topics[0].topic_id)
    reader.ask((0, 0))
    wire.ask(DeleteTopicsRequest([DeleteTopicState("t")]))
    assert partitions_by_index(reader.ask())[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    wire.create("t")
    assert partitions_by_index(reader.ask())[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_an_unknown_topic_id_is_reported_until_it_is_left_out(wire: Wire) -> None:
    reader = Reader(wire, 13, uuid.UUID(int=5))
    assert partitions_by_index(reader.ask((0, 0)))[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert partitions_by_index(reader.ask())[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_topic_created_after_the_session_is_read_by_its_name(wire: Wire) -> None:
    reader = Reader(wire)
    assert partitions_by_index(reader.ask((0, 0)))[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    wire.create("t")
    assert partitions_by_index(reader.ask())[0].error_code == 0
    wire.produce("t", b"a")
    assert values(partitions_by_index(reader.ask())[0]) == [b"a"]


def test_a_follower_with_its_last_epoch_gets_the_divergence(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    wanted = FetchPartition(0, fetch_offset=1, last_fetched_epoch=0)
    request = FetchRequest(topics=[FetchTopic("t", partitions=[wanted])], replica_id=2)
    assert wire.ask(request, 12).responses[0].partitions[0].diverging_epoch is None
    wanted.fetch_offset = 5
    ahead = wire.ask(request, 12).responses[0].partitions[0].diverging_epoch
    assert (ahead.epoch, ahead.end_offset) == (0, 1)
    wanted.last_fetched_epoch = 7
    assert wire.ask(request, 12).responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE

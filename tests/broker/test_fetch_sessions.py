"""Fetch sessions over the wire: what is answered, and when a session is none any more (KIP-227)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from ottla.broker.embedded import Broker
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


def told(response: Any) -> dict[int, Any]:
    """What an answer says of each partition."""
    assert response.error_code == 0
    return {partition.partition_index: partition for topic in response.responses for partition in topic.partitions}


def test_a_session_begins_with_everything_and_goes_on_with_what_changed(wire: Wire) -> None:
    wire.create("t", partitions=3)
    reader = Reader(wire)
    assert sorted(told(reader.ask((0, 0), (1, 0), (2, 0)))) == [0, 1, 2]
    assert reader.session_id > 0
    assert told(reader.ask()) == {}
    wire.produce("t", b"a", partition=1)
    found = told(reader.ask())
    assert [(index, values(data), data.high_watermark) for index, data in found.items()] == [(1, [b"a"], 1)]
    assert told(reader.ask((1, 1))) == {}


@pytest.mark.parametrize("version", range(7, 19))
def test_sessions_go_on_in_every_version_that_has_them(wire: Wire, version: int) -> None:
    wire.create("t")
    reader = Reader(wire, version, wire.metadata("t").topics[0].topic_id if version >= 13 else None)
    told(reader.ask((0, 0)))
    wire.produce("t", b"a")
    assert values(told(reader.ask())[0]) == [b"a"]


def test_records_come_again_until_the_client_reads_on(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    reader = Reader(wire)
    assert [values(told(reader.ask((0, 0)))[0]), values(told(reader.ask())[0])] == [[b"a"], [b"a"]]
    assert told(reader.ask((0, 1))) == {}


def test_a_forgotten_partition_is_not_told_of_any_more(wire: Wire) -> None:
    wire.create("t", partitions=2)
    reader = Reader(wire)
    reader.ask((0, 0), (1, 0))
    reader.ask(forget=(0,))
    wire.produce("t", b"a", partition=0)
    wire.produce("t", b"b", partition=1)
    assert list(told(reader.ask())) == [1]


def test_a_session_that_forgets_everything_is_over(wire: Wire) -> None:
    wire.create("t")
    reader = Reader(wire)
    reader.ask((0, 0))
    session_id = reader.session_id
    response = reader.ask(forget=(0,))
    assert (response.error_code, response.session_id) == (0, 0)
    reader.session_id = session_id
    assert reader.ask().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_nobody_has_is_not_found(wire: Wire) -> None:
    reader = Reader(wire)
    reader.session_id, reader.epoch = 99, 1
    assert reader.ask((0, 0)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_epoch_that_is_not_the_next_is_refused_and_the_session_stays(wire: Wire) -> None:
    wire.create("t")
    reader = Reader(wire)
    reader.ask((0, 0))
    session_id, reader.epoch = reader.session_id, 7
    assert reader.ask().error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    reader.session_id, reader.epoch = session_id, 1
    assert reader.ask().error_code == 0


def test_a_session_by_names_does_not_go_on_by_ids(wire: Wire) -> None:
    wire.create("t")
    reader = Reader(wire)
    reader.ask((0, 0))
    reader.version = 13
    assert reader.ask().error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_final_epoch_ends_a_session(wire: Wire) -> None:
    wire.create("t")
    reader = Reader(wire)
    reader.ask((0, 0))
    session_id, reader.epoch = reader.session_id, -1
    assert reader.ask((0, 0)).session_id == 0
    reader.session_id, reader.epoch = session_id, 1
    assert reader.ask().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_is_asked_for_anew_replaces_the_one_that_is_named(wire: Wire) -> None:
    wire.create("t")
    reader = Reader(wire)
    reader.ask((0, 0))
    first, reader.epoch = reader.session_id, 0
    reader.ask((0, 0))
    assert reader.session_id not in (0, first)
    reader.session_id = first
    assert reader.ask().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_without_room_for_a_session_the_fetch_is_answered_without_one() -> None:
    with (
        Broker(max_incremental_fetch_session_cache_slots=1) as broker,
        Wire(broker.bootstrap_servers) as one,
        Wire(broker.bootstrap_servers) as two,
    ):
        one.create("t")
        first, second = Reader(one), Reader(two)
        first.ask((0, 0))
        assert list(told(second.ask((0, 0)))) == [0]
        assert (first.session_id > 0, second.session_id) == (True, 0)


def test_a_waiting_session_is_woken_by_any_of_its_partitions(wire: Wire, broker: Broker) -> None:
    wire.create("t", partitions=50)
    reader = Reader(wire)
    reader.ask(*((index, 0) for index in range(50)))
    reader.send(max_wait_ms=60_000)
    with Wire(broker.bootstrap_servers) as other:
        other.produce("t", b"a", partition=33)
    assert list(told(reader.receive())) == [33]


def test_of_two_fetches_that_go_on_with_one_session_the_first_hears_that_it_is_late(broker: Broker) -> None:
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


def test_the_start_of_a_log_is_told_when_it_moves(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    reader = Reader(wire)
    reader.ask((0, 1))
    wire.ask(DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 1)])]))
    assert told(reader.ask())[0].log_start_offset == 1
    assert told(reader.ask()) == {}


def test_a_topic_that_is_made_again_is_another_one(wire: Wire) -> None:
    wire.create("t")
    reader = Reader(wire, 13, wire.metadata("t").topics[0].topic_id)
    reader.ask((0, 0))
    wire.ask(DeleteTopicsRequest([DeleteTopicState("t")]))
    assert told(reader.ask())[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    wire.create("t")
    assert told(reader.ask())[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_an_id_that_never_was_is_unknown_until_it_is_left_out(wire: Wire) -> None:
    reader = Reader(wire, 13, uuid.UUID(int=5))
    assert told(reader.ask((0, 0)))[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert told(reader.ask())[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_topic_made_after_the_session_is_read_by_its_name(wire: Wire) -> None:
    reader = Reader(wire)
    assert told(reader.ask((0, 0)))[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    wire.create("t")
    assert told(reader.ask())[0].error_code == 0
    wire.produce("t", b"a")
    assert values(told(reader.ask())[0]) == [b"a"]


def test_a_follower_that_says_what_it_has_hears_where_the_logs_part(wire: Wire) -> None:
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

"""Fetch sessions: after each response the broker's session equals the wanted partitions."""

from __future__ import annotations

from random import Random
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.fetching.fetch_session_handler import (
    FetchSessionHandler,
    PartitionFetchParameters,
    SessionFetch,
    add_session,
    close_session_request,
)
from ottla.client.metadata.metadata_snapshot import NO_ID
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.protocol.messages.fetch import FetchRequest

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ID, OTHER = UUID(int=7), UUID(int=8)


def want(offset: int = 0, topic_id: UUID = ID) -> PartitionFetchParameters:
    return PartitionFetchParameters(topic_id, offset, 1, 100)


def in_session() -> FetchSessionHandler:
    """A handler with a session for A at offset 0."""
    handler = FetchSessionHandler()
    handler.plan({A: want()})
    handler.handle_response(5)
    return handler


def test_the_first_fetch_request_is_full_and_requests_a_session() -> None:
    assert FetchSessionHandler().plan({A: want()}) == SessionFetch(0, 0, {A: want()}, ())


def test_later_fetch_requests_contain_only_changes() -> None:
    handler = in_session()
    assert handler.plan({A: want(), B: want()}) == SessionFetch(5, 1, {B: want()}, [])
    handler.handle_response(5)
    assert handler.plan({B: want(3)}) == SessionFetch(5, 2, {B: want(3)}, [(A, ID)])


def test_a_recreated_topic_replaces_the_old_one() -> None:
    assert in_session().plan({A: want(0, OTHER)}) == SessionFetch(5, 1, {A: want(0, OTHER)}, [(A, ID)])


def test_topics_by_name_and_by_id_do_not_share_a_session() -> None:
    for wanted in ({A: want(0, NO_ID)}, {A: want(), B: want(0, NO_ID)}):
        assert in_session().plan(wanted) == SessionFetch(5, 0, wanted, ())


def test_a_session_is_ended_without_waiting_for_records() -> None:
    assert close_session_request(5) == FetchRequest(max_wait_ms=0, min_bytes=0, session_id=5, session_epoch=-1)


def test_a_broker_without_session_slots_gets_full_requests() -> None:
    handler = FetchSessionHandler()
    handler.plan({A: want()})
    handler.handle_response(0)
    assert handler.plan({A: want(3)}) == SessionFetch(0, 0, {A: want(3)}, ())


def test_a_session_that_the_broker_ended_is_started_again() -> None:
    handler = in_session()
    handler.plan({A: want()})
    handler.handle_response(0)
    assert handler.plan({A: want()}) == SessionFetch(0, 0, {A: want()}, ())


def test_an_unknown_session_id_is_not_sent_again_and_an_inconsistent_session_is_ended() -> None:
    gone, confused = in_session(), in_session()
    gone.handle_error(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    confused.handle_error(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    assert gone.plan({A: want()}) == SessionFetch(0, 0, {A: want()}, ())
    assert confused.plan({A: want()}) == SessionFetch(5, 0, {A: want()}, ())


def test_the_session_epoch_wraps_to_one() -> None:
    handler = in_session()
    handler._epoch = 2**31 - 1
    handler.handle_response(5)
    assert handler.plan({A: want()}).epoch == 1


class ModelBroker:
    """Keeps sessions as a broker does, and loses one now and then."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.sessions: dict[int, tuple[int, dict[tuple[UUID, int], int]]] = {}
        self.next_id = 1

    def take(self, request: FetchRequest) -> tuple[int, int, dict[tuple[UUID, int], int]]:
        """An error code, the session, and the offsets by partition that it believes to be wanted."""
        reported = {(t.topic_id, p.partition): p.fetch_offset for t in request.topics for p in t.partitions}
        if self.sessions and self.chance.random() < 0.1:
            self.sessions.clear()
        if request.session_epoch == 0:
            self.sessions.pop(request.session_id, None)
            if self.chance.random() < 0.2:
                return ErrorCode.NONE, 0, reported
            self.sessions[self.next_id] = (1, reported)
            self.next_id += 1
            return ErrorCode.NONE, self.next_id - 1, reported
        if request.session_id not in self.sessions:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, {}
        epoch, known = self.sessions[request.session_id]
        if epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, {}
        for topic in request.forgotten_topics_data:
            for number in topic.partitions:
                del known[topic.topic_id, number]
        known.update(reported)
        self.sessions[request.session_id] = (epoch + 1, known)
        return ErrorCode.NONE, request.session_id, known


@given(seed=st.integers(0, 2**32))
def test_after_any_lost_message_the_broker_session_has_the_assigned_partitions(seed: int) -> None:
    chance = Random(seed)
    handler, broker = FetchSessionHandler(), ModelBroker(chance)
    for _ in range(30):
        topic_id = chance.choice([ID, ID, ID, OTHER])
        numbers = chance.sample(range(4), chance.randrange(1, 5))
        wanted = {TopicPartition("t", n): want(chance.randrange(3), topic_id) for n in numbers}
        error, session_id, believed = broker.take(add_session(FetchRequest(), handler.plan(wanted)))
        if chance.random() < 0.1:
            handler.handle_disconnect()
        elif error:
            handler.handle_error(error)
        else:
            assert believed == {(w.topic_id, tp.partition): w.offset for tp, w in wanted.items()}
            handler.handle_response(session_id)

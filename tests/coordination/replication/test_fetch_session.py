"""A follower's side of a fetch session: the content of incremental requests, and the moments of full ones."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.replication.fetch_session import FollowerSession, ReplicaPlace
from ottla.errors import ErrorCode
from ottla.model import INT32_MAX
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse

A, B = ReplicaPlace(UUID(int=5), 0), ReplicaPlace(UUID(int=5), 1)


def next_request(session: FollowerSession, offsets: dict[ReplicaPlace, int]) -> FetchRequest:
    request = FetchRequest()
    session.fill_request(
        request, {place: FetchPartition(place.partition, 3, offset) for place, offset in offsets.items()}
    )
    session.check()
    return request


def named(request: FetchRequest) -> list[tuple[int, int]]:
    return [(each.partition, each.fetch_offset) for topic in request.topics for each in topic.partitions]


def test_the_first_request_names_everything_and_the_next_what_has_changed() -> None:
    session = FollowerSession()
    request = next_request(session, {A: 0, B: 7})
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [(0, 0), (1, 7)])
    session.handle_response(FetchResponse(session_id=42))
    request = next_request(session, {A: 10, B: 7})
    assert (request.session_id, request.session_epoch, named(request)) == (42, 1, [(0, 10)])
    session.handle_response(FetchResponse(session_id=42))
    assert (named(request := next_request(session, {A: 10, B: 7})), request.session_epoch) == ([], 2)


def test_only_the_first_request_on_a_connection_does_not_wait() -> None:
    session = FollowerSession()
    seen = [(session.epoch, session.is_patient)]
    # A leader without a session, or without a free slot, would otherwise get immediate full requests continuously.
    for answer in (
        FetchResponse(session_id=42),
        FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        FetchResponse(session_id=0),
    ):
        session.handle_response(answer)
        seen.append((session.epoch, session.is_patient))
    session.handle_disconnect()
    seen.append((session.epoch, session.is_patient))
    assert seen == [(0, False), (1, True), (0, True), (0, True), (0, False)]


def test_unfollowed_partitions_are_removed_from_the_session() -> None:
    session = FollowerSession()
    next_request(session, {A: 0, B: 7})
    session.handle_response(FetchResponse(session_id=42))
    session.remove_partition(A)
    request = next_request(session, {})
    assert [(each.topic_id, each.partitions) for each in request.forgotten_topics_data] == [(A.topic_id, [0])]
    session.handle_response(FetchResponse(session_id=42))
    assert named(next_request(session, {A: 0, B: 7})) == [(0, 0)]


def test_partitions_added_again_before_the_next_request_are_not_removed() -> None:
    session = FollowerSession()
    next_request(session, {A: 0})
    session.handle_response(FetchResponse(session_id=42))
    session.remove_partition(A)
    request = next_request(session, {A: 3})
    assert (named(request), request.forgotten_topics_data) == ([(0, 3)], [])


def test_partitions_removed_during_a_request_are_removed_by_the_next() -> None:
    session = FollowerSession()
    next_request(session, {A: 0})
    session.remove_partition(A)
    session.handle_response(FetchResponse(session_id=42))
    assert [each.partitions for each in next_request(session, {}).forgotten_topics_data] == [[0]]


@given(st.lists(st.tuples(st.sampled_from(["change", "leave", "ask", "lose"]), st.integers(0, 3), st.integers(0, 2))))
def test_a_leader_knows_the_session_after_each_incremental_request(
    steps: list[tuple[str, int, int]],
) -> None:
    session, wanted, known = FollowerSession(), dict[ReplicaPlace, int](), dict[ReplicaPlace, int]()
    stirred = set[ReplicaPlace]()
    for what, number, offset in steps:
        place = ReplicaPlace(A.topic_id, number)
        if what == "change":
            wanted[place] = offset
            stirred.add(place)
        elif what == "leave":
            wanted.pop(place, None)
            stirred.discard(place)
            session.remove_partition(place)
        elif what == "lose":
            session.reset()
        else:
            some = stirred if session.epoch else wanted
            request = next_request(session, {each: wanted[each] for each in some})
            known = known if request.session_epoch else {}
            known |= {ReplicaPlace(A.topic_id, partition): at for partition, at in named(request)}
            for each in request.forgotten_topics_data:
                del known[ReplicaPlace(each.topic_id, each.partitions[0])]
            assert known == wanted
            session.handle_response(FetchResponse(session_id=42))
            stirred.clear()


def test_an_error_or_a_lost_response_leads_to_a_full_request() -> None:
    session = FollowerSession()
    next_request(session, {A: 0})
    session.handle_response(FetchResponse(session_id=42))
    session.handle_response(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, session_id=42))
    request = next_request(session, {A: 0})
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [(0, 0)])
    session.handle_response(FetchResponse(session_id=43))
    session.reset()
    assert named(next_request(session, {A: 0})) == [(0, 0)]


def test_a_leader_without_a_session_gets_full_requests() -> None:
    session = FollowerSession()
    for _ in range(2):
        request = next_request(session, {A: 4})
        assert (request.session_epoch, named(request)) == (0, [(0, 4)])
        session.handle_response(FetchResponse(session_id=0))


def test_the_session_epoch_wraps_around_to_one() -> None:
    session = FollowerSession()
    session.handle_response(FetchResponse(session_id=42))
    session.epoch = INT32_MAX
    session.handle_response(FetchResponse(session_id=42))
    assert session.epoch == 1

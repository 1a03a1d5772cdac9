"""A follower's side of a fetch session: what it tells its leader, and when it tells everything again."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.replication.fetch_session import FollowerSession, Place
from ottla.errors import ErrorCode
from ottla.model import INT32_MAX
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse

A, B = Place(UUID(int=5), 0), Place(UUID(int=5), 1)


def told(session: FollowerSession, offsets: dict[Place, int]) -> FetchRequest:
    request = FetchRequest()
    session.fill(request, {place: FetchPartition(place.partition, 3, offset) for place, offset in offsets.items()})
    session.check()
    return request


def named(request: FetchRequest) -> list[tuple[int, int]]:
    return [(each.partition, each.fetch_offset) for topic in request.topics for each in topic.partitions]


def test_the_first_request_names_everything_and_the_next_what_has_changed() -> None:
    session = FollowerSession()
    request = told(session, {A: 0, B: 7})
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [(0, 0), (1, 7)])
    session.answered(FetchResponse(session_id=42))
    request = told(session, {A: 10, B: 7})
    assert (request.session_id, request.session_epoch, named(request)) == (42, 1, [(0, 10)])
    session.answered(FetchResponse(session_id=42))
    assert (named(request := told(session, {A: 10, B: 7})), request.session_epoch) == ([], 2)


def test_only_the_first_request_on_a_connection_wants_its_answer_at_once() -> None:
    session = FollowerSession()
    seen = [(session.epoch, session.is_patient)]
    # Of a leader that keeps no session, or has no room for one, an answer at once would be wanted again and again.
    for answer in (
        FetchResponse(session_id=42),
        FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        FetchResponse(session_id=0),
    ):
        session.answered(answer)
        seen.append((session.epoch, session.is_patient))
    session.lost_connection()
    seen.append((session.epoch, session.is_patient))
    assert seen == [(0, False), (1, True), (0, True), (0, True), (0, False)]


def test_what_is_followed_no_more_is_taken_out() -> None:
    session = FollowerSession()
    told(session, {A: 0, B: 7})
    session.answered(FetchResponse(session_id=42))
    session.leave(A)
    request = told(session, {})
    assert [(each.topic_id, each.partitions) for each in request.forgotten_topics_data] == [(A.topic_id, [0])]
    session.answered(FetchResponse(session_id=42))
    assert named(told(session, {A: 0, B: 7})) == [(0, 0)]


def test_what_comes_back_before_the_next_request_is_not_taken_out() -> None:
    session = FollowerSession()
    told(session, {A: 0})
    session.answered(FetchResponse(session_id=42))
    session.leave(A)
    request = told(session, {A: 3})
    assert (named(request), request.forgotten_topics_data) == ([(0, 3)], [])


def test_what_was_taken_out_amid_a_request_that_names_it_is_taken_out_by_the_next() -> None:
    session = FollowerSession()
    told(session, {A: 0})
    session.leave(A)
    session.answered(FetchResponse(session_id=42))
    assert [each.partitions for each in told(session, {}).forgotten_topics_data] == [[0]]


@given(st.lists(st.tuples(st.sampled_from(["change", "leave", "ask", "lose"]), st.integers(0, 3), st.integers(0, 2))))
def test_a_leader_knows_what_is_wanted_after_each_request_that_names_what_may_have_changed(
    steps: list[tuple[str, int, int]],
) -> None:
    session, wanted, known = FollowerSession(), dict[Place, int](), dict[Place, int]()
    stirred = set[Place]()
    for what, number, offset in steps:
        place = Place(A.topic_id, number)
        if what == "change":
            wanted[place] = offset
            stirred.add(place)
        elif what == "leave":
            wanted.pop(place, None)
            stirred.discard(place)
            session.leave(place)
        elif what == "lose":
            session.lost()
        else:
            some = stirred if session.epoch else wanted
            request = told(session, {each: wanted[each] for each in some})
            known = known if request.session_epoch else {}
            known |= {Place(A.topic_id, partition): at for partition, at in named(request)}
            for each in request.forgotten_topics_data:
                del known[Place(each.topic_id, each.partitions[0])]
            assert known == wanted
            session.answered(FetchResponse(session_id=42))
            stirred.clear()


def test_after_a_refusal_or_a_lost_answer_everything_is_told_again() -> None:
    session = FollowerSession()
    told(session, {A: 0})
    session.answered(FetchResponse(session_id=42))
    session.answered(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, session_id=42))
    request = told(session, {A: 0})
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [(0, 0)])
    session.answered(FetchResponse(session_id=43))
    session.lost()
    assert named(told(session, {A: 0})) == [(0, 0)]


def test_a_leader_without_room_for_a_session_is_told_everything_each_time() -> None:
    session = FollowerSession()
    for _ in range(2):
        request = told(session, {A: 4})
        assert (request.session_epoch, named(request)) == (0, [(0, 4)])
        session.answered(FetchResponse(session_id=0))


def test_the_epoch_of_a_session_goes_round_to_one() -> None:
    session = FollowerSession()
    session.answered(FetchResponse(session_id=42))
    session.epoch = INT32_MAX
    session.answered(FetchResponse(session_id=42))
    assert session.epoch == 1

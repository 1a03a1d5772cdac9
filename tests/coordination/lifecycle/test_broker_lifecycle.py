"""The life of a broker under controllers, told as what it hears and what it wants."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.cluster.registration import Listener, Registration
from ottla.coordination.lifecycle.broker_lifecycle import NEVER, BrokerLifecycle, BrokerState, Incarnation, Spans
from ottla.coordination.lifecycle.events import (
    Beaten,
    ControllerElected,
    ControllerFound,
    DirectoryFailed,
    Event,
    Fail,
    MetadataApplied,
    Note,
    Recover,
    Recovered,
    Registered,
    Send,
    Serve,
    Stop,
    StopWanted,
    TimePassed,
    Unanswered,
    Wish,
)
from ottla.coordination.lifecycle.joining import refusal
from ottla.errors import ErrorCode
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

DIRECTORY = UUID(int=150)
WHO = Incarnation(
    7, "cluster", UUID(int=9), (Listener("PLAINTEXT", "h", 9092, 0),), (DIRECTORY,), (DIRECTORY,), previous_epoch=4
)
FEATURES = {"metadata.version": 30, "eligible.leader.replicas.version": 1, "group.version": 1, "kraft.version": 1}
REGISTERED = Registered(BrokerRegistrationResponse(broker_epoch=12))


def heard(*, caught_up: bool = False, fenced: bool = True, shut_down: bool = False, error: int = 0) -> Beaten:
    return Beaten(BrokerHeartbeatResponse(0, error, caught_up, fenced, shut_down))


class Story:
    """A broker and its clock."""

    def __init__(self, who: Incarnation = WHO) -> None:
        self.now = 0.0
        self.broker = BrokerLifecycle(who, Spans(), self.now)

    def after(self, seconds: float, event: Event) -> list[Wish]:
        self.now += seconds
        wishes = self.broker.handle(event, self.now)
        self.broker.check()
        return wishes

    def tell(self, *events: Event) -> list[Wish]:
        """The wishes of the last of them."""
        wishes: list[Wish] = []
        for event in events:
            wishes = self.after(0, event)
        return wishes

    def running(self) -> Story:
        self.tell(ControllerFound(FEATURES), REGISTERED, heard(caught_up=True))
        self.after(1, Recovered())
        assert Serve() in self.tell(heard(fenced=False))
        return self


def sent(wishes: list[Wish]) -> BrokerHeartbeatRequest:
    (request,) = [wish.request for wish in wishes if isinstance(wish, Send)]
    assert isinstance(request, BrokerHeartbeatRequest)
    return request


def test_a_broker_registers_when_it_knows_who_to_ask_and_says_what_it_is() -> None:
    story = Story()
    assert story.after(5, TimePassed()) == []
    (wish,) = story.tell(ControllerFound(FEATURES))
    assert isinstance(wish, Send)
    request = wish.request
    assert isinstance(request, BrokerRegistrationRequest)
    assert (request.broker_id, request.cluster_id, request.previous_broker_epoch) == (7, "cluster", 4)
    assert [(each.name, each.port) for each in request.listeners] == [("PLAINTEXT", 9092)]
    ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    assert ranges["eligible.leader.replicas.version"] == (0, 1)
    assert "share.version" not in ranges


def test_it_beats_quickly_until_it_has_caught_up_then_sees_to_its_logs_and_is_let_in() -> None:
    story = Story()
    story.tell(ControllerFound(FEATURES))
    first = sent(story.tell(REGISTERED))
    assert (first.broker_epoch, first.want_fence, first.cordoned_log_dirs) == (12, True, None)
    assert story.tell(heard()) == []
    story.tell(MetadataApplied(12))
    assert sent(story.after(0.01, TimePassed())).current_metadata_offset == 12
    assert story.tell(heard(caught_up=True)) == [Recover()]
    ready = sent(story.after(0, Recovered()))
    assert (ready.want_fence, ready.cordoned_log_dirs) == (False, (DIRECTORY,))
    assert story.tell(heard(caught_up=True, fenced=False)) == [Serve()]
    assert story.broker.state is BrokerState.RUNNING


def test_a_broker_that_runs_is_heard_of_every_two_seconds() -> None:
    story = Story().running()
    assert story.after(1.9, TimePassed()) == []
    assert not sent(story.after(0.1, TimePassed())).want_shut_down


def test_where_another_broker_hands_over_what_was_applied_is_told_at_once_and_not_with_the_next_heartbeat() -> None:
    story = Story().running()
    assert story.after(0.5, MetadataApplied(20)) == []
    assert sent(story.tell(MetadataApplied(21, awaited=True))).current_metadata_offset == 21
    assert story.tell(MetadataApplied(22, awaited=True)) == [], "one question at a time"
    assert sent(story.tell(heard(fenced=False))).current_metadata_offset == 22


def test_one_question_is_under_way_at_a_time_and_what_is_urgent_follows_at_once() -> None:
    story = Story()
    story.tell(ControllerFound(FEATURES), REGISTERED)
    assert story.after(100, TimePassed()) == []
    assert story.tell(Recovered()) == []
    assert not sent(story.tell(heard(caught_up=False))).want_fence


def test_a_controller_that_does_not_answer_is_asked_again() -> None:
    story = Story().running()
    sent(story.after(2, TimePassed()))
    assert story.tell(Unanswered()) == []
    assert sent(story.after(2, TimePassed())).broker_epoch == 12


def test_the_next_heartbeat_is_counted_from_the_last_and_not_from_its_answer() -> None:
    story = Story().running()
    sent(story.after(2, TimePassed()))
    assert story.after(1.5, heard(fenced=False)) == []
    sent(story.after(0.5, TimePassed()))


def test_who_waited_long_for_an_answer_in_vain_asks_at_once() -> None:
    story = Story().running()
    sent(story.after(2, TimePassed()))
    sent(story.after(4.5, Unanswered()))


def test_a_new_active_controller_hears_of_a_broker_at_once() -> None:
    story = Story().running()
    sent(story.after(0.1, ControllerElected()))
    assert story.tell(ControllerElected()) == []
    sent(story.tell(Unanswered()))


def test_a_broker_that_knows_no_controller_says_nothing_because_of_an_election() -> None:
    assert Story().tell(ControllerElected()) == []


def test_a_broker_that_was_fenced_says_so_and_serves_again_when_it_is_let_in() -> None:
    story = Story().running()
    story.after(2, TimePassed())
    (note,) = story.tell(heard(fenced=True))
    assert isinstance(note, Note)
    story.after(2, TimePassed())
    assert story.tell(heard(fenced=False)) == [Serve()]


def test_a_broker_that_ends_hands_over_first() -> None:
    story = Story().running()
    assert sent(story.tell(StopWanted())).want_shut_down
    assert story.tell(heard(fenced=False)) == []
    assert sent(story.after(0.05, TimePassed())).want_shut_down
    assert story.tell(heard(fenced=False, shut_down=True)) == [Stop()]
    assert story.after(100, TimePassed()) == []


def test_a_broker_that_ends_waits_for_nobody_where_no_controller_has_answered_for_a_while() -> None:
    story = Story().running()
    story.after(2, TimePassed())
    story.tell(Unanswered())
    story.after(4, TimePassed())
    story.tell(StopWanted())
    told, stop = story.tell(Unanswered())
    assert isinstance(told, Note)
    assert "no controller answers" in told.sentence
    assert stop == Stop()
    assert story.after(100, TimePassed()) == []


def test_a_broker_that_ends_while_another_controller_is_elected_waits_for_that() -> None:
    story = Story().running()
    assert sent(story.tell(StopWanted())).want_shut_down
    assert story.tell(Unanswered()) == []
    assert sent(story.after(2, TimePassed())).want_shut_down
    assert story.tell(Unanswered()) == []
    assert sent(story.after(0, ControllerElected())).want_shut_down
    assert story.tell(heard(fenced=False)) == []
    story.after(0.05, TimePassed())
    assert story.tell(Unanswered()) == []
    story.after(2, TimePassed())
    assert story.tell(heard(fenced=False, shut_down=True)) == [Stop()]


def test_a_broker_that_ends_asks_until_five_seconds_after_the_last_answer_and_no_longer() -> None:
    story, begun = Story().running(), 1.0
    story.tell(StopWanted())
    while not (wishes := story.tell(Unanswered())):
        sent(story.after(story.broker.due - story.now, TimePassed()))
    assert wishes[-1] == Stop()
    assert story.now == begun + 5


def test_a_broker_that_was_never_let_in_has_nothing_to_hand_over() -> None:
    story = Story()
    story.tell(ControllerFound(FEATURES), REGISTERED)
    assert story.tell(StopWanted()) == [Stop()]


def test_a_cluster_that_runs_what_is_not_there_is_not_asked_at_all() -> None:
    (wish,) = Story().tell(ControllerFound({**FEATURES, "share.version": 1, "streams.version": 1}))
    assert isinstance(wish, Fail)
    assert "share.version 1 (share groups) and streams.version 1" in wish.sentence
    assert "downgrade --feature share.version=0 --feature streams.version=0" in wish.sentence


@pytest.mark.parametrize(
    ("finalized", "says"),
    [
        (FEATURES, None),
        ({"share.version": 0}, None),
        ({"metadata.version": 31}, "--feature metadata.version=30"),
        ({"metadata.version": 4}, "metadata.version 4"),
        ({"unheard.of": 2}, "--feature unheard.of=0"),
    ],
)
def test_a_level_is_refused_that_is_beyond_what_can_be_run(finalized: dict[str, int], says: str | None) -> None:
    sentence = refusal(finalized)
    assert (sentence is None) if says is None else (sentence is not None and says in sentence)


def test_another_broker_of_the_number_is_waited_for_until_it_is_silent() -> None:
    story = Story()
    story.tell(ControllerFound(FEATURES))
    (note,) = story.tell(Registered(BrokerRegistrationResponse(0, ErrorCode.DUPLICATE_BROKER_REGISTRATION)))
    assert isinstance(note, Note)
    (again,) = story.after(2, TimePassed())
    assert isinstance(again, Send)
    assert story.tell(Registered(BrokerRegistrationResponse(0, ErrorCode.DUPLICATE_BROKER_REGISTRATION))) == []


def known(broker: int, *log_dirs: UUID) -> dict[int, Registration]:
    """Somebody is registered."""
    listeners = (Listener("PLAINTEXT", "elsewhere", 9092, 0),)
    return {broker: Registration(broker, 3, UUID(int=8), listeners, (), log_dirs=log_dirs)}


def refused(code: int, others: dict[int, Registration]) -> Registered:
    return Registered(BrokerRegistrationResponse(0, code), others)


def test_a_directory_of_another_broker_is_named_with_that_broker() -> None:
    story = Story()
    story.tell(ControllerFound(FEATURES))
    (wish,) = story.tell(refused(ErrorCode.INVALID_REGISTRATION, known(3, UUID(int=1), DIRECTORY)))
    assert wish == Fail(
        "directory.id = AAAAAAAAAAAAAAAAAAAAlg in meta.properties is that of a directory of broker 3 (elsewhere:9092), and "
        "this is broker 7: a directory was copied with its meta.properties; format an empty one with "
        "`ottla storage format`, or take that broker out of the cluster"
    )


def test_a_directory_with_an_id_that_none_may_have_is_named() -> None:
    story = Story(
        Incarnation(7, "cluster", UUID(int=9), WHO.listeners, (DIRECTORY, UUID(int=99)), (), previous_epoch=4)
    )
    story.tell(ControllerFound(FEATURES))
    (wish,) = story.tell(refused(ErrorCode.INVALID_REGISTRATION, {}))
    assert wish == Fail(
        "directory.id = AAAAAAAAAAAAAAAAAAAAYw in meta.properties is one of Kafka's marks, and no broker gets in with it: format "
        "an empty directory with `ottla storage format`, with an id that `ottla storage random-uuid` draws"
    )


def test_a_refusal_that_nothing_explains_yet_is_told_and_tried_again() -> None:
    story = Story()
    story.tell(ControllerFound(FEATURES))
    for others in ({}, known(7, DIRECTORY), known(3, UUID(int=1))):
        (note,) = story.tell(refused(ErrorCode.INVALID_REGISTRATION, others))
        assert note == Note("not registered yet: the controller says INVALID_REGISTRATION")
        (again,) = story.after(2, TimePassed())
        assert isinstance(again, Send)


def test_another_broker_of_the_number_that_is_not_silent_in_time_is_named() -> None:
    story = Story()
    story.tell(ControllerFound(FEATURES), refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION, known(7)))
    (wish,) = story.after(60, TimePassed())
    assert wish == Fail(
        "node.id = 7 is that of another broker, which runs (elsewhere:9092): give this one a node.id and a directory of its own"
    )


def test_a_directory_that_fails_is_told_at_once_and_with_every_heartbeat_from_then_on() -> None:
    story = Story().running()
    first = sent(story.after(0.5, DirectoryFailed(DIRECTORY)))
    assert first.offline_log_dirs == (DIRECTORY,)
    assert story.tell(heard(fenced=False)) == []
    assert sent(story.after(2, TimePassed())).offline_log_dirs == (DIRECTORY,)
    assert story.tell(heard(fenced=False)) == []
    story.after(60, TimePassed())
    assert story.broker.state is BrokerState.RUNNING


def test_a_broker_ends_whose_controllers_do_not_hear_in_time_that_a_directory_has_failed() -> None:
    story = Story().running()
    sent(story.after(0.5, DirectoryFailed(DIRECTORY)))
    for _ in range(14):
        story.tell(Unanswered())
        sent(story.after(2, TimePassed()))
    story.tell(Unanswered())
    (wish,) = story.after(2, TimePassed())
    assert isinstance(wish, Fail)
    assert "log.dir.failure.timeout.ms" in wish.sentence


def test_a_broker_that_finds_no_controller_in_time_gives_up() -> None:
    (wish,) = Story().after(60, TimePassed())
    assert isinstance(wish, Fail)
    assert "controller.quorum.bootstrap.servers" in wish.sentence


def test_a_broker_that_is_not_registered_in_time_says_what_to_look_at() -> None:
    story = Story()
    story.tell(ControllerFound(FEATURES), Unanswered())
    (wish,) = story.after(60, TimePassed())
    assert isinstance(wish, Fail)
    assert "initial.broker.registration.timeout.ms" in wish.sentence


def test_a_broker_whose_number_was_taken_over_ends() -> None:
    story = Story().running()
    story.after(2, TimePassed())
    (wish,) = story.tell(heard(error=ErrorCode.STALE_BROKER_EPOCH))
    assert isinstance(wish, Fail)
    assert "another process has registered as broker 7, or that was unregistered" in wish.sentence


def test_controllers_of_another_cluster_are_left_alone() -> None:
    story = Story()
    story.tell(ControllerFound(FEATURES))
    (wish,) = story.tell(Registered(BrokerRegistrationResponse(0, ErrorCode.INCONSISTENT_CLUSTER_ID)))
    assert isinstance(wish, Fail)


EVENTS: list[Event] = [
    TimePassed(),
    Recovered(),
    MetadataApplied(3),
    MetadataApplied(4, awaited=True),
    ControllerFound(FEATURES),
    heard(),
    heard(caught_up=True),
    heard(fenced=False, caught_up=True),
    heard(error=ErrorCode.NOT_CONTROLLER),
    Unanswered(),
    ControllerElected(),
    StopWanted(),
]


@given(
    st.lists(
        st.tuples(
            st.floats(0, 3),
            st.sampled_from(EVENTS),
        ),
        max_size=40,
    )
)
def test_a_broker_speaks_at_least_every_two_seconds_until_it_ends(steps: list[tuple[float, Event]]) -> None:
    story, asking = Story(), False
    beginning: list[tuple[float, Event]] = [(0.0, ControllerFound(FEATURES)), (0.0, REGISTERED)]
    for pause, event in [*beginning, *steps]:
        if isinstance(event, Registered | Beaten | Unanswered):
            if not asking:
                continue  # nothing was asked that this could answer
            asking = False
        wishes = story.after(pause, event)
        assert not (asking and any(isinstance(wish, Send) for wish in wishes))
        asking = asking or any(isinstance(wish, Send) for wish in wishes)
        if story.broker.state is not BrokerState.SHUTTING_DOWN and not asking:
            assert story.broker.due <= story.now + 2 or (story.broker.due == NEVER and story.broker.epoch < 0)


def test_a_registration_refused_as_a_duplicate_is_repeated_soon_and_then_at_the_heartbeat_interval() -> None:
    story = Story()
    story.tell(ControllerFound(FEATURES))
    duplicate = Registered(BrokerRegistrationResponse(0, ErrorCode.DUPLICATE_BROKER_REGISTRATION))
    story.tell(duplicate)
    for pause in (0.25, 0.5, 1.0, 2.0, 2.0):
        assert story.after(pause * 0.9, TimePassed()) == []
        (again,) = story.after(pause * 0.1, TimePassed())
        assert isinstance(again, Send)
        story.tell(duplicate)

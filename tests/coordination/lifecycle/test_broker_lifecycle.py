"""The lifecycle of a broker under controllers, as events and actions."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordination.cluster.registration import BrokerListener, BrokerRegistration
from ottla.coordination.lifecycle.broker_lifecycle import (
    NEVER,
    BrokerLifecycle,
    BrokerLifecycleState,
    Incarnation,
    LifecycleTimeouts,
)
from ottla.coordination.lifecycle.events import (
    ControllerElected,
    ControllerFound,
    DirectoriesCordoned,
    DirectoryFailed,
    Event,
    HeartbeatResponseReceived,
    LifecycleAction,
    LifecycleRequestFailed,
    LifecycleTick,
    MetadataApplied,
    Note,
    Recover,
    Recovered,
    Registered,
    Send,
    Serve,
    ShutdownRequested,
    Stop,
    StopBroker,
)
from ottla.coordination.lifecycle.registration_errors import unsupported_features
from ottla.errors import ErrorCode
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse

DIRECTORY = UUID(int=150)
WHO = Incarnation(
    7,
    "cluster",
    UUID(int=9),
    (BrokerListener("PLAINTEXT", "h", 9092, 0),),
    (DIRECTORY,),
    (DIRECTORY,),
    previous_epoch=4,
)
FEATURES = {"metadata.version": 30, "eligible.leader.replicas.version": 1, "group.version": 1, "kraft.version": 1}
REGISTERED = Registered(BrokerRegistrationResponse(broker_epoch=12))


def heartbeat_response(
    *, caught_up: bool = False, fenced: bool = True, shut_down: bool = False, error: int = 0
) -> HeartbeatResponseReceived:
    return HeartbeatResponseReceived(BrokerHeartbeatResponse(0, error, caught_up, fenced, shut_down))


class Story:
    """A broker and its clock."""

    def __init__(self, who: Incarnation = WHO) -> None:
        self.now = 0.0
        self.broker = BrokerLifecycle(who, LifecycleTimeouts(), self.now)

    def after(self, seconds: float, event: Event) -> list[LifecycleAction]:
        self.now += seconds
        wishes = self.broker.handle(event, self.now)
        self.broker.check()
        return wishes

    def handle(self, *events: Event) -> list[LifecycleAction]:
        """Return the actions of the last event."""
        wishes: list[LifecycleAction] = []
        for event in events:
            wishes = self.after(0, event)
        return wishes

    def running(self) -> Story:
        self.handle(ControllerFound(FEATURES), REGISTERED, heartbeat_response(caught_up=True))
        self.after(1, Recovered())
        assert Serve() in self.handle(heartbeat_response(fenced=False))
        return self


def find_heartbeat(wishes: list[LifecycleAction]) -> BrokerHeartbeatRequest:
    (request,) = [wish.request for wish in wishes if isinstance(wish, Send)]
    assert isinstance(request, BrokerHeartbeatRequest)
    return request


def test_a_broker_registers_its_properties_when_it_knows_a_controller() -> None:
    story = Story()
    assert story.after(5, LifecycleTick()) == []
    (wish,) = story.handle(ControllerFound(FEATURES))
    assert isinstance(wish, Send)
    request = wish.request
    assert isinstance(request, BrokerRegistrationRequest)
    assert (request.broker_id, request.cluster_id, request.previous_broker_epoch) == (7, "cluster", 4)
    assert [(each.name, each.port) for each in request.listeners] == [("PLAINTEXT", 9092)]
    ranges = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    assert ranges["eligible.leader.replicas.version"] == (0, 1)
    assert ranges["share.version"] == (0, 2)
    assert ranges["streams.version"] == (0, 1)


def test_heartbeats_are_frequent_until_catch_up_then_logs_load_and_the_broker_is_unfenced() -> None:
    story = Story()
    story.handle(ControllerFound(FEATURES))
    first = find_heartbeat(story.handle(REGISTERED))
    assert (first.broker_epoch, first.want_fence, first.cordoned_log_dirs) == (12, True, None)
    assert story.handle(heartbeat_response()) == []
    story.handle(MetadataApplied(12))
    assert find_heartbeat(story.after(0.01, LifecycleTick())).current_metadata_offset == 12
    assert story.handle(heartbeat_response(caught_up=True)) == [Recover()]
    ready = find_heartbeat(story.after(0, Recovered()))
    assert (ready.want_fence, ready.cordoned_log_dirs) == (False, (DIRECTORY,))
    assert story.handle(heartbeat_response(caught_up=True, fenced=False)) == [Serve()]
    assert story.broker.state is BrokerLifecycleState.RUNNING


def test_a_running_broker_sends_a_heartbeat_every_two_seconds() -> None:
    story = Story().running()
    assert story.after(1.9, LifecycleTick()) == []
    assert not find_heartbeat(story.after(0.1, LifecycleTick())).want_shut_down


def test_during_another_brokers_shutdown_the_applied_offset_is_reported_at_once() -> None:
    story = Story().running()
    assert story.after(0.5, MetadataApplied(20)) == []
    assert find_heartbeat(story.handle(MetadataApplied(21, awaited=True))).current_metadata_offset == 21
    assert story.handle(MetadataApplied(22, awaited=True)) == [], "one question at a time"
    assert find_heartbeat(story.handle(heartbeat_response(fenced=False))).current_metadata_offset == 22


def test_one_request_is_in_flight_and_an_urgent_one_follows_at_once() -> None:
    story = Story()
    story.handle(ControllerFound(FEATURES), REGISTERED)
    assert story.after(100, LifecycleTick()) == []
    assert story.handle(Recovered()) == []
    assert not find_heartbeat(story.handle(heartbeat_response(caught_up=False))).want_fence


def test_a_request_without_a_response_is_retried() -> None:
    story = Story().running()
    find_heartbeat(story.after(2, LifecycleTick()))
    assert story.handle(LifecycleRequestFailed()) == []
    assert find_heartbeat(story.after(2, LifecycleTick())).broker_epoch == 12


def test_the_next_heartbeat_is_counted_from_the_last_and_not_from_its_answer() -> None:
    story = Story().running()
    find_heartbeat(story.after(2, LifecycleTick()))
    assert story.after(1.5, heartbeat_response(fenced=False)) == []
    find_heartbeat(story.after(0.5, LifecycleTick()))


def test_a_request_that_timed_out_is_retried_at_once() -> None:
    story = Story().running()
    find_heartbeat(story.after(2, LifecycleTick()))
    find_heartbeat(story.after(4.5, LifecycleRequestFailed()))


def test_a_new_active_controller_gets_a_heartbeat_at_once() -> None:
    story = Story().running()
    find_heartbeat(story.after(0.1, ControllerElected()))
    assert story.handle(ControllerElected()) == []
    find_heartbeat(story.handle(LifecycleRequestFailed()))


def test_an_election_sends_no_request_if_no_controller_is_known() -> None:
    assert Story().handle(ControllerElected()) == []


def test_a_fenced_broker_logs_it_and_serves_again_when_unfenced() -> None:
    story = Story().running()
    story.after(2, LifecycleTick())
    (note,) = story.handle(heartbeat_response(fenced=True))
    assert isinstance(note, Note)
    story.after(2, LifecycleTick())
    assert story.handle(heartbeat_response(fenced=False)) == [Serve()]


def test_a_stopping_broker_first_requests_a_controlled_shutdown() -> None:
    story = Story().running()
    assert find_heartbeat(story.handle(ShutdownRequested())).want_shut_down
    assert story.handle(heartbeat_response(fenced=False)) == []
    assert find_heartbeat(story.after(0.05, LifecycleTick())).want_shut_down
    assert story.handle(heartbeat_response(fenced=False, shut_down=True)) == [Stop()]
    assert story.after(100, LifecycleTick()) == []


def test_a_stopping_broker_does_not_wait_for_silent_controllers() -> None:
    story = Story().running()
    story.after(2, LifecycleTick())
    story.handle(LifecycleRequestFailed())
    story.after(4, LifecycleTick())
    story.handle(ShutdownRequested())
    reported, stop = story.handle(LifecycleRequestFailed())
    assert isinstance(reported, Note)
    assert "no controller responds" in reported.text
    assert stop == Stop()
    assert story.after(100, LifecycleTick()) == []


def test_a_stopping_broker_waits_for_a_controller_election() -> None:
    story = Story().running()
    assert find_heartbeat(story.handle(ShutdownRequested())).want_shut_down
    assert story.handle(LifecycleRequestFailed()) == []
    assert find_heartbeat(story.after(2, LifecycleTick())).want_shut_down
    assert story.handle(LifecycleRequestFailed()) == []
    assert find_heartbeat(story.after(0, ControllerElected())).want_shut_down
    assert story.handle(heartbeat_response(fenced=False)) == []
    story.after(0.05, LifecycleTick())
    assert story.handle(LifecycleRequestFailed()) == []
    story.after(2, LifecycleTick())
    assert story.handle(heartbeat_response(fenced=False, shut_down=True)) == [Stop()]


def test_a_stopping_broker_retries_until_five_seconds_after_the_last_response() -> None:
    story, begun = Story().running(), 1.0
    story.handle(ShutdownRequested())
    while not (wishes := story.handle(LifecycleRequestFailed())):
        find_heartbeat(story.after(story.broker.due - story.now, LifecycleTick()))
    assert wishes[-1] == Stop()
    assert story.now == begun + 5


def test_a_broker_that_was_never_unfenced_stops_without_controlled_shutdown() -> None:
    story = Story()
    story.handle(ControllerFound(FEATURES), REGISTERED)
    assert story.handle(ShutdownRequested()) == [Stop()]


def test_a_broker_does_not_register_with_a_cluster_at_an_unsupported_level() -> None:
    (wish,) = Story().handle(ControllerFound({**FEATURES, "share.version": 3, "streams.version": 2}))
    assert isinstance(wish, StopBroker)
    assert "share.version 3 (share groups) and streams.version 2" in wish.error
    assert "downgrade --feature share.version=2 --feature streams.version=1" in wish.error


@pytest.mark.parametrize(
    ("finalized", "says"),
    [
        (FEATURES, None),
        ({"share.version": 0}, None),
        ({"share.version": 2}, None),
        ({"metadata.version": 33}, None),
        ({"metadata.version": 34}, "install a version that supports metadata.version 34; this one supports 33"),
        ({"metadata.version": 4}, "metadata.version 4"),
        ({"unheard.of": 2}, "--feature unheard.of=0"),
    ],
)
def test_a_level_above_the_supported_range_is_rejected(finalized: dict[str, int], says: str | None) -> None:
    sentence = unsupported_features(finalized)
    assert (sentence is None) if says is None else (sentence is not None and says in sentence)


def test_a_registration_waits_until_another_broker_with_the_same_id_is_silent() -> None:
    story = Story()
    story.handle(ControllerFound(FEATURES))
    (note,) = story.handle(Registered(BrokerRegistrationResponse(0, ErrorCode.DUPLICATE_BROKER_REGISTRATION)))
    assert isinstance(note, Note)
    (again,) = story.after(2, LifecycleTick())
    assert isinstance(again, Send)
    assert story.handle(Registered(BrokerRegistrationResponse(0, ErrorCode.DUPLICATE_BROKER_REGISTRATION))) == []


def known(broker: int, *log_dirs: UUID) -> dict[int, BrokerRegistration]:
    """Registrations with one broker."""
    listeners = (BrokerListener("PLAINTEXT", "elsewhere", 9092, 0),)
    return {broker: BrokerRegistration(broker, 3, UUID(int=8), listeners, (), log_dirs=log_dirs)}


def refused(code: int, others: dict[int, BrokerRegistration]) -> Registered:
    return Registered(BrokerRegistrationResponse(0, code), others)


def test_a_directory_of_another_broker_is_named_with_that_broker() -> None:
    story = Story()
    story.handle(ControllerFound(FEATURES))
    (wish,) = story.handle(refused(ErrorCode.INVALID_REGISTRATION, known(3, UUID(int=1), DIRECTORY)))
    assert wish == StopBroker(
        "directory.id = AAAAAAAAAAAAAAAAAAAAlg in meta.properties is that of a directory of broker 3 (elsewhere:9092), and "
        "this is broker 7: a directory was copied with its meta.properties; format an empty one with "
        "`ottla storage format`, or unregister that broker"
    )


def test_a_directory_with_an_id_that_none_may_have_is_named() -> None:
    story = Story(
        Incarnation(7, "cluster", UUID(int=9), WHO.listeners, (DIRECTORY, UUID(int=99)), (), previous_epoch=4)
    )
    story.handle(ControllerFound(FEATURES))
    (wish,) = story.handle(refused(ErrorCode.INVALID_REGISTRATION, {}))
    assert wish == StopBroker(
        "directory.id = AAAAAAAAAAAAAAAAAAAAYw in meta.properties is reserved by Kafka, and a registration with it is rejected: format "
        "an empty directory with `ottla storage format`, with an id from `ottla storage random-uuid`"
    )


def test_an_unexplained_rejection_is_logged_and_retried() -> None:
    story = Story()
    story.handle(ControllerFound(FEATURES))
    for others in ({}, known(7, DIRECTORY), known(3, UUID(int=1))):
        (note,) = story.handle(refused(ErrorCode.INVALID_REGISTRATION, others))
        assert note == Note("registration failed, retrying: error=INVALID_REGISTRATION")
        (again,) = story.after(2, LifecycleTick())
        assert isinstance(again, Send)


def test_a_broker_with_the_same_id_that_stays_active_is_named() -> None:
    story = Story()
    story.handle(ControllerFound(FEATURES), refused(ErrorCode.DUPLICATE_BROKER_REGISTRATION, known(7)))
    (wish,) = story.after(60, LifecycleTick())
    assert wish == StopBroker(
        "node.id = 7 is used by another running broker (elsewhere:9092): set another node.id and use another directory for this one"
    )


def test_a_failed_directory_is_reported_at_once_and_with_every_later_heartbeat() -> None:
    story = Story().running()
    first = find_heartbeat(story.after(0.5, DirectoryFailed(DIRECTORY)))
    assert first.offline_log_dirs == (DIRECTORY,)
    assert story.handle(heartbeat_response(fenced=False)) == []
    assert find_heartbeat(story.after(2, LifecycleTick())).offline_log_dirs == (DIRECTORY,)
    assert story.handle(heartbeat_response(fenced=False)) == []
    story.after(60, LifecycleTick())
    assert story.broker.state is BrokerLifecycleState.RUNNING


def test_cordoned_directories_are_reported_at_once_if_they_have_changed() -> None:
    story = Story().running()
    assert story.after(0.5, DirectoriesCordoned((DIRECTORY,))) == []
    assert find_heartbeat(story.after(0, DirectoriesCordoned(()))).cordoned_log_dirs == ()
    assert story.handle(heartbeat_response(fenced=False)) == []
    assert find_heartbeat(story.after(2, LifecycleTick())).cordoned_log_dirs == ()


def test_a_broker_stops_if_a_failed_directory_cannot_be_reported_in_time() -> None:
    story = Story().running()
    find_heartbeat(story.after(0.5, DirectoryFailed(DIRECTORY)))
    for _ in range(14):
        story.handle(LifecycleRequestFailed())
        find_heartbeat(story.after(2, LifecycleTick()))
    story.handle(LifecycleRequestFailed())
    (wish,) = story.after(2, LifecycleTick())
    assert isinstance(wish, StopBroker)
    assert "log.dir.failure.timeout.ms" in wish.error


def test_a_broker_that_finds_no_controller_in_time_stops() -> None:
    (wish,) = Story().after(60, LifecycleTick())
    assert isinstance(wish, StopBroker)
    assert "controller.quorum.bootstrap.servers" in wish.error


def test_a_registration_timeout_names_the_likely_causes() -> None:
    story = Story()
    story.handle(ControllerFound(FEATURES), LifecycleRequestFailed())
    (wish,) = story.after(60, LifecycleTick())
    assert isinstance(wish, StopBroker)
    assert "initial.broker.registration.timeout.ms" in wish.error


def test_a_broker_replaced_under_its_id_stops() -> None:
    story = Story().running()
    story.after(2, LifecycleTick())
    (wish,) = story.handle(heartbeat_response(error=ErrorCode.STALE_BROKER_EPOCH))
    assert isinstance(wish, StopBroker)
    assert "another process has registered as broker 7, or that broker was unregistered" in wish.error


def test_a_cluster_id_mismatch_fails_the_registration() -> None:
    story = Story()
    story.handle(ControllerFound(FEATURES))
    (wish,) = story.handle(Registered(BrokerRegistrationResponse(0, ErrorCode.INCONSISTENT_CLUSTER_ID)))
    assert isinstance(wish, StopBroker)


EVENTS: list[Event] = [
    LifecycleTick(),
    Recovered(),
    MetadataApplied(3),
    MetadataApplied(4, awaited=True),
    ControllerFound(FEATURES),
    heartbeat_response(),
    heartbeat_response(caught_up=True),
    heartbeat_response(fenced=False, caught_up=True),
    heartbeat_response(error=ErrorCode.NOT_CONTROLLER),
    LifecycleRequestFailed(),
    ControllerElected(),
    ShutdownRequested(),
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
def test_a_broker_sends_a_request_at_least_every_two_seconds_until_it_stops(steps: list[tuple[float, Event]]) -> None:
    story, asking = Story(), False
    beginning: list[tuple[float, Event]] = [(0.0, ControllerFound(FEATURES)), (0.0, REGISTERED)]
    for pause, event in [*beginning, *steps]:
        if isinstance(event, Registered | HeartbeatResponseReceived | LifecycleRequestFailed):
            if not asking:
                continue  # no request was sent that this could answer
            asking = False
        wishes = story.after(pause, event)
        assert not (asking and any(isinstance(wish, Send) for wish in wishes))
        asking = asking or any(isinstance(wish, Send) for wish in wishes)
        if story.broker.state is not BrokerLifecycleState.SHUTTING_DOWN and not asking:
            assert story.broker.due <= story.now + 2 or (story.broker.due == NEVER and story.broker.epoch < 0)


def test_a_registration_refused_as_a_duplicate_is_repeated_soon_and_then_at_the_heartbeat_interval() -> None:
    story = Story()
    story.handle(ControllerFound(FEATURES))
    duplicate = Registered(BrokerRegistrationResponse(0, ErrorCode.DUPLICATE_BROKER_REGISTRATION))
    story.handle(duplicate)
    for pause in (0.25, 0.5, 1.0, 2.0, 2.0):
        assert story.after(pause * 0.9, LifecycleTick()) == []
        (again,) = story.after(pause * 0.1, LifecycleTick())
        assert isinstance(again, Send)
        story.handle(duplicate)

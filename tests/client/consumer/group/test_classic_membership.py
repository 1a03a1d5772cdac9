"""Transcripts of a classic member and its coordinator: each event is a line, and its results are below it.

decide              the heartbeat thread calls `decide`
lost JoinGroup      the connection broke before the answer
JoinGroup 27        an answer with that error code, else with what follows
"""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.group.heartbeat import Heartbeat
from ottla.client.consumer.group.membership.classic_membership import ClassicMembership
from ottla.client.consumer.group.membership.member_state import TRANSITIONS, ClassicMemberEvent, ClassicMemberState
from ottla.client.consumer.group.membership.step import (
    AssignStep,
    DisconnectStep,
    EndStep,
    FindCoordinatorStep,
    SendStep,
    WaitStep,
)
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ErrorCode, FencedInstanceIdError, KafkaError
from ottla.model import Node
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse

COORDINATOR = Node(2**31 - 2, "kafka", 9092)


class Story:
    """A member with a clock and a coordinator that the test controls."""

    def __init__(self, **settings: Any) -> None:
        config = ConsumerConfig(bootstrap_servers=("kafka:9092",), group_id="g", **settings)
        beat = Heartbeat(
            interval_ms=config.heartbeat_interval_ms,
            session_timeout_ms=config.session_timeout_ms,
            max_poll_interval_ms=config.max_poll_interval_ms,
        )
        self.member = ClassicMembership(config, beat, ExponentialBackoff(100, 1000, Random(1)))
        self.now = 0.0
        self.coordinator: Node | None = COORDINATOR
        self.sent: dict[str, SendStep] = {}

    def play(self, transcript: str) -> None:
        for block in transcript.strip().split("\n\n"):
            command, *expected = (line.strip() for line in block.strip().splitlines())
            happened = self.do(*command.split())
            happened += [text for level, text in self.member.take_log_lines() if level >= 20]
            self.member.check()
            assert [short(line) for line in happened] == expected, command

    def do(self, command: str, *arguments: str) -> list[str]:
        act = getattr(self, f"do_{command}", None)
        return act(*arguments) if act else self.answer(command, *arguments)

    def do_poll(self) -> list[str]:
        self.member.heartbeat.poll(self.now)
        self.member.subscribe()
        return ["must prepare"] if self.member.should_prepare else []

    def do_prepared(self) -> list[str]:
        self.member.join([JoinGroupRequestProtocol("range", b"")], self.member.generation)
        return []

    def do_wait(self, seconds: str) -> list[str]:
        self.now += float(seconds)
        return []

    def do_coordinator(self, state: str) -> list[str]:
        self.coordinator = COORDINATOR if state == "found" else None
        return []

    def do_decide(self) -> list[str]:
        match self.member.decide(self.now, self.coordinator):
            case FindCoordinatorStep(span):
                return [f"find within {span:.1f}" if span < self.now + 2 else "find"]
            case SendStep(message) as send:
                name = type(message).__name__.removesuffix("Request")
                self.sent[name] = send
                member = getattr(message, "member_id", "") or "nobody"
                return [f"send {name} {message.members[0].member_id if name == 'LeaveGroup' else member}"]
            case AssignStep(answer):
                self.member.distribute(answer, {"m": b"all"}, {"t": 2})
                return ["assign"]
            case DisconnectStep(why):
                return [f"forget {why}"]
            case WaitStep(span):
                return [f"wait {span:.1f}"]
            case EndStep():
                return ["end"]

    def do_assigned(self) -> list[str]:
        assigned = self.member.take_assigned()
        return [] if assigned is None else [f"{bytes(assigned.data).decode()} {assigned.counts}"]

    def do_rejoin(self) -> list[str]:
        self.member.request_rejoin("of a whim")
        return []

    def do_leave(self) -> list[str]:
        self.member.leave("the consumer is closed", self.now)
        self.member.unsubscribe()
        return []

    def do_close(self) -> list[str]:
        self.member.closing = True
        return []

    def do_failure(self) -> list[str]:
        failure = self.member.take_failure()
        return [] if failure is None else [type(failure).__name__]

    def do_lost(self, name: str) -> list[str]:
        error = KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone")
        lost_reason = self.member.handle_failure(self.sent[name], error, self.now)
        return [f"look elsewhere: {lost_reason}"] if lost_reason else []

    def answer(self, name: str, *arguments: str) -> list[str]:
        code = int(arguments[0]) if arguments and arguments[0].isdigit() else 0
        answers: dict[str, Any] = {
            "JoinGroup": JoinGroupResponse(
                error_code=code, generation_id=1, member_id="m", protocol_name="range", leader="m"
            ),
            "SyncGroup": SyncGroupResponse(error_code=code, assignment=b"all"),
            "Heartbeat": HeartbeatResponse(error_code=code),
            "LeaveGroup": LeaveGroupResponse(error_code=code),
        }
        answer = answers[name]
        if "follower" in arguments:
            answer.leader = "other"
        lost_reason = self.member.handle_response(self.sent[name], answer, self.now)
        return [f"look elsewhere: {lost_reason}"] if lost_reason else []


def short(line: str) -> str:
    """Format a request without its constant fields."""
    line = line.replace("Generation{generationId=1, memberId='m', protocol='range'}", "G1")
    line = line.replace("Generation{generationId=-1, memberId='m', protocol='None'}", "M")
    return line.replace("Generation{generationId=-1, memberId='', protocol='None'}", "nothing")


JOIN = """
    poll
    must prepare

    prepared

    decide
    send JoinGroup nobody
    joining the group

    JoinGroup 79
    rejoining the group: use of the member id m

    decide
    send JoinGroup m
    joining the group

    JoinGroup
    joined the group in generation G1

    decide
    assign

    decide
    send SyncGroup m

    SyncGroup
    received the assignment of generation G1

    assigned
    all {'t': 2}
"""


def stable(**settings: Any) -> Story:
    """A member that leads its group."""
    story = Story(**settings)
    story.play(JOIN)
    return story


@pytest.mark.behaviour("C11")
def test_a_new_member_joins_without_an_id_and_again_with_the_assigned_id() -> None:
    story = stable()
    assert story.member.state is ClassicMemberState.STABLE
    assert story.member.generation.member_id == "m"


def test_every_state_has_an_answer_to_failing_and_leaving() -> None:
    for state, event in itertools.product(ClassicMemberState, (ClassicMemberEvent.FAILED, ClassicMemberEvent.LEFT)):
        assert TRANSITIONS[state, event] is ClassicMemberState.UNJOINED


def test_an_unknown_coordinator_is_looked_up_first() -> None:
    story = Story()
    story.coordinator = None
    story.play("""
        decide
        wait inf

        poll
        must prepare

        decide
        wait inf

        prepared

        decide
        find
    """)


def test_a_follower_accepts_its_assignment() -> None:
    Story().play("""
        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        joining the group

        JoinGroup follower
        joined the group in generation G1

        decide
        send SyncGroup m

        SyncGroup
        received the assignment of generation G1

        assigned
        all None
    """)


@pytest.mark.behaviour("C7")
def test_a_stable_member_sends_heartbeats_and_detects_rebalances() -> None:
    stable().play(
        """
        decide
        wait 3.0

        wait 3

        decide
        send Heartbeat m

        decide
        wait 297.0

        Heartbeat

        wait 3

        decide
        send Heartbeat m

        Heartbeat 27
        rejoining the group: a rebalance is in progress

        poll
        must prepare

        wait 3

        decide
        send Heartbeat m

        Heartbeat 27

        prepared

        decide
        send JoinGroup m
        joining the group
    """.replace("\n        \n", "\n\n")
    )


@pytest.mark.behaviour("C8")
def test_a_member_whose_session_expired_gets_an_error_and_rejoins() -> None:
    stable().play("""
        wait 3

        decide
        send Heartbeat m

        Heartbeat 25
        heartbeat of G1 with group instance id None failed: UNKNOWN_MEMBER_ID; the generation is dropped
        dropped generation and member id: HEARTBEAT returned UNKNOWN_MEMBER_ID
        rejoining the group: HEARTBEAT returned UNKNOWN_MEMBER_ID

        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        joining the group
    """)


@pytest.mark.behaviour("C9")
def test_exceeding_the_max_poll_interval_leaves_the_group_and_the_next_poll_rejoins() -> None:
    story = stable(max_poll_interval_ms=10_000)
    story.now = 10.1
    step = story.member.decide(story.now, COORDINATOR)
    assert isinstance(step, SendStep)
    story.sent["LeaveGroup"] = step
    warning, *rest = (text for _, text in story.member.log_lines)
    assert "Raise max.poll.interval.ms" in warning
    assert "max.poll.records" in warning
    assert rest == [
        "dropped generation and member id: the member leaves the group",
        "rejoining the group: the member leaves the group",
        "Member m sending LeaveGroup request to coordinator kafka:9092 (id: 2147483646 rack: null) due to "
        "poll() was not called for max.poll.interval.ms",
    ]
    story.member.log_lines = []
    story.play("""
        LeaveGroup

        decide
        wait inf

        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        joining the group
    """)


@pytest.mark.behaviour("C10")
def test_leaving_sends_a_leave_request_and_ends() -> None:
    stable().play("""
        leave
        dropped generation and member id: the member leaves the group

        close

        decide
        send LeaveGroup m
        Member m sending LeaveGroup request to coordinator kafka:9092 (id: 2147483646 rack: null) due to the consumer is closed

        decide
        wait inf

        LeaveGroup

        decide
        end
    """)


@pytest.mark.behaviour("C10")
def test_leaving_in_the_middle_of_a_rebalance_does_not_wait_for_it() -> None:
    stable().play("""
        rejoin
        rejoining the group: of a whim

        prepared

        decide
        send JoinGroup m
        joining the group

        leave
        dropped generation and member id: the member leaves the group

        decide
        forget leaving while the group rebalances

        decide
        send LeaveGroup m
        Member m sending LeaveGroup request to coordinator kafka:9092 (id: 2147483646 rack: null) due to the consumer is closed

        lost JoinGroup
    """)


@pytest.mark.behaviour("C10")
def test_a_leave_request_is_retried_until_it_is_answered() -> None:
    stable().play("""
        leave
        dropped generation and member id: the member leaves the group

        close

        decide
        send LeaveGroup m
        Member m sending LeaveGroup request to coordinator kafka:9092 (id: 2147483646 rack: null) due to the consumer is closed

        lost LeaveGroup
        look elsewhere: NETWORK_EXCEPTION: gone
        LeaveGroup request failed with error: NETWORK_EXCEPTION: gone; it is retried

        coordinator gone

        decide
        find within 1.0

        coordinator found

        wait 1

        decide
        send LeaveGroup m
        Member m sending LeaveGroup request to coordinator kafka:9092 (id: 2147483646 rack: null) due to the consumer is closed

        LeaveGroup 16
        look elsewhere: NOT_COORDINATOR
        LeaveGroup request failed with error: NOT_COORDINATOR; it is retried

        wait 1

        decide
        send LeaveGroup m
        Member m sending LeaveGroup request to coordinator kafka:9092 (id: 2147483646 rack: null) due to the consumer is closed

        LeaveGroup

        decide
        end
    """)


def test_an_unanswered_leave_request_is_not_retried_beyond_the_close_timeout() -> None:
    story = stable()
    story.member.leave("the consumer is closed", story.now, until=1.0)
    story.play("""
        close
        dropped generation and member id: the member leaves the group

        decide
        send LeaveGroup m
        Member m sending LeaveGroup request to coordinator kafka:9092 (id: 2147483646 rack: null) due to the consumer is closed

        wait 1

        lost LeaveGroup
        look elsewhere: NETWORK_EXCEPTION: gone
        LeaveGroup request failed with error: NETWORK_EXCEPTION: gone; the member is removed when its session expires

        decide
        end
    """)


def test_a_member_that_leaves_before_it_has_an_id_waits_for_the_id() -> None:
    Story().play("""
        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        joining the group

        leave
        dropped generation and member id: the member leaves the group

        close

        decide
        wait 1.0

        JoinGroup 79

        decide
        send LeaveGroup m
        Member m sending LeaveGroup request to coordinator kafka:9092 (id: 2147483646 rack: null) due to the member left before its join completed

        LeaveGroup

        decide
        end
    """)


def test_leaving_without_a_coordinator_takes_a_second_at_most() -> None:
    stable().play("""
        coordinator gone

        leave
        dropped generation and member id: the member leaves the group

        close

        decide
        find within 1.0

        wait 1

        decide
        wait 0.0
        No leave request sent: the coordinator is unknown; the member is removed when its session expires

        decide
        end
    """)


@pytest.mark.behaviour("C12")
def test_a_static_member_sends_no_leave_request() -> None:
    stable(group_instance_id="i").play("""
        leave
        dropped generation and member id: the member leaves the group

        close

        decide
        end
    """)


@pytest.mark.behaviour("C12")
def test_a_fenced_member_does_not_rejoin_and_raises_on_each_poll() -> None:
    story = stable(group_instance_id="i")
    story.play("""
        wait 3

        decide
        send Heartbeat m

        Heartbeat 82

        failure
        FencedInstanceIdError

        failure
        FencedInstanceIdError

        decide
        wait inf
    """)
    failure = story.member.take_failure()
    assert isinstance(failure, FencedInstanceIdError)
    assert "uses the same group.instance.id = 'i'" in str(failure)


@pytest.mark.parametrize("code", [14, 15, 16, 7])
def test_retriable_errors_are_retried(code: int) -> None:
    story = Story()
    story.play("poll\nmust prepare\n\nprepared\n\ndecide\nsend JoinGroup nobody\njoining the group")
    story.member.handle_response(story.sent["JoinGroup"], JoinGroupResponse(error_code=code), story.now)
    story.member.log_lines = []
    assert isinstance(story.member.decide(story.now, COORDINATOR), WaitStep)
    story.play("wait 0.2\n\ndecide\nsend JoinGroup nobody\njoining the group")


@pytest.mark.parametrize("code", [23, 24, 26, 30, 81])
def test_a_fatal_error_is_raised_once_and_the_join_is_retried_at_the_next_poll(code: int) -> None:
    story = Story()
    story.play("poll\nmust prepare\n\nprepared\n\ndecide\nsend JoinGroup nobody\njoining the group")
    story.member.handle_response(story.sent["JoinGroup"], JoinGroupResponse(error_code=code), story.now)
    failure = story.member.take_failure()
    assert isinstance(failure, KafkaError)
    assert failure.message
    story.play("failure\n\ndecide\nwait inf\n\npoll\nmust prepare")


def test_a_join_is_retried_with_the_new_coordinator_after_the_old_one_is_lost() -> None:
    Story().play("""
        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        joining the group

        lost JoinGroup
        look elsewhere: NETWORK_EXCEPTION: gone
        JoinGroup failed: NETWORK_EXCEPTION: gone

        coordinator gone

        wait 0.2

        decide
        find

        coordinator found

        decide
        send JoinGroup nobody
        joining the group

        JoinGroup follower
        joined the group in generation G1

        decide
        send SyncGroup m

        SyncGroup 16
        look elsewhere: NOT_COORDINATOR
        SyncGroup as G1: NOT_COORDINATOR
    """)


def test_another_rebalance_that_begins_while_syncing_is_joined_at_once() -> None:
    Story().play("""
        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        joining the group

        JoinGroup follower
        joined the group in generation G1

        decide
        send SyncGroup m

        SyncGroup 27
        SyncGroup failed: rebalance in progress in generation G1; joining again

        decide
        send JoinGroup m
        joining the group
    """)


def test_a_rebalance_requested_during_another_starts_after_it() -> None:
    Story().play("""
        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        joining the group

        rejoin
        rejoining the group: of a whim

        JoinGroup follower
        joined the group in generation G1

        decide
        send SyncGroup m

        SyncGroup
        received the assignment of generation G1

        poll

        assigned
        all None

        poll
        must prepare
    """)


def test_a_response_for_an_earlier_member_identity_is_ignored() -> None:
    stable().play("""
        wait 3

        decide
        send Heartbeat m

        leave
        dropped generation and member id: the member leaves the group

        Heartbeat 25

        poll
        must prepare
    """)


def test_partitions_kept_by_a_lost_membership_are_revoked_before_the_rejoin() -> None:
    story = stable()
    story.member.request_rejoin("of a whim")
    before = story.member.generation
    story.now = 3.0
    step = story.member.decide(story.now, COORDINATOR)
    assert isinstance(step, SendStep)
    story.member.handle_response(step, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), story.now)
    story.member.join([JoinGroupRequestProtocol("range", b"")], before)
    assert story.member.should_prepare, "what was kept is to be given up too"


def test_a_silent_coordinator_is_looked_up_again_after_the_session_timeout() -> None:
    stable().play("""
        wait 3

        decide
        send Heartbeat m

        poll

        wait 43

        decide
        forget no heartbeat response for a session timeout

        decide
        send Heartbeat m
    """)


@pytest.mark.parametrize("seed", range(200))
def test_a_member_stays_consistent_for_any_sequence_of_responses(seed: int) -> None:
    random = Random(seed)
    story = Story(max_poll_interval_ms=20_000, group_instance_id=random.choice([None, "i"]))
    codes = ["0", "14", "15", "16", "22", "25", "27", "79", "82", "23"]
    for _ in range(300):
        story.now += random.choice([0.0, 0.1, 1.0, 3.0, 30.0])
        match random.randrange(9):
            case 0:
                story.do("poll")
            case 1 | 2:
                story.do("poll")
                if story.member.should_prepare:
                    story.do("prepared")
            case 3:
                story.do("coordinator", random.choice(["found", "found", "gone"]))
            case 4:
                story.do(random.choice(["rejoin", "leave", "assigned", "failure"]))
            case 5 if story.sent:
                story.do("lost", random.choice(list(story.sent)))
            case 6 | 7 if story.sent:
                story.do(random.choice(list(story.sent)), random.choice(codes + ["0"] * 10))
            case _:
                story.do("decide")
        story.member.log_lines.clear()
        story.member.check()

"""What a member tells its coordinator, as transcripts: a line for what happens, what it leads to under it.

decide              the heartbeat's thread asks what to do
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
from ottla.client.consumer.group.membership.member_state import TRANSITIONS, MemberEvent, MemberState
from ottla.client.consumer.group.membership.step import Assign, Disconnect, End, Find, Send, Wait
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ErrorCode, FencedInstanceIdError, KafkaError
from ottla.model import Node
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse

COORDINATOR = Node(2**31 - 2, "kafka", 9092)


class Story:
    """A member, its coordinator as the test says, and a clock."""

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
        self.sent: dict[str, Send] = {}

    def play(self, transcript: str) -> None:
        for block in transcript.strip().split("\n\n"):
            command, *expected = (line.strip() for line in block.strip().splitlines())
            happened = self.do(*command.split())
            happened += [text for level, text in self.member.take_news() if level >= 20]
            self.member.check()
            assert [short(line) for line in happened] == expected, command

    def do(self, command: str, *arguments: str) -> list[str]:
        act = getattr(self, f"do_{command}", None)
        return act(*arguments) if act else self.answer(command, *arguments)

    def do_poll(self) -> list[str]:
        self.member.heartbeat.poll(self.now)
        self.member.subscribe()
        return ["must prepare"] if self.member.must_prepare else []

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
            case Find(span):
                return [f"find within {span:.1f}" if span < self.now + 2 else "find"]
            case Send(message) as send:
                name = type(message).__name__.removesuffix("Request")
                self.sent[name] = send
                member = getattr(message, "member_id", "") or "nobody"
                return [f"send {name} {message.members[0].member_id if name == 'LeaveGroup' else member}"]
            case Assign(answer):
                self.member.share(answer, {"m": b"all"}, {"t": 2})
                return ["assign"]
            case Disconnect(why):
                return [f"forget {why}"]
            case Wait(span):
                return [f"wait {span:.1f}"]
            case End():
                return ["end"]

    def do_assigned(self) -> list[str]:
        assigned = self.member.take_assigned()
        return [] if assigned is None else [f"{bytes(assigned.data).decode()} {assigned.counts}"]

    def do_rejoin(self) -> list[str]:
        self.member.request_rejoin("of a whim")
        return []

    def do_leave(self) -> list[str]:
        self.member.leave("the consumer closes", self.now)
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
        elsewhere = self.member.unanswered(self.sent[name], error, self.now)
        return [f"look elsewhere: {elsewhere}"] if elsewhere else []

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
        elsewhere = self.member.answered(self.sent[name], answer, self.now)
        return [f"look elsewhere: {elsewhere}"] if elsewhere else []


def short(line: str) -> str:
    """Without what is the same everywhere."""
    line = line.replace("Generation{generationId=1, memberId='m', protocol='range'}", "G1")
    line = line.replace("Generation{generationId=-1, memberId='m', protocol='None'}", "M")
    return line.replace("Generation{generationId=-1, memberId='', protocol='None'}", "nothing")


JOIN = """
    poll
    must prepare

    prepared

    decide
    send JoinGroup nobody
    (Re-)joining group

    JoinGroup 79
    wants to join: the coordinator named this member m

    decide
    send JoinGroup m
    (Re-)joining group

    JoinGroup
    joined: G1

    decide
    assign

    decide
    send SyncGroup m

    SyncGroup
    knows what it is given: G1

    assigned
    all {'t': 2}
"""


def stable(**settings: Any) -> Story:
    """A member that leads its group."""
    story = Story(**settings)
    story.play(JOIN)
    return story


@pytest.mark.behaviour("C11")
def test_a_new_member_joins_without_a_name_and_again_with_the_one_it_is_given() -> None:
    story = stable()
    assert story.member.state is MemberState.STABLE
    assert story.member.generation.member_id == "m"


def test_every_state_has_an_answer_to_failing_and_leaving() -> None:
    for state, event in itertools.product(MemberState, (MemberEvent.FAILED, MemberEvent.LEFT)):
        assert TRANSITIONS[state, event] is MemberState.UNJOINED


def test_a_coordinator_that_is_not_known_is_found_first() -> None:
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


def test_a_follower_takes_what_it_is_given() -> None:
    Story().play("""
        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        (Re-)joining group

        JoinGroup follower
        joined: G1

        decide
        send SyncGroup m

        SyncGroup
        knows what it is given: G1

        assigned
        all None
    """)


@pytest.mark.behaviour("C7")
def test_a_stable_member_beats_and_hears_of_rebalances() -> None:
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
        wants to join: group is already rebalancing

        poll
        must prepare

        wait 3

        decide
        send Heartbeat m

        Heartbeat 27

        prepared

        decide
        send JoinGroup m
        (Re-)joining group
    """.replace("\n        \n", "\n\n")
    )


@pytest.mark.behaviour("C8")
def test_a_member_that_was_taken_for_dead_is_told_so_and_joins_anew() -> None:
    stable().play("""
        wait 3

        decide
        send Heartbeat m

        Heartbeat 25
        Attempt to heartbeat with G1 and group instance id None failed due to UNKNOWN_MEMBER_ID, resetting generation
        Resetting generation and member id due to: encountered UNKNOWN_MEMBER_ID from HEARTBEAT response
        wants to join: encountered UNKNOWN_MEMBER_ID from HEARTBEAT response

        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        (Re-)joining group
    """)


@pytest.mark.behaviour("C9")
def test_a_member_whose_user_does_not_poll_leaves_and_joins_again_at_the_next_poll() -> None:
    story = stable(max_poll_interval_ms=10_000)
    story.now = 10.1
    step = story.member.decide(story.now, COORDINATOR)
    assert isinstance(step, Send)
    story.sent["LeaveGroup"] = step
    warning, *rest = (text for _, text in story.member.news)
    assert "Raise max.poll.interval.ms" in warning
    assert "max.poll.records" in warning
    assert rest == [
        "Resetting generation and member id due to: the consumer leaves by itself",
        "wants to join: the consumer leaves by itself",
        "m leaves, by LeaveGroup to kafka:9092 (id: 2147483646 rack: null): "
        "poll() was not called for max.poll.interval.ms",
    ]
    story.member.news = []
    story.play("""
        LeaveGroup

        decide
        wait inf

        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        (Re-)joining group
    """)


@pytest.mark.behaviour("C10")
def test_leaving_says_so_and_ends() -> None:
    stable().play("""
        leave
        Resetting generation and member id due to: the consumer leaves by itself

        close

        decide
        send LeaveGroup m
        m leaves, by LeaveGroup to kafka:9092 (id: 2147483646 rack: null): the consumer closes

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
        wants to join: of a whim

        prepared

        decide
        send JoinGroup m
        (Re-)joining group

        leave
        Resetting generation and member id due to: the consumer leaves by itself

        decide
        forget leaving while the group rebalances

        decide
        send LeaveGroup m
        m leaves, by LeaveGroup to kafka:9092 (id: 2147483646 rack: null): the consumer closes

        lost JoinGroup
    """)


@pytest.mark.behaviour("C10")
def test_what_a_member_that_leaves_says_is_said_again_until_it_is_heard() -> None:
    stable().play("""
        leave
        Resetting generation and member id due to: the consumer leaves by itself

        close

        decide
        send LeaveGroup m
        m leaves, by LeaveGroup to kafka:9092 (id: 2147483646 rack: null): the consumer closes

        lost LeaveGroup
        look elsewhere: NETWORK_EXCEPTION: gone
        LeaveGroup request failed with error: NETWORK_EXCEPTION: gone; it is said again

        coordinator gone

        decide
        find within 1.0

        coordinator found

        wait 1

        decide
        send LeaveGroup m
        m leaves, by LeaveGroup to kafka:9092 (id: 2147483646 rack: null): the consumer closes

        LeaveGroup 16
        look elsewhere: NOT_COORDINATOR
        LeaveGroup request failed with error: NOT_COORDINATOR; it is said again

        wait 1

        decide
        send LeaveGroup m
        m leaves, by LeaveGroup to kafka:9092 (id: 2147483646 rack: null): the consumer closes

        LeaveGroup

        decide
        end
    """)


def test_what_nobody_hears_is_not_said_for_longer_than_closing_may_take() -> None:
    story = stable()
    story.member.leave("the consumer closes", story.now, until=1.0)
    story.play("""
        close
        Resetting generation and member id due to: the consumer leaves by itself

        decide
        send LeaveGroup m
        m leaves, by LeaveGroup to kafka:9092 (id: 2147483646 rack: null): the consumer closes

        wait 1

        lost LeaveGroup
        look elsewhere: NETWORK_EXCEPTION: gone
        LeaveGroup request failed with error: NETWORK_EXCEPTION: gone; this member's session will run out

        decide
        end
    """)


def test_who_leaves_before_it_knows_its_name_waits_for_it_to_say_who_is_gone() -> None:
    Story().play("""
        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        (Re-)joining group

        leave
        Resetting generation and member id due to: the consumer leaves by itself

        close

        decide
        wait 1.0

        JoinGroup 79

        decide
        send LeaveGroup m
        m leaves, by LeaveGroup to kafka:9092 (id: 2147483646 rack: null): the member left before it had joined

        LeaveGroup

        decide
        end
    """)


def test_leaving_without_a_coordinator_takes_a_second_at_most() -> None:
    stable().play("""
        coordinator gone

        leave
        Resetting generation and member id due to: the consumer leaves by itself

        close

        decide
        find within 1.0

        wait 1

        decide
        wait 0.0
        cannot say that this member leaves: no coordinator; its session will run out

        decide
        end
    """)


@pytest.mark.behaviour("C12")
def test_a_static_member_leaves_without_a_word() -> None:
    stable(group_instance_id="i").play("""
        leave
        Resetting generation and member id due to: the consumer leaves by itself

        close

        decide
        end
    """)


@pytest.mark.behaviour("C12")
def test_a_fenced_member_stays_out_and_says_so_each_time() -> None:
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
    assert "has taken over group.instance.id = 'i'" in str(failure)


@pytest.mark.parametrize("code", [14, 15, 16, 7])
def test_what_passes_is_tried_again(code: int) -> None:
    story = Story()
    story.play("poll\nmust prepare\n\nprepared\n\ndecide\nsend JoinGroup nobody\n(Re-)joining group")
    story.member.answered(story.sent["JoinGroup"], JoinGroupResponse(error_code=code), story.now)
    story.member.news = []
    assert isinstance(story.member.decide(story.now, COORDINATOR), Wait)
    story.play("wait 0.2\n\ndecide\nsend JoinGroup nobody\n(Re-)joining group")


@pytest.mark.parametrize("code", [23, 24, 26, 30, 81])
def test_what_does_not_pass_is_told_once_and_tried_at_the_next_poll(code: int) -> None:
    story = Story()
    story.play("poll\nmust prepare\n\nprepared\n\ndecide\nsend JoinGroup nobody\n(Re-)joining group")
    story.member.answered(story.sent["JoinGroup"], JoinGroupResponse(error_code=code), story.now)
    failure = story.member.take_failure()
    assert isinstance(failure, KafkaError)
    assert failure.message
    story.play("failure\n\ndecide\nwait inf\n\npoll\nmust prepare")


def test_a_coordinator_lost_while_joining_is_asked_again_elsewhere() -> None:
    Story().play("""
        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        (Re-)joining group

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
        (Re-)joining group

        JoinGroup follower
        joined: G1

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
        (Re-)joining group

        JoinGroup follower
        joined: G1

        decide
        send SyncGroup m

        SyncGroup 27
        the group rebalances again before generation G1 had its partitions: joining again

        decide
        send JoinGroup m
        (Re-)joining group
    """)


def test_a_wish_for_another_rebalance_during_one_is_kept_for_after_it() -> None:
    Story().play("""
        poll
        must prepare

        prepared

        decide
        send JoinGroup nobody
        (Re-)joining group

        rejoin
        wants to join: of a whim

        JoinGroup follower
        joined: G1

        decide
        send SyncGroup m

        SyncGroup
        knows what it is given: G1

        poll

        assigned
        all None

        poll
        must prepare
    """)


def test_an_answer_to_who_one_was_before_counts_for_nothing() -> None:
    stable().play("""
        wait 3

        decide
        send Heartbeat m

        leave
        Resetting generation and member id due to: the consumer leaves by itself

        Heartbeat 25

        poll
        must prepare
    """)


def test_what_was_given_up_in_a_place_that_is_lost_is_not_enough() -> None:
    story = stable()
    story.member.request_rejoin("of a whim")
    before = story.member.generation
    story.now = 3.0
    step = story.member.decide(story.now, COORDINATOR)
    assert isinstance(step, Send)
    story.member.answered(step, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), story.now)
    story.member.join([JoinGroupRequestProtocol("range", b"")], before)
    assert story.member.must_prepare, "what was kept is to be given up too"


def test_a_silent_coordinator_is_looked_for_anew_after_a_session() -> None:
    stable().play("""
        wait 3

        decide
        send Heartbeat m

        poll

        wait 43

        decide
        forget no heartbeat was answered for a whole session

        decide
        send Heartbeat m
    """)


@pytest.mark.parametrize("seed", range(200))
def test_whatever_is_answered_a_member_keeps_its_head(seed: int) -> None:
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
                if story.member.must_prepare:
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
        story.member.news.clear()
        story.member.check()

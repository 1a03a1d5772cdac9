"""Transcripts of a KIP-848 member and its coordinator: each event is a line, and its results are below it.

decide              the heartbeat thread calls `decide`
answer 2 01         a heartbeat response with epoch 2 and the target partitions 0 and 1 (`-`: none; nothing: unchanged)
refuse 110          an answer with that error code
lost                the connection broke before the answer
have 0              the user's thread has reconciled the target: the member has partition 0
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

import pytest

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.group.heartbeat import Heartbeat
from ottla.client.consumer.group.membership.consumer_membership import ConsumerMembership
from ottla.client.consumer.group.membership.consumer_state import ACTIVE, TRANSITIONS, ConsumerEvent, ConsumerState
from ottla.client.consumer.group.membership.heartbeat_fields import SubscribedTopics
from ottla.client.consumer.group.membership.standing import Standing
from ottla.client.consumer.group.membership.step import EndStep, FindCoordinatorStep, SendStep, WaitStep
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ErrorCode, KafkaError, UnsupportedVersionError
from ottla.model import FOREVER, Node
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

COORDINATOR = Node(2**31 - 2, "kafka", 9092)
TOPIC = UUID(int=1)
FATAL = [
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNSUPPORTED_ASSIGNOR,
    ErrorCode.INVALID_REGULAR_EXPRESSION,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.GROUP_ID_NOT_FOUND,
]


class Story:
    """A member with a clock and a coordinator that the test controls."""

    def __init__(self, **settings: Any) -> None:
        config = ConsumerConfig(bootstrap_servers=("kafka:9092",), group_id="g", group_protocol="consumer", **settings)
        beat = Heartbeat(interval_ms=3, session_timeout_ms=FOREVER, max_poll_interval_ms=config.max_poll_interval_ms)
        self.member = ConsumerMembership(config, beat, ExponentialBackoff(100, 1000, Random(1)), "m")
        self.now = 0.0
        self.coordinator: Node | None = COORDINATOR
        self.sent: SendStep | None = None
        self.farewell: SendStep | None = None

    def play(self, transcript: str) -> None:
        for block in transcript.strip().split("\n\n"):
            command, *expected = (line.strip() for line in block.strip().splitlines())
            happened = self.do(*command.split())
            happened += [text for level, text in self.member.take_log_lines() if level >= 30]
            self.member.check()
            assert [short(line) for line in happened] == expected, f"{command}, and it is {self.member.state}"

    def do(self, command: str, *arguments: str) -> list[str]:
        messages: list[str] = getattr(self, f"do_{command}")(*arguments)
        return messages

    def do_poll(self) -> list[str]:
        self.member.heartbeat.poll(self.now)
        self.member.subscribe()
        if self.member.should_release:
            return ["must release"]
        return [] if self.member.target is None else [f"to have {numbers(self.member.target.partitions)}"]

    def do_want(self, names: str, pattern: str | None = None) -> list[str]:
        self.member.set_subscription(SubscribedTopics(frozenset(names.split(",")) - {"-"}, pattern))
        return []

    def do_released(self) -> list[str]:
        self.member.record_release()
        return []

    def do_have(self, partitions: str) -> list[str]:
        target = self.member.target
        assert target is not None
        self.member.acknowledge(target, frozenset((TOPIC, int(n)) for n in partitions if n != "-"))
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
            case SendStep(message, reason=reason) as send:
                if reason:
                    self.farewell = send
                else:
                    self.sent = send
                return [format_heartbeat(message)]
            case WaitStep(span):
                return [f"wait {span:.1f}"]
            case EndStep():
                return ["end"]
        raise AssertionError("there is nothing else to do")

    def do_answer(self, epoch: str, partitions: str | None = None) -> list[str]:
        given = None
        if partitions is not None:
            indexes = [int(n) for n in partitions if n != "-"]
            given = Assignment([TopicPartitions(TOPIC, indexes)] if indexes else [])
        answer = ConsumerGroupHeartbeatResponse(
            member_id="m", member_epoch=int(epoch), heartbeat_interval_ms=5000, assignment=given
        )
        return self.hear(answer)

    def do_refuse(self, code: str) -> list[str]:
        return self.hear(ConsumerGroupHeartbeatResponse(error_code=int(code), error_message="It is so."))

    def hear(self, answer: Any) -> list[str]:
        assert self.sent is not None
        lost_reason = self.member.handle_response(self.sent, answer, self.now)
        return [f"elsewhere: {lost_reason}"] if lost_reason else []

    def do_lost(self) -> list[str]:
        assert self.sent is not None
        self.member.handle_failure(self.sent, KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone"), self.now)
        return []

    def do_prepare(self) -> list[str]:
        self.member.prepare_leaving()
        return []

    def do_leave(self, *how: str) -> list[str]:
        self.member.leave("the consumer is closed", self.now, silently="silently" in how)
        self.member.unsubscribe()
        return []

    def do_close(self) -> list[str]:
        self.member.closing = True
        return []

    def do_farewell(self) -> list[str]:
        assert self.farewell is not None
        self.member.handle_response(self.farewell, ConsumerGroupHeartbeatResponse(member_epoch=-1), self.now)
        return []

    def do_failure(self) -> list[str]:
        failure = self.member.take_failure()
        return [] if failure is None else [str(failure)]

    def do_state(self) -> list[str]:
        return [self.member.state.value]


def numbers(partitions: frozenset[Any]) -> str:
    return "".join(str(n) for _, n in sorted(partitions)) or "-"


def format_heartbeat(message: ConsumerGroupHeartbeatRequest) -> str:
    """Format the fields of a heartbeat except the member."""
    words = [f"beat {message.member_id}@{message.member_epoch}"]
    if message.instance_id is not None:
        words.append(f"as {message.instance_id}")
    if message.rebalance_timeout_ms >= 0:
        words.append(f"within {message.rebalance_timeout_ms // 1000}")
    if message.rack_id is not None:
        words.append(f"in {message.rack_id}")
    if message.subscribed_topic_names is not None:
        words.append(f"wants {','.join(message.subscribed_topic_names) or '-'}")
    if message.subscribed_topic_regex is not None:
        words.append(f"matching {message.subscribed_topic_regex or 'nothing'}")
    if message.server_assignor is not None:
        words.append(f"by {message.server_assignor}")
    if message.topic_partitions is not None:
        has = frozenset((each.topic_id, n) for each in message.topic_partitions for n in each.partitions)
        words.append(f"has {numbers(has)}")
    return " ".join(words)


def short(line: str) -> str:
    return "poll timeout" if line.startswith("poll() was not called for max.poll.interval.ms") else line


JOIN = """
    poll

    want t

    decide
    beat m@0 within 300 wants t has -

    answer 1 01

    poll
    to have 01

    have 01

    decide
    beat m@1 has 01

    answer 1

    state
    stable
"""


AS_I = JOIN.replace("beat m@0 within 300 wants t", "beat m@0 as i within 300 wants t matching nothing").replace(
    "beat m@1", "beat m@1 as i"
)
"""The same for a static member, which clears the pattern of the previous member with its id."""


def stable(**settings: Any) -> Story:
    """A member that has its target assignment."""
    story = Story(**settings)
    story.play(JOIN)
    return story


def test_the_first_heartbeat_is_full_and_later_ones_contain_only_changes() -> None:
    stable().play("""
        decide
        wait 5.0

        wait 5

        decide
        beat m@1

        answer 2

        want t,u

        decide
        beat m@2 wants t,u

        answer 2
    """)


def test_the_first_heartbeat_contains_every_setting() -> None:
    story = Story(group_instance_id="i", client_rack="r", group_remote_assignor="range", max_poll_interval_ms=60_000)
    story.play("""
        poll

        want - f.*

        decide
        beat m@0 as i within 60 in r wants - matching f.* by range has -

        answer 1 -

        poll
        to have -

        have -

        decide
        beat m@1 as i

        want - g.*

        answer 1

        decide
        beat m@1 as i matching g.*
    """)


def test_no_heartbeat_is_sent_before_the_subscription_is_known() -> None:
    Story().play("""
        decide
        wait inf

        poll

        decide
        wait inf

        coordinator gone

        want t

        decide
        find

        coordinator found

        decide
        beat m@0 within 300 wants t has -
    """)


def test_partitions_are_revoked_before_they_are_acknowledged_and_new_ones_are_assigned_afterwards() -> None:
    stable().play("""
        wait 5

        decide
        beat m@1

        answer 1 0

        state
        reconciling

        decide
        wait 5.0

        poll
        to have 0

        have 0

        decide
        beat m@1 has 0

        state
        stable

        answer 2 02

        poll
        to have 02

        have 02

        decide
        beat m@2 has 02
    """)


def test_heartbeats_continue_during_a_revocation() -> None:
    stable().play("""
        wait 5

        decide
        beat m@1

        answer 1 0

        wait 5

        decide
        beat m@1

        answer 1

        state
        reconciling
    """)


def test_a_target_assignment_that_changes_during_reconciliation_is_reconciled_next() -> None:
    story = stable()
    story.play("""
        wait 5

        decide
        beat m@1

        answer 1 0
    """)
    first = story.member.target
    assert first is not None
    story.play("""
        wait 5

        decide
        beat m@1

        answer 1 -
    """)
    story.member.acknowledge(first, first.partitions)
    story.play("""
        decide
        beat m@1 has 0

        state
        reconciling

        poll
        to have -
    """)


def test_partitions_of_a_topic_id_without_a_name_are_assigned_once_the_name_is_known() -> None:
    story = stable()
    story.play("""
        wait 5

        decide
        beat m@1

        answer 2 012

        have 01

        decide
        beat m@2

        state
        reconciling

        answer 2

        have 012

        decide
        beat m@2 has 012

        state
        stable
    """)


@pytest.mark.parametrize(
    "code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND]
)
def test_a_fenced_member_loses_its_partitions_and_rejoins_with_its_id(code: int) -> None:
    story = stable()
    story.play(f"""
        wait 5

        decide
        beat m@1

        refuse {int(code)}

        state
        fenced

        decide
        wait inf

        poll
        must release

        released

        decide
        beat m@0 within 300 wants t has -
    """)
    assert story.member.standing is Standing.OUTSIDE
    assert story.member.generation.is_none
    assert story.member.last_generation[:2] == (1, "m"), "with which a transaction is refused"


def test_a_static_member_releases_its_instance_id_before_it_rejoins() -> None:
    Story(group_instance_id="i").play("""
        poll

        want t

        decide
        beat m@0 as i within 300 wants t matching nothing has -

        lost

        wait 0.2

        decide
        beat m@-2 as i

        refuse 25

        decide
        beat m@0 as i within 300 wants t matching nothing has -

        answer 1 0

        wait 5

        decide
        beat m@1 as i

        refuse 110

        poll
        must release

        released

        decide
        beat m@-2 as i

        refuse 16
        elsewhere: NOT_COORDINATOR

        wait 0.2

        decide
        beat m@-2 as i

        answer -2

        decide
        beat m@0 as i within 300 wants t matching nothing has -
    """)


def test_a_reconciliation_of_an_earlier_membership_is_ignored() -> None:
    story = stable()
    story.play("""
        wait 5

        decide
        beat m@1

        answer 1 0
    """)
    before = story.member.target
    assert before is not None
    story.play("""
        wait 5

        decide
        beat m@1

        refuse 110

        poll
        must release

        released

        decide
        beat m@0 within 300 wants t has -

        answer 3 0
    """)
    story.member.acknowledge(before, before.partitions)
    assert story.member.state is ConsumerState.RECONCILING


def test_after_a_lost_response_the_next_heartbeat_is_full() -> None:
    stable().play("""
        wait 5

        decide
        beat m@1

        lost

        decide
        wait 0.1

        wait 0.2

        decide
        beat m@1 within 300 wants t has 01
    """)


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_moved_coordinator_is_looked_up(code: int) -> None:
    stable().play(f"""
        wait 5

        decide
        beat m@1

        refuse {int(code)}
        elsewhere: {ErrorCode(code).name}

        coordinator gone

        wait 0.2

        decide
        find

        coordinator found

        decide
        beat m@1 within 300 wants t has 01

        answer 1 01

        state
        stable
    """)


def test_a_heartbeat_is_retried_while_the_coordinator_loads() -> None:
    stable().play("""
        wait 5

        decide
        beat m@1

        refuse 14

        wait 0.2

        decide
        beat m@1 within 300 wants t has 01
    """)


@pytest.mark.parametrize("code", FATAL, ids=lambda code: code.name)
def test_a_rejected_subscription_is_raised_at_each_poll_until_the_user_unsubscribes(code: ErrorCode) -> None:
    story = Story(group_instance_id="i", group_remote_assignor="best")
    story.play("""
        poll

        want t

        decide
        beat m@0 as i within 300 wants t matching nothing by best has -
    """)
    story.do("refuse", str(int(code)))
    (failure,) = story.do("failure")
    assert failure == story.do("failure")[0]
    assert code.name in failure
    assert "It is so" in failure
    assert story.member.state is ConsumerState.FATAL
    story.member.take_log_lines()
    story.play("""
        decide
        wait inf

        prepare

        leave

        poll

        failure

        want t

        decide
        beat m@0 as i within 300 wants t matching nothing by best has -
    """)


def test_unauthorized_topics_are_an_error_until_access_is_granted() -> None:
    story = stable()
    story.play("""
        wait 5

        decide
        beat m@1

        refuse 29
    """)
    assert story.do("failure")
    assert not story.do("failure")
    assert story.member.state is ConsumerState.STABLE


def test_a_broker_without_the_consumer_protocol_is_an_error_that_names_the_classic_one() -> None:
    story = Story()
    story.do("poll")
    story.member.fail(UnsupportedVersionError("the broker kafka:9092 does not have ConsumerGroupHeartbeat"))
    (failure,) = story.do("failure")
    assert "set group.protocol=classic" in failure
    assert "does not have ConsumerGroupHeartbeat" in failure


def test_a_temporary_error_is_raised_once_and_the_join_is_retried_at_the_next_poll() -> None:
    story = stable()
    story.member.fail(RuntimeError("no memory"))
    story.play("""
        decide
        wait inf

        failure
        no memory

        poll

        failure

        wait 5

        decide
        beat m@1 within 300 wants t has 01
    """)


@pytest.mark.parametrize(("instance", "goodbye"), [(None, "beat m@-1"), ("i", "beat m@-2 as i")])
def test_leaving_sends_epoch_minus_1_and_a_static_member_sends_minus_2(instance: str | None, goodbye: str) -> None:
    story = Story(group_instance_id=instance)
    story.play(AS_I if instance else JOIN)
    story.play("""
        prepare

        state
        prepare leaving
    """)
    assert story.member.standing is Standing.GOOD, "the listener may still commit"
    story.play(f"""
        leave

        close

        decide
        {goodbye}

        decide
        wait inf

        farewell

        decide
        end
    """)
    assert story.do("state") == ["unsubscribed"]


def test_a_member_commits_as_long_as_it_is_in_the_group() -> None:
    assert stable().member.standing is Standing.GOOD
    assert stable().member.generation[:2] == (1, "m")


def test_heartbeats_continue_while_a_listener_is_called_for_leaving() -> None:
    stable().play("""
        prepare

        wait 5

        decide
        beat m@1

        answer 2 0

        leave

        decide
        beat m@-1
    """)


def test_a_member_fenced_while_leaving_sends_nothing_more() -> None:
    stable().play("""
        prepare

        wait 5

        decide
        beat m@1

        refuse 25

        decide
        wait inf

        leave

        close

        decide
        end
    """)


def test_leaving_silently_sends_nothing() -> None:
    stable().play("""
        leave silently

        close

        decide
        end
    """)


def test_leaving_without_a_coordinator_takes_a_second_at_most() -> None:
    stable().play("""
        coordinator gone

        leave

        close

        decide
        find within 1.0

        wait 1

        decide
        wait 0.0

        decide
        end
    """)


def test_a_member_that_subscribes_again_while_leaving_leaves_and_rejoins() -> None:
    stable().play("""
        leave

        poll

        want t

        decide
        beat m@-1

        decide
        beat m@0 within 300 wants t has -
    """)


def test_exceeding_the_max_poll_interval_leaves_the_group_and_the_next_poll_rejoins() -> None:
    stable().play("""
        wait 301

        decide
        beat m@-1
        poll timeout

        state
        stale

        decide
        wait inf

        poll
        must release

        released

        decide
        beat m@0 within 300 wants t has -
    """)


def test_a_poll_while_the_leave_request_waits_for_a_coordinator_rejoins_after_it() -> None:
    stable().play("""
        coordinator gone

        wait 301

        decide
        find within 1.0
        poll timeout

        poll
        must release

        released

        coordinator found

        decide
        beat m@-1

        decide
        beat m@0 within 300 wants t has -
    """)


def test_a_response_for_an_earlier_member_identity_is_ignored() -> None:
    stable().play("""
        wait 5

        decide
        beat m@1

        leave

        answer 7 0

        decide
        beat m@-1

        state
        unsubscribed
    """)


def test_every_active_state_can_be_left_in_every_way() -> None:
    ways = (ConsumerEvent.FENCED, ConsumerEvent.IDLE, ConsumerEvent.PREPARED, ConsumerEvent.LEFT, ConsumerEvent.FAILED)
    for state, event in itertools.product(ACTIVE, ways):
        assert TRANSITIONS[state, event] not in ACTIVE


@pytest.mark.parametrize("seed", range(200))
def test_a_member_stays_consistent_for_any_sequence_of_responses(seed: int) -> None:
    random = Random(seed)
    story = Story(max_poll_interval_ms=20_000, group_instance_id=random.choice([None, "i"]))
    for _ in range(300):
        story.now += random.choice([0.0, 0.1, 1.0, 5.0, 30.0])
        random.choice(BEFALLS)(story, random)
        story.member.log_lines.clear()
        story.member.check()


def poll_and_want(story: Story, random: Random) -> None:
    story.do("poll")
    story.do("want", random.choice(["t", "u", "t,u", "-"]))
    if story.member.should_release:
        story.do("released")


def receive_anything(story: Story, random: Random) -> None:
    if story.sent:
        codes = ["14", "15", "16", "25", "110", "110", "111", "82", "29"]
        answer = ["answer", str(random.randrange(1, 9)), random.choice(["-", "0", "01", "12"])]
        story.do(*random.choice([["lost"], ["refuse", random.choice(codes)], answer, answer]))


def bring_about(story: Story, random: Random) -> None:
    if story.member.target:
        story.do("have", random.choice([numbers(story.member.target.partitions), "0"]))


def receive_leave_response(story: Story, random: Random) -> None:
    if story.farewell:
        story.do("farewell")


BEFALLS: tuple[Callable[[Story, Random], object], ...] = (
    poll_and_want,
    poll_and_want,
    receive_anything,
    receive_anything,
    receive_anything,
    bring_about,
    receive_leave_response,
    lambda story, random: story.do("coordinator", random.choice(["found", "found", "gone"])),
    lambda story, random: story.do(random.choice(["prepare", "leave", "failure"])),
    lambda story, random: story.do("decide"),
    lambda story, random: story.do("decide"),
)
"""Return a random event of a member."""

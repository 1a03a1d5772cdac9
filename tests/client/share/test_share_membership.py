"""Transcripts of a member of a share group and its coordinator: each event is a line, and its results are below it.

poll flights        the user polls, subscribed to these topics
decide              the heartbeat thread calls `decide`
answer 2 01         a heartbeat response with epoch 2 and partitions 0 and 1 (`-`: none; nothing: unchanged)
refuse 110          a response with that error code
lost                the connection broke before the response
leave               the user leaves
"""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import pytest

from ottla.client.consumer.group.heartbeat import Heartbeat
from ottla.client.consumer.group.membership.step import EndStep, FindCoordinatorStep, SendStep, WaitStep
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.share.config import ShareConsumerConfig
from ottla.client.share.state.share_membership import ShareMembership
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, UnsupportedVersionError
from ottla.model import FOREVER, Node
from ottla.protocol.messages.share_group_heartbeat import Assignment, ShareGroupHeartbeatResponse, TopicPartitions

COORDINATOR = Node(2**31 - 2, "kafka", 9092)
TOPIC = UUID(int=1)


class Story:
    """A member with a clock and a coordinator that the test controls."""

    def __init__(self, **settings: Any) -> None:
        config = ShareConsumerConfig(bootstrap_servers=("kafka:9092",), group_id="g", **settings)
        heartbeat = Heartbeat(
            interval_ms=5000, session_timeout_ms=FOREVER, max_poll_interval_ms=config.max_poll_interval_ms
        )
        self.member = ShareMembership(config, heartbeat, ExponentialBackoff(100, 1000, Random(1)), "m")
        self.now = 0.0
        self.coordinator: Node | None = COORDINATOR
        self.sent: list[SendStep] = []

    def play(self, transcript: str) -> None:
        for block in transcript.strip().split("\n\n"):
            command, *expected = (line.strip() for line in block.strip().splitlines())
            name, *arguments = command.split()
            happened = getattr(self, f"do_{name}")(*arguments)
            self.member.take_log_lines()
            self.member.check()
            assert happened == expected, f"{command}, and it is {self.member.state}"

    def do_poll(self, *topics: str) -> list[str]:
        self.member.heartbeat.poll(self.now)
        self.member.subscribe(frozenset(topics))
        failure = self.member.take_failure()
        return [] if failure is None else [str(getattr(failure, "name", failure)).partition(":")[0]]

    def do_decide(self) -> list[str]:
        step = self.member.decide(self.now, self.coordinator)
        match step:
            case SendStep(message=message):
                self.sent.append(step)
                topics = message.subscribed_topic_names
                return [f"heartbeat {message.member_epoch}{'' if topics is None else f' {topics}'}"]
            case WaitStep(span):
                return [f"wait {span:.1f}"]
            case FindCoordinatorStep():
                return ["find coordinator"]
            case EndStep():
                return ["end"]
        raise AssertionError(step)

    def do_answer(self, epoch: str, partitions: str = "") -> list[str]:
        numbers = [int(each) for each in partitions.strip("-")]
        assignment = Assignment([TopicPartitions(TOPIC, numbers)] if numbers else []) if partitions else None
        response = ShareGroupHeartbeatResponse(
            member_id="m", member_epoch=int(epoch), heartbeat_interval_ms=5000, assignment=assignment
        )
        self.member.handle_response(self.sent.pop(0), response, self.now)
        return []

    def do_refuse(self, code: str) -> list[str]:
        reason = self.member.handle_response(
            self.sent.pop(0), ShareGroupHeartbeatResponse(error_code=int(code)), self.now
        )
        return [] if reason is None else [f"look up: {reason}"]

    def do_lost(self) -> list[str]:
        reason = self.member.handle_failure(self.sent.pop(0), KafkaError(ErrorCode.NETWORK_EXCEPTION), self.now)
        return [f"look up: {reason}"]

    def do_leave(self) -> list[str]:
        self.member.leave("the user leaves", self.now)
        return []

    def do_close(self) -> list[str]:
        self.member.closing = True
        return []

    def do_wait(self, seconds: str) -> list[str]:
        self.now += float(seconds)
        return []

    def do_has(self, partitions: str) -> list[str]:
        assert sorted(number for _, number in self.member.assignment) == [int(each) for each in partitions.strip("-")]
        return []


JOINED = """
    poll flights

    decide
    heartbeat 0 ['flights']

    answer 1 01

    has 01
"""
TRANSCRIPTS = {
    "it joins, and reports only changes": """
        poll flights

        decide
        heartbeat 0 ['flights']

        decide
        wait 300.0

        answer 1 01

        has 01

        decide
        wait 5.0

        wait 5

        decide
        heartbeat 1

        answer 2 1

        has 1

        poll flights trains

        decide
        heartbeat 2 ['flights', 'trains']

        answer 3

        has 1

        wait 5

        decide
        heartbeat 3

        answer 3 -

        has -
    """,
    "a fenced member joins again without an assignment": f"""
        {JOINED}

        wait 5

        decide
        heartbeat 1

        refuse 110

        has -

        decide
        heartbeat 0 ['flights']

        answer 4 0

        has 0
    """,
    "a lost response is followed by a full heartbeat after a pause": f"""
        {JOINED}

        wait 5

        decide
        heartbeat 1

        lost
        look up: NETWORK_EXCEPTION

        decide
        wait 0.1

        wait 1

        decide
        heartbeat 1 ['flights']

        answer 1
    """,
    "a moved coordinator is looked up": f"""
        {JOINED}

        wait 5

        decide
        heartbeat 1

        refuse 16
        look up: NOT_COORDINATOR
    """,
    "it leaves, and ends when the request is sent": f"""
        {JOINED}

        leave

        close

        has -

        decide
        heartbeat -1

        decide
        wait inf

        answer -1

        decide
        end
    """,
    "a failed leave request is sent again": f"""
        {JOINED}

        leave

        close

        decide
        heartbeat -1

        lost
        look up: NETWORK_EXCEPTION

        wait 1

        decide
        heartbeat -1
    """,
    "a member that never joined leaves without a request": """
        poll flights

        leave

        close

        decide
        end
    """,
    "without polls it leaves, and the next poll joins again": f"""
        {JOINED}

        wait 301

        decide
        heartbeat -1

        answer -1

        has -

        decide
        wait inf

        poll flights

        decide
        heartbeat 0 ['flights']

        answer 7 1

        has 1
    """,
    "a fatal error is raised until the user leaves": """
        poll flights

        decide
        heartbeat 0 ['flights']

        refuse 30

        poll flights
        GROUP_AUTHORIZATION_FAILED

        poll flights
        GROUP_AUTHORIZATION_FAILED

        decide
        wait inf

        leave

        poll flights

        decide
        heartbeat 0 ['flights']
    """,
    "a denied topic is raised once and retried": """
        poll flights

        decide
        heartbeat 0 ['flights']

        refuse 29

        poll flights
        TOPIC_AUTHORIZATION_FAILED

        wait 1

        decide
        heartbeat 0 ['flights']

        answer 1 0

        poll flights
    """,
    "a group of another type is a fatal error": """
        poll flights

        decide
        heartbeat 0 ['flights']

        refuse 69

        poll flights
        GROUP_ID_NOT_FOUND
    """,
    "a deleted group is joined again": f"""
        {JOINED}

        wait 5

        decide
        heartbeat 1

        refuse 69

        poll flights

        decide
        heartbeat 0 ['flights']
    """,
}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_membership(name: str) -> None:
    Story().play(TRANSCRIPTS[name])


def test_the_coordinator_is_looked_up_first() -> None:
    story = Story()
    story.coordinator = None

    story.play("poll flights\n\ndecide\nfind coordinator")


def test_the_rack_is_sent_when_it_joins_and_not_again() -> None:
    story = Story(client_rack="north")
    story.play(JOINED + "\n\nwait 5\n\ndecide\nheartbeat 1")
    assert story.sent[0].message.rack_id is None

    story.play("refuse 25\n\ndecide\nheartbeat 0 ['flights']")

    assert story.sent[0].message.rack_id == "north"


def test_brokers_without_share_groups_are_a_clear_and_fatal_error() -> None:
    story = Story()
    story.play("poll flights\n\ndecide\nheartbeat 0 ['flights']")

    story.member.fail(UnsupportedVersionError("no ShareGroupHeartbeat"))

    failure = story.member.take_failure()
    assert isinstance(failure, UnsupportedVersionError)
    assert "do not support share groups" in str(failure)
    assert story.member.take_failure() is failure


def test_a_temporary_error_pauses_the_member_until_the_next_poll() -> None:
    story = Story()
    story.play("poll flights\n\ndecide\nheartbeat 0 ['flights']")

    story.member.fail(KafkaTimeoutError("nothing there"))

    story.play(
        "decide\nwait inf\n\npoll flights\n\nwait 1\n\ndecide\nheartbeat 0 ['flights']".replace(
            "poll flights\n\n", "poll flights\nnothing there\n\n"
        )
    )

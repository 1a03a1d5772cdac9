"""Transcripts of a share session with one broker: each event is a line, and its results are below it.

ack 0 5+ 6-         acknowledge records of partition 0: offset 5 accepted, 6 released, `*` renewed
fetch 01            the next request, while partitions 0 and 1 are wanted (`-`: none)
send                the next request, while nothing is wanted
close               the last request
answer              a response without errors; `answer 0:41` with an error code for partition 0, `answer !122` for all
lost                the connection broke before the response
"""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.share.state.acknowledgements import Acknowledgements, AcknowledgeType, ShareTopicPartition
from ottla.client.share.state.share_session import (
    LAST_EPOCH,
    SendAcknowledge,
    SendFetch,
    ShareRequest,
    ShareSessionHandler,
)
from ottla.errors import ErrorCode, KafkaError, error_for

A, R, N = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.RENEW
SIGNS = {"+": A, "-": R, "*": N}
DEADLINE = 60.0


def partition(number: int) -> ShareTopicPartition:
    return ShareTopicPartition(UUID(int=1), "t", number)


class Story:
    def __init__(self) -> None:
        self.session = ShareSessionHandler(1, ExponentialBackoff(100, 1000, Random(1)))
        self.now = 0.0

    def play(self, transcript: str) -> None:
        for block in transcript.strip().split("\n\n"):
            command, *expected = (line.strip() for line in block.strip().splitlines())
            name, *arguments = command.split()
            happened = getattr(self, f"do_{name}")(*arguments)
            happened += [describe_result(each.sent, each.error) for each in self.session.take_results()]
            self.session.check()
            assert happened == expected, command

    def do_ack(self, number: str, *offsets: str) -> list[str]:
        types = {int(each[:-1]): int(SIGNS[each[-1]]) for each in offsets}
        self.session.add(Acknowledgements(1, partition(int(number)), types, DEADLINE), self.session.generation)
        return []

    def do_fetch(self, numbers: str) -> list[str]:
        return describe(self.session.decide([partition(int(each)) for each in numbers.strip("-")], self.now))

    def do_send(self) -> list[str]:
        return describe(self.session.decide(None, self.now))

    def do_close(self) -> list[str]:
        return describe(self.session.decide_close())

    def do_wait(self, seconds: str) -> list[str]:
        self.now += float(seconds)
        return []

    def do_lost(self) -> list[str]:
        self.session.handle_failure(KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone"), self.now)
        return []

    def do_answer(self, *errors: str) -> list[str]:
        request = self.session.in_flight
        assert request is not None
        top = next((int(each[1:]) for each in errors if each.startswith("!")), 0)
        codes = {int(each.partition(":")[0]): int(each.partition(":")[2]) for each in errors if ":" in each}
        found = {
            each.partition: error_for(code) if (code := codes.get(each.partition.partition, 0)) else None
            for each in request.acknowledgements
        }
        if isinstance(request, SendFetch):
            self.session.handle_fetch_response(top, found, self.now, retry=False)
        else:
            self.session.handle_acknowledge_response(top, found, self.now)
        return []


def describe(request: ShareRequest | None) -> list[str]:
    if request is None:
        return []
    acknowledged = "".join(f" ack {describe_types(each)}" for each in request.acknowledgements)
    if isinstance(request, SendAcknowledge):
        return [f"ShareAcknowledge {request.epoch}{acknowledged}{' renews' if request.renews else ''}"]
    added = "".join(f" +{each.partition}" for each in request.added)
    forgotten = "".join(f" -{each.partition}" for each in request.forgotten)
    return [f"ShareFetch {request.epoch}{added}{forgotten}{acknowledged}"]


def describe_types(acknowledgements: Acknowledgements) -> str:
    signs = {kind: sign for sign, kind in SIGNS.items()}
    offsets = ",".join(f"{offset}{signs[AcknowledgeType(kind)]}" for offset, kind in acknowledgements.types.items())
    return f"{acknowledgements.partition.partition}:{offsets}"


def describe_result(acknowledgements: Acknowledgements, error: Exception | None) -> str:
    return f"result {describe_types(acknowledgements)} {getattr(error, 'name', 'ok')}"


TRANSCRIPTS = {
    "acknowledgements ride on the next fetch, which increments the epoch": """
        fetch 01
        ShareFetch 0 +0 +1

        answer

        ack 0 5+ 6-

        fetch 01
        ShareFetch 1 ack 0:5+,6-

        answer
        result 0:5+,6- ok

        fetch 01
        ShareFetch 2
    """,
    "partitions are added and forgotten": """
        fetch 01
        ShareFetch 0 +0 +1

        answer

        fetch 12
        ShareFetch 1 +2 -0

        answer

        fetch 12
        ShareFetch 2
    """,
    "one request is in flight at a time": """
        fetch 0
        ShareFetch 0 +0

        fetch 0

        send

        answer

        fetch 0
        ShareFetch 1
    """,
    "a commit sends acknowledgements without a fetch": """
        fetch 0
        ShareFetch 0 +0

        answer

        send

        ack 0 5+

        send
        ShareAcknowledge 1 ack 0:5+

        answer
        result 0:5+ ok

        fetch 0
        ShareFetch 2
    """,
    "a renewal fetches nothing": """
        fetch 0
        ShareFetch 0 +0

        answer

        ack 0 5* 6+

        fetch 0
        ShareAcknowledge 1 ack 0:5*,6+ renews

        answer
        result 0:5*,6+ ok
    """,
    "acknowledgements of a partition that is not wanted any more are sent before it is forgotten": """
        fetch 01
        ShareFetch 0 +0 +1

        answer

        ack 0 5+

        fetch 1
        ShareAcknowledge 1 ack 0:5+

        answer
        result 0:5+ ok

        fetch 1
        ShareFetch 2 -0
    """,
    "a lost connection loses the session and all of its acknowledgements": """
        fetch 0
        ShareFetch 0 +0

        answer

        ack 0 5+

        send
        ShareAcknowledge 1 ack 0:5+

        ack 0 6+

        lost
        result 0:5+ NETWORK_EXCEPTION
        result 0:6+ INVALID_SHARE_SESSION_EPOCH

        ack 0 7+
        result 0:7+ INVALID_SHARE_SESSION_EPOCH

        fetch 0

        wait 1

        fetch 0
        ShareFetch 0 +0
    """,
    "an unknown session is opened again": """
        fetch 0
        ShareFetch 0 +0

        answer

        ack 0 5+

        fetch 0
        ShareFetch 1 ack 0:5+

        answer !122
        result 0:5+ SHARE_SESSION_NOT_FOUND

        wait 1

        fetch 0
        ShareFetch 0 +0
    """,
    "an expired lock is a result, and the session goes on": """
        fetch 01
        ShareFetch 0 +0 +1

        answer

        ack 0 5+

        ack 1 6+

        send
        ShareAcknowledge 1 ack 0:5+ ack 1:6+

        answer 0:121
        result 0:5+ INVALID_RECORD_STATE
        result 1:6+ ok

        fetch 01
        ShareFetch 2
    """,
    "a temporary error is retried after a pause": """
        fetch 0
        ShareFetch 0 +0

        answer

        ack 0 5+

        send
        ShareAcknowledge 1 ack 0:5+

        answer 0:15

        send

        wait 1

        send
        ShareAcknowledge 2 ack 0:5+

        answer
        result 0:5+ ok
    """,
    "a temporary error after the deadline is the result": """
        fetch 0
        ShareFetch 0 +0

        answer

        ack 0 5+

        send
        ShareAcknowledge 1 ack 0:5+

        wait 61

        answer 0:15
        result 0:5+ COORDINATOR_NOT_AVAILABLE
    """,
    "another leader does not know the records, so a retry would be useless": """
        fetch 0
        ShareFetch 0 +0

        answer

        ack 0 5+

        send
        ShareAcknowledge 1 ack 0:5+

        answer 0:6
        result 0:5+ NOT_LEADER_OR_FOLLOWER
    """,
    "closing sends the last acknowledgements, after the request in flight": """
        fetch 0
        ShareFetch 0 +0

        close

        answer

        ack 0 5+

        close
        ShareAcknowledge -1 ack 0:5+

        answer
        result 0:5+ ok

        close

        fetch 0
    """,
    "a session that was never opened is not closed": """
        close

        fetch 0
    """,
}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_session(name: str) -> None:
    Story().play(TRANSCRIPTS[name])


def test_records_of_an_earlier_session_are_not_acknowledged_in_a_later_one() -> None:
    story = Story()
    story.play("fetch 0\nShareFetch 0 +0\n\nanswer")
    before = story.session.generation
    story.play("fetch 0\nShareFetch 1\n\nlost\n\nwait 1\n\nfetch 0\nShareFetch 0 +0\n\nanswer")

    story.session.add(Acknowledgements(1, partition(0), {5: int(A)}, DEADLINE), before)

    story.play("send\nresult 0:5+ INVALID_SHARE_SESSION_EPOCH")


def test_the_epoch_continues_at_one_after_the_last() -> None:
    story = Story()
    story.play("fetch 0\nShareFetch 0 +0\n\nanswer")
    story.session._epoch = LAST_EPOCH

    story.play(f"fetch 0\nShareFetch {LAST_EPOCH}\n\nanswer\n\nfetch 0\nShareFetch 1")


def test_a_reset_fails_what_was_in_flight() -> None:
    story = Story()
    story.play("fetch 0\nShareFetch 0 +0\n\nanswer\n\nack 0 5+\n\nfetch 0\nShareFetch 1 ack 0:5+")

    story.session.reset(KafkaError(ErrorCode.NETWORK_EXCEPTION, "interrupted"))

    story.play("send\nresult 0:5+ NETWORK_EXCEPTION\n\nfetch 0\nShareFetch 0 +0")


class SessionMachine(RuleBasedStateMachine):
    """A session and a broker that may lose it: each acknowledgement has exactly one result, and epochs agree."""

    def __init__(self) -> None:
        super().__init__()
        self.session = ShareSessionHandler(1, ExponentialBackoff(100, 1000, Random(1)))
        self.now = 0.0
        self.broker_epoch: int | None = None
        self.next_offset = 0
        self.open: set[int] = set()

    @rule(number=st.integers(0, 2), kind=st.sampled_from(list(AcknowledgeType)))
    def acknowledge(self, number: int, kind: AcknowledgeType) -> None:
        acknowledgements = Acknowledgements(1, partition(number), {self.next_offset: int(kind)}, self.now + 5)
        self.open.add(self.next_offset)
        self.next_offset += 1
        self.session.add(acknowledgements, self.session.generation)

    @rule(numbers=st.one_of(st.none(), st.sets(st.integers(0, 2))))
    def decide(self, numbers: set[int] | None) -> None:
        wanted = None if numbers is None else [partition(each) for each in sorted(numbers)]
        before = self.session.in_flight
        request = self.session.decide(wanted, self.now)
        assert before is None or request is None
        if isinstance(request, SendFetch) and request.epoch == 0:
            assert not request.acknowledgements
            assert not request.forgotten

    @precondition(lambda self: self.session.in_flight is not None)
    @rule(code=st.sampled_from([0, 0, 0, 15, 121]), forgets=st.booleans())
    def answer(self, code: int, forgets: bool) -> None:
        request = self.session.in_flight
        assert request is not None
        top = 0
        if request.epoch == 0:
            self.broker_epoch = 1
        elif self.broker_epoch != request.epoch or forgets:
            self.broker_epoch, top = None, ErrorCode.SHARE_SESSION_NOT_FOUND
        else:
            self.broker_epoch += 1
        errors = {each.partition: error_for(code) if code else None for each in request.acknowledgements}
        if isinstance(request, SendFetch):
            self.session.handle_fetch_response(top, errors, self.now, retry=False)
        else:
            self.session.handle_acknowledge_response(top, errors, self.now)
        assert forgets or not top, "the epochs of both sides differ"

    @precondition(lambda self: self.session.in_flight is not None)
    @rule()
    def lose_connection(self) -> None:
        self.session.handle_failure(KafkaError(ErrorCode.NETWORK_EXCEPTION, "gone"), self.now)
        self.broker_epoch = None

    @rule(seconds=st.floats(0, 10))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def every_acknowledgement_has_one_result(self) -> None:
        self.session.check()
        for result in self.session.take_results():
            self.open -= set(result.sent.types)
        waiting = {offset for each in self.session._waiting for offset in each.types}
        if self.session.in_flight is not None:
            waiting |= {offset for each in self.session.in_flight.acknowledgements for offset in each.types}
        assert waiting == self.open


SessionMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSessionMachine = SessionMachine.TestCase

"""Verification requests to the transaction coordinators of other brokers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.broker.apis.transactional_write import map_verification
from ottla.broker.coordinators.remote_coordinators import RemoteCoordinators, Verification, VerificationCodes
from ottla.broker.peers.peer_connection import Question
from ottla.coordination.quorum.observer import Address
from ottla.errors import ErrorCode, OttlaError
from ottla.model import TopicPartition
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)

ME, OTHER = 1, 2
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
PRODUCER = 77


class FakeConnection:
    """A substitute for a connection to another broker, with responses from the test."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def send_request(self, question: Question) -> None:
        self.asked.append(question)

    def close(self) -> None:
        self.asked.clear()

    @property
    def request(self) -> AddPartitionsToTxnRequest:
        request = self.asked[-1].request
        assert isinstance(request, AddPartitionsToTxnRequest)
        return request

    def answer(self, code: int = 0, **codes: int) -> None:
        """Answer with one code for all partitions, or with other codes for those of a transactional id."""
        results = [
            AddPartitionsToTxnResult(
                each.transactional_id,
                [
                    AddPartitionsToTxnTopicResult(
                        topic.name,
                        [
                            AddPartitionsToTxnPartitionResult(number, codes.get(each.transactional_id, code))
                            for number in topic.partitions
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in self.request.transactions
        ]
        self.asked[-1].done(AddPartitionsToTxnResponse(results_by_transaction=results))


class Story:
    """The remote coordinators of a broker that knows one of them, and the results per transactional id."""

    def __init__(self, coordinator: int = OTHER) -> None:
        self.coordinator = coordinator
        self.way = FakeConnection()
        self.heard: list[tuple[str, VerificationCodes]] = []
        self.here: list[Callable[[VerificationCodes, int], None]] = []
        """The local coordinator: recorded requests, and responses from the test."""
        self.coordinators = RemoteCoordinators(
            lambda _: self.coordinator,
            lambda broker: Address("127.0.0.1", 9092) if broker in (ME, OTHER) else None,
            lambda broker: self.way,  # type: ignore[arg-type, return-value]
            ME,
            lambda verification, on_done: self.here.append(on_done),
        )

    def ask(self, name: str, *partitions: TopicPartition, verify_only: bool = True) -> bool:
        places = frozenset(partitions or [FIRST])
        return self.coordinators.verify(
            Verification(name, PRODUCER, 3, places, verify_only, lambda verdicts: self.heard.append((name, verdicts)))
        )


@pytest.mark.parametrize("verify_only", [True, False])
def test_the_coordinator_verifies_a_partition(verify_only: bool) -> None:
    story = Story()
    assert story.ask("a", FIRST, SECOND, verify_only=verify_only)
    (asked,) = story.way.request.transactions
    assert (asked.producer_id, asked.producer_epoch, asked.verify_only) == (PRODUCER, 3, verify_only)
    assert not story.heard
    story.way.answer()
    assert story.heard == [("a", {FIRST: ErrorCode.NONE, SECOND: ErrorCode.NONE})]


def test_verifications_during_a_request_share_the_next_one() -> None:
    story = Story()
    for name in ("a", "b", "c", "b"):
        assert story.ask(name)
    assert len(story.way.asked) == 1
    story.way.answer()
    assert sorted(each.transactional_id for each in story.way.request.transactions) == ["b", "c"]
    story.way.answer(c=ErrorCode.INVALID_TXN_STATE)
    story.way.answer()
    assert sorted((name, verdicts[FIRST]) for name, verdicts in story.heard) == [
        ("a", 0),
        ("b", 0),
        ("b", 0),
        ("c", ErrorCode.INVALID_TXN_STATE),
    ]
    assert len(story.way.asked) == 3


def test_a_verification_is_void_if_the_transaction_has_ended_since() -> None:
    story = Story()
    story.ask("a", FIRST, SECOND)
    story.coordinators.marker_written(SECOND, PRODUCER)
    story.coordinators.marker_written(FIRST, PRODUCER + 1)
    story.way.answer()
    assert story.heard == [("a", {FIRST: ErrorCode.NONE, SECOND: ErrorCode.CONCURRENT_TRANSACTIONS})]
    story.ask("a", FIRST, SECOND)
    story.way.answer()
    assert story.heard[-1] == ("a", {FIRST: ErrorCode.NONE, SECOND: ErrorCode.NONE})


def test_this_brokers_own_coordinator_verifies_too() -> None:
    story = Story(ME)
    assert story.ask("a", FIRST, SECOND)
    assert (story.way.asked, story.heard) == ([], [])
    story.coordinators.marker_written(SECOND, PRODUCER)
    (reported,) = story.here
    reported({}, ErrorCode.INVALID_TXN_STATE)
    assert story.heard == [
        ("a", {FIRST: ErrorCode.INVALID_TXN_STATE, SECOND: ErrorCode.CONCURRENT_TRANSACTIONS}),
    ]


def test_no_verification_by_the_own_coordinator_is_reported_after_close() -> None:
    story = Story(ME)
    story.ask("a")
    story.coordinators.close()
    story.here[0]({}, ErrorCode.NONE)
    assert not story.heard


@pytest.mark.parametrize("coordinator", [-1, 9])
def test_a_missing_coordinator_is_reported_at_once(coordinator: int) -> None:
    story = Story(coordinator)
    assert not story.ask("a")
    assert not story.way.asked


def test_errors_of_the_connection_or_the_coordinator_are_retriable_for_the_producer() -> None:
    story = Story()
    story.ask("a")
    story.way.asked[-1].done(OttlaError("the connection was closed"))
    story.ask("a")
    story.way.asked[-1].done(AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    story.ask("a")
    story.way.answer(ErrorCode.NOT_COORDINATOR)
    story.ask("a")
    story.way.asked[-1].done(AddPartitionsToTxnResponse())
    assert [map_verification(verdicts[FIRST]) for _, verdicts in story.heard] == [ErrorCode.NOT_ENOUGH_REPLICAS] * 4
    assert map_verification(ErrorCode.INVALID_TXN_STATE) == ErrorCode.INVALID_TXN_STATE


def test_nothing_is_reported_after_close() -> None:
    story = Story()
    story.ask("a")
    (question,) = story.way.asked
    story.coordinators.close()
    question.done(AddPartitionsToTxnResponse())
    assert not story.heard


def test_a_response_of_a_former_coordinator_is_not_waited_for() -> None:
    story = Story()
    story.ask("a")
    story.coordinators.handle_new_metadata()
    assert not story.heard
    story.coordinator = ME
    story.coordinators.handle_new_metadata()
    assert [(name, map_verification(verdicts[FIRST])) for name, verdicts in story.heard] == [
        ("a", ErrorCode.NOT_ENOUGH_REPLICAS)
    ]
    assert not story.way.asked  # hung up on
    story.ask("a")
    assert len(story.here) == 1

"""What coordinators of transactions at other brokers are asked, and what becomes of their answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.broker.coordinators.elsewhere import CoordinatorsElsewhere, Inquiry, Verdicts
from ottla.broker.peers.peer_connection import Question
from ottla.broker.transactional_write import code_of_verdict
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


class Way:
    """To the other broker, who answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def ask(self, question: Question) -> None:
        self.asked.append(question)

    def close(self) -> None:
        self.asked.clear()

    @property
    def request(self) -> AddPartitionsToTxnRequest:
        request = self.asked[-1].request
        assert isinstance(request, AddPartitionsToTxnRequest)
        return request

    def answer(self, code: int = 0, **codes: int) -> None:
        """Say this of all partitions that were asked for, or that of those of a transactional id."""
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
    """The coordinators of which a broker knows one, and what was said of each transactional id."""

    def __init__(self, coordinator: int = OTHER) -> None:
        self.coordinator = coordinator
        self.way = Way()
        self.heard: list[tuple[str, Verdicts]] = []
        self.here: list[Callable[[Verdicts, int], None]] = []
        """What this broker's own coordinator was asked, and is to answer."""
        self.coordinators = CoordinatorsElsewhere(
            lambda _: self.coordinator,
            lambda broker: Address("127.0.0.1", 9092) if broker in (ME, OTHER) else None,
            lambda broker: self.way,  # type: ignore[arg-type, return-value]
            ME,
            lambda inquiry, told: self.here.append(told),
        )

    def ask(self, name: str, *partitions: TopicPartition, verify_only: bool = True) -> bool:
        places = frozenset(partitions or [FIRST])
        return self.coordinators.ask(
            Inquiry(name, PRODUCER, 3, places, verify_only, lambda verdicts: self.heard.append((name, verdicts)))
        )


@pytest.mark.parametrize("verify_only", [True, False])
def test_the_coordinator_is_asked_and_its_verdict_told(verify_only: bool) -> None:
    story = Story()
    assert story.ask("a", FIRST, SECOND, verify_only=verify_only)
    (asked,) = story.way.request.transactions
    assert (asked.producer_id, asked.producer_epoch, asked.verify_only) == (PRODUCER, 3, verify_only)
    assert not story.heard
    story.way.answer()
    assert story.heard == [("a", {FIRST: ErrorCode.NONE, SECOND: ErrorCode.NONE})]


def test_what_comes_meanwhile_goes_together_in_the_next_question() -> None:
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


def test_a_verdict_is_void_where_the_transaction_ended_since_it_was_asked_for() -> None:
    story = Story()
    story.ask("a", FIRST, SECOND)
    story.coordinators.marker_written(SECOND, PRODUCER)
    story.coordinators.marker_written(FIRST, PRODUCER + 1)
    story.way.answer()
    assert story.heard == [("a", {FIRST: ErrorCode.NONE, SECOND: ErrorCode.CONCURRENT_TRANSACTIONS})]
    story.ask("a", FIRST, SECOND)
    story.way.answer()
    assert story.heard[-1] == ("a", {FIRST: ErrorCode.NONE, SECOND: ErrorCode.NONE})


def test_this_brokers_own_coordinator_is_asked_as_well() -> None:
    story = Story(ME)
    assert story.ask("a", FIRST, SECOND)
    assert (story.way.asked, story.heard) == ([], [])
    story.coordinators.marker_written(SECOND, PRODUCER)
    (told,) = story.here
    told({}, ErrorCode.INVALID_TXN_STATE)
    assert story.heard == [
        ("a", {FIRST: ErrorCode.INVALID_TXN_STATE, SECOND: ErrorCode.CONCURRENT_TRANSACTIONS}),
    ]


def test_nobody_hears_of_the_own_coordinator_once_the_broker_ends() -> None:
    story = Story(ME)
    story.ask("a")
    story.coordinators.close()
    story.here[0]({}, ErrorCode.NONE)
    assert not story.heard


@pytest.mark.parametrize("coordinator", [-1, 9])
def test_where_nobody_can_be_asked_that_is_known_at_once(coordinator: int) -> None:
    story = Story(coordinator)
    assert not story.ask("a")
    assert not story.way.asked


def test_what_the_way_or_the_coordinator_is_to_blame_for_is_tried_again_by_the_producer() -> None:
    story = Story()
    story.ask("a")
    story.way.asked[-1].done(OttlaError("the connection was closed"))
    story.ask("a")
    story.way.asked[-1].done(AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    story.ask("a")
    story.way.answer(ErrorCode.NOT_COORDINATOR)
    story.ask("a")
    story.way.asked[-1].done(AddPartitionsToTxnResponse())
    assert [code_of_verdict(verdicts[FIRST]) for _, verdicts in story.heard] == [ErrorCode.NOT_ENOUGH_REPLICAS] * 4
    assert code_of_verdict(ErrorCode.INVALID_TXN_STATE) == ErrorCode.INVALID_TXN_STATE


def test_nobody_hears_anything_once_the_broker_ends() -> None:
    story = Story()
    story.ask("a")
    (question,) = story.way.asked
    story.coordinators.close()
    question.done(AddPartitionsToTxnResponse())
    assert not story.heard


def test_who_coordinates_no_more_and_may_be_cut_off_is_not_waited_for() -> None:
    story = Story()
    story.ask("a")
    story.coordinators.look()
    assert not story.heard
    story.coordinator = ME
    story.coordinators.look()
    assert [(name, code_of_verdict(verdicts[FIRST])) for name, verdicts in story.heard] == [
        ("a", ErrorCode.NOT_ENOUGH_REPLICAS)
    ]
    assert not story.way.asked  # hung up on
    story.ask("a")
    assert len(story.here) == 1

"""Produces within transactions that another broker coordinates: appended once he has said that their partitions take part."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ottla.broker import transactional_write
from ottla.broker.handlers.produce import handle
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.server import Server
from ottla.broker.settings.config import read_config
from ottla.clock import ManualClock, wall_ms
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.protocol.headers import RequestHeader
from ottla.protocol.messages.create_topics import CreatableTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.schema import Message
from tests.broker.test_coordinators_elsewhere import OTHER, Story
from tests.broker.test_plain_produce import PEER
from tests.storage.producing import produced

PRODUCER = 77
VERIFIES, ADDS = 9, 12
"""Versions of Produce."""
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


class Standing:
    """A broker that does not run, and takes another for the coordinator of all transactions."""

    def __init__(self, coordinator: int = OTHER) -> None:
        self.server = Server(read_config(listeners="127.0.0.1:0"), ManualClock(0.0, wall_ms()))
        self.node = self.server.node
        self.node.topics.create([CreatableTopic("t", 2, 1)])
        self.story = Story(coordinator)
        self.node.coordinators = self.story.coordinators
        self.outcome: Message | Outcome = Outcome.LATER

    def resume(self, call: Call, work: Callable[[], Message | Outcome]) -> None:
        self.outcome = work()

    def produce(self, request: ProduceRequest, version: int = VERIFIES) -> list[int] | None:
        """The codes of the partitions in their order; None where the answer waits for the coordinator."""
        self.outcome = handle(self.node, Call(self, PEER, RequestHeader(0, version, 1, "c"), 0.0), request)
        return self.codes

    def end(self) -> None:
        self.node.coordinators = None
        self.server.stop()
        self.server.run()

    @property
    def codes(self) -> list[int] | None:
        if self.outcome is Outcome.LATER:
            return None
        assert isinstance(self.outcome, ProduceResponse)
        return [each.error_code for topic in self.outcome.responses for each in topic.partition_responses]

    def end_of(self, place: TopicPartition) -> int:
        partition = self.node.partitions.find(*place)
        assert partition is not None
        return partition.log.end_offset


@pytest.fixture
def broker() -> Iterator[Standing]:
    standing = Standing()
    yield standing
    standing.end()


def of(*batches: bytes) -> ProduceRequest:
    """Each to a partition of its own."""
    data = [PartitionProduceData(number, each) for number, each in enumerate(batches)]
    return ProduceRequest("id", -1, 30_000, [TopicProduceData("t", partition_data=data)])


def batch(sequence: int, producer: int = PRODUCER) -> bytes:
    return produced(producer, sequence, transactional=True, timestamp=wall_ms())


@pytest.mark.parametrize(("version", "verify_only"), [(VERIFIES, True), (ADDS, False)])
def test_the_first_batch_waits_for_the_coordinator_and_those_behind_it_do_not(
    broker: Standing, version: int, verify_only: bool
) -> None:
    assert broker.produce(of(batch(0), batch(0)), version) is None
    (asked,) = broker.story.way.request.transactions
    assert (asked.transactional_id, asked.producer_id, asked.verify_only) == ("id", PRODUCER, verify_only)
    assert [list(topic.partitions) for topic in asked.topics] == [[0, 1]]
    assert broker.end_of(FIRST) == 0
    broker.story.way.answer()
    assert broker.codes == [0, 0]
    assert (broker.end_of(FIRST), broker.end_of(SECOND)) == (1, 1)
    assert broker.produce(of(batch(1), batch(1)), version) == [0, 0]


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_what_does_not_take_part_is_not_appended(broker: Standing, said: ErrorCode, heard: ErrorCode) -> None:
    assert broker.produce(of(batch(0))) is None
    broker.story.way.answer(said)
    assert broker.codes == [heard]
    assert broker.end_of(FIRST) == 0


def test_a_batch_that_a_marker_overtook_is_not_appended(broker: Standing) -> None:
    assert broker.produce(of(batch(0)), ADDS) is None
    broker.story.coordinators.marker_written(FIRST, PRODUCER)
    broker.story.way.answer()
    assert broker.codes == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert broker.end_of(FIRST) == 0


def test_without_a_coordinator_producers_try_again() -> None:
    broker = Standing(-1)
    assert broker.produce(of(batch(0))) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    broker.end()


def test_nothing_is_asked_of_another_producers_batch_and_it_is_refused(broker: Standing) -> None:
    assert broker.produce(of(batch(0), batch(0, producer=PRODUCER + 1))) is None
    broker.story.way.answer()
    assert broker.codes == [0, ErrorCode.INVALID_TXN_STATE]


def test_nothing_is_asked_of_a_topic_to_which_the_client_may_not_write(broker: Standing) -> None:
    request = of(batch(0))
    assert transactional_write.inquiry(broker.node, request, ADDS, lambda topic: topic != "t", print) is None
    assert transactional_write.inquiry(broker.node, request, ADDS, lambda topic: topic == "t", print) is not None


def test_a_batch_of_no_transaction_is_not_asked_about(broker: Standing) -> None:
    assert broker.produce(of(produced(PRODUCER, 0, timestamp=wall_ms()))) == [0]
    assert not broker.story.way.asked


@pytest.mark.parametrize("version", [VERIFIES, ADDS])
@pytest.mark.parametrize(
    "refusal", [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_batches_in_flight_behind_a_refused_one_are_appended_after_it(
    broker: Standing, version: int, refusal: ErrorCode
) -> None:
    assert broker.produce(of(batch(0)), version) is None
    broker.story.way.answer(refusal)
    for sequence in (1, 2):
        assert broker.produce(of(batch(sequence)), version) is None
        broker.story.way.answer()
        assert broker.codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert broker.end_of(FIRST) == 0
    assert broker.produce(of(batch(0)), version) is None
    broker.story.way.answer()
    assert broker.codes == [0]
    assert [broker.produce(of(batch(each)), version) for each in (1, 2)] == [[0], [0]]
    assert broker.end_of(FIRST) == 3


@pytest.mark.parametrize("version", [VERIFIES, ADDS])
def test_batches_behind_one_that_no_coordinator_could_verify_are_appended_after_it(version: int) -> None:
    broker = Standing(-1)
    assert broker.produce(of(batch(0)), version) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    broker.story.coordinator = OTHER
    assert broker.produce(of(batch(1)), version) is None
    broker.story.way.answer()
    assert broker.codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    broker.end()


def test_a_transaction_of_version_2_begins_at_sequence_0(broker: Standing) -> None:
    """Also where another leader refused the batches before it, so that this one remembers none."""
    assert broker.produce(of(batch(5)), ADDS) is None
    broker.story.way.answer()
    assert broker.codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert broker.produce(of(batch(5)), VERIFIES) is None
    broker.story.way.answer()
    assert broker.codes == [0], "sequences of older clients go on from transaction to transaction"

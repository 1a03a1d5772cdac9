"""Produces in transactions of a remote coordinator: appended once it has verified their partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ottla.broker.apis import transactional_write
from ottla.broker.apis.produce import handle
from ottla.broker.network_server.call import Call, Outcome, Response
from ottla.broker.settings.config import read_config
from ottla.clock import ManualClock, wall_ms
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.protocol.headers import RequestHeader
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.broker.serving import create_topic, start_server
from tests.broker.test_fast_produce import PEER
from tests.broker.test_remote_coordinators import OTHER, Story
from tests.storage.producing import produced

PRODUCER = 77
VERIFIES, ADDS = 9, 12
"""Versions of Produce."""
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


class Standing:
    """A broker that serves in the thread of the test, and takes another for the coordinator of all transactions."""

    def __init__(self, coordinator: int = OTHER) -> None:
        self.server = start_server(read_config(listeners="127.0.0.1:0"), ManualClock(0.0, wall_ms()))
        self.node = self.server.node
        create_topic(self.server, "t", 2)
        self.story = Story(coordinator)
        self.node.coordinators = self.story.coordinators
        self.outcome: Response = Outcome.LATER

    def resume(self, call: Call, work: Callable[[], Response]) -> None:
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
def test_the_first_batch_waits_for_the_coordinator_and_later_ones_do_not(
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
def test_a_batch_outside_the_transaction_is_not_appended(broker: Standing, said: ErrorCode, heard: ErrorCode) -> None:
    assert broker.produce(of(batch(0))) is None
    broker.story.way.answer(said)
    assert broker.codes == [heard]
    assert broker.end_of(FIRST) == 0


def test_a_batch_overtaken_by_a_marker_is_not_appended(broker: Standing) -> None:
    assert broker.produce(of(batch(0)), ADDS) is None
    broker.story.coordinators.marker_written(FIRST, PRODUCER)
    broker.story.way.answer()
    assert broker.codes == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert broker.end_of(FIRST) == 0


def test_without_a_coordinator_producers_retry() -> None:
    broker = Standing(-1)
    assert broker.produce(of(batch(0))) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    broker.end()


def test_another_producers_batch_is_rejected_without_a_verification(broker: Standing) -> None:
    assert broker.produce(of(batch(0), batch(0, producer=PRODUCER + 1))) is None
    broker.story.way.answer()
    assert broker.codes == [0, ErrorCode.INVALID_TXN_STATE]


def test_a_topic_without_write_permission_is_not_verified(broker: Standing) -> None:
    request = of(batch(0))
    assert transactional_write.verification_for(broker.node, request, ADDS, lambda topic: topic != "t", print) is None
    assert (
        transactional_write.verification_for(broker.node, request, ADDS, lambda topic: topic == "t", print) is not None
    )


def test_a_batch_outside_transactions_is_not_verified(broker: Standing) -> None:
    assert broker.produce(of(produced(PRODUCER, 0, timestamp=wall_ms()))) == [0]
    assert not broker.story.way.asked


@pytest.mark.parametrize("version", [VERIFIES, ADDS])
@pytest.mark.parametrize(
    "refusal", [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_batches_in_flight_behind_a_rejected_one_are_appended_after_it(
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
def test_batches_behind_an_unverified_one_are_appended_after_it(version: int) -> None:
    broker = Standing(-1)
    assert broker.produce(of(batch(0)), version) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    broker.story.coordinator = OTHER
    assert broker.produce(of(batch(1)), version) is None
    broker.story.way.answer()
    assert broker.codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    broker.end()


def test_a_transaction_of_version_2_starts_at_sequence_0(broker: Standing) -> None:
    """Also where another leader refused the batches before it, so that this one remembers none."""
    assert broker.produce(of(batch(5)), ADDS) is None
    broker.story.way.answer()
    assert broker.codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert broker.produce(of(batch(5)), VERIFIES) is None
    broker.story.way.answer()
    assert broker.codes == [0], "sequences of older clients go on from transaction to transaction"

"""Transcripts of a `TransactionMachine`: lines with `>` are events, all other lines are the expected results.

The player takes the part of the user and of the sender: it sends due requests and records how calls end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from textwrap import dedent
from typing import Any, ClassVar

from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.producer.open_transaction import OpenTransaction
from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.transactions.call_outcome import CallOutcome
from ottla.client.producer.transactions.requests import (
    AddOffsetsToTxn,
    AddPartitionsToTxn,
    EndTxn,
    FindCoordinator,
    InitProducerId,
    TxnOffsetCommit,
    TxnRequest,
)
from ottla.client.producer.transactions.transaction_machine import SEND_OFFSETS, TransactionMachine
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ErrorCode, KafkaError, OttlaError, error_for
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.protocol.messages.end_txn import EndTxnResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

FOREVER = float("inf")
BEGINNING = ("call init_transactions", "turn", "answer", "turn", "answer", "call begin_transaction")
GROUP = ConsumerGroupMetadata("g", 1, "m", None)
PRODUCER_ID = 5


class NoJitter(Random):
    def uniform(self, a: float, b: float) -> float:
        return 1.0


BACKOFF = ExponentialBackoff(100, 1000, NoJitter())


def play(story: str, *, begun: bool = True, transactional: bool = True, v2: bool = False) -> None:
    """Play the lines with `>`, and compare all results with the story. Most stories start in a transaction that was
    started (`begun`) by a producer with its id and epoch 0.
    """
    wanted = [line.rstrip() for line in dedent(story).strip().splitlines()]
    player = Player(transactional=transactional, v2=v2)
    for what in BEGINNING if begun and transactional else ():
        player.happens(what)
    player.lines.clear()
    for line in wanted:
        if line.startswith(">"):
            player.happens(line[1:].strip())
    assert player.lines == wanted, "\n" + "\n".join(player.lines)


class Player:
    """Applies events to a machine and records its results."""

    def __init__(self, *, transactional: bool = True, v2: bool = False) -> None:
        self.machine = TransactionMachine(BACKOFF, "x" if transactional else None, 60_000)
        self.v2 = v2
        self.lines: list[str] = []
        self.now = 0.0
        self.incomplete = False
        self.awaited: dict[str, CallOutcome] = {}
        self.given: OpenTransaction | None = None

    def happens(self, what: str) -> None:
        """Apply one event and return the lines of its results."""
        self.lines.append(f"> {what}")
        before = self.machine.status.state
        name, *rest = what.split()
        try:
            self.HAPPENINGS[name](self, *rest)
        except OttlaError as error:
            self.lines.append(f"  {type(error).__name__}: {shortened(error)}")
        if self.machine.status.state is not before:
            self.lines.append(f"  [{self.machine.status.state.name}]")
        for call, outcome in list(self.awaited.items()):
            if outcome.done:
                del self.awaited[call]
                self.machine.acknowledge_call(call)
                self.lines.append(f"  {call}: {'done' if outcome.error is None else type(outcome.error).__name__}")
        self.machine.status.take_log_lines()
        self.machine.check()

    # What happens

    def call(self, call: str) -> None:
        outcome: Any
        if call == SEND_OFFSETS:
            outcome = self.machine.send_offsets({TopicPartition("t", 0): OffsetAndMetadata(7)}, GROUP)
        else:
            outcome = getattr(self.machine, call)()
        if isinstance(outcome, CallOutcome):
            self.awaited[call] = outcome
        elif isinstance(outcome, OpenTransaction):
            self.given = outcome

    def record(self, partition: str) -> None:
        self.machine.check_send()
        self.machine.add_partition(of(partition))

    def drain(self, partition: str) -> None:
        batch = ProducerBatch(of(partition), 0.0, 0, (1, 0))
        may = self.machine.can_drain(batch)
        self.lines.append(f"  {'it goes' if may else 'it is held back'}")

    def refuse(self, code: str) -> None:
        """A batch has failed."""
        self.machine.fail_transaction(error_for(ErrorCode[code], "a batch"))

    def turn(self) -> None:
        """Do the sender's work of one turn."""
        self.machine.resolve_failed_batches()
        request, wait = self.machine.next_request(self.now, incomplete=lambda: self.incomplete)
        if request is not None and request.coordinator and self.machine.requests.find_coordinator(request) is None:
            request, wait = self.machine.next_request(self.now, incomplete=lambda: self.incomplete)
        if request is not None:
            self.machine.record_sent(request)
            self.lines.append(f"  {described(request)}")
        elif 0 < wait < FOREVER:
            self.lines.append(f"  again in {wait:.2f} s")

    def answer(self, code: str = "NONE") -> None:
        request = self.machine.requests.in_flight
        assert request is not None, "nothing was asked"
        producer = self.machine.sequences.producer
        epoch = producer.epoch + 1 if isinstance(request, InitProducerId) or self.v2 else -1
        answer = ANSWERS[type(request)](request, ErrorCode[code], epoch)
        self.machine.handle_response(request, answer, self.now, v2=self.v2)

    def lost(self) -> None:
        assert self.machine.requests.in_flight is not None
        self.machine.handle_disconnect(self.machine.requests.in_flight, self.now)

    def later(self, seconds: str) -> None:
        self.now += float(seconds)

    def written(self) -> None:
        self.incomplete = False

    def unwritten(self) -> None:
        self.incomplete = True

    def take_over(self) -> None:
        assert self.given is not None
        self.machine = TransactionMachine(BACKOFF, "x", 60_000)
        self.machine.take_over_transaction(self.given)

    HAPPENINGS: ClassVar[dict[str, Callable[..., None]]] = {
        "call": call,
        "record": record,
        "drain": drain,
        "refuse": refuse,
        "turn": turn,
        "answer": answer,
        "lost": lost,
        "later": later,
        "written": written,
        "unwritten": unwritten,
        "take_over": take_over,
        "abandon": lambda player: player.machine.abandon_transaction(),
    }


def of(partition: str) -> TopicPartition:
    topic, _, number = partition.rpartition("-")
    return TopicPartition(topic, int(number))


def shortened(error: OttlaError) -> str:
    """The action of a line."""
    text: str = error.message or "" if isinstance(error, KafkaError) else str(error)
    return re.split(r": |; (?=the cause|call)", text)[1]


def described(request: TxnRequest) -> str:
    """Format a request for a story."""
    message = request.message
    match request:
        case FindCoordinator():
            return f"FindCoordinator {request.key}"
        case InitProducerId():
            return f"InitProducerId epoch {message.producer_epoch}"
        case AddPartitionsToTxn():
            return f"AddPartitionsToTxn {' '.join(map(str, sorted(request.partitions)))}"
        case AddOffsetsToTxn():
            return f"AddOffsetsToTxn {message.group_id}"
        case TxnOffsetCommit():
            return f"TxnOffsetCommit {message.group_id}"
        case EndTxn():
            return f"EndTxn {'commit' if message.committed else 'abort'} epoch {message.producer_epoch}"
    raise AssertionError(request)


def parts_of(request: AddPartitionsToTxn, code: ErrorCode) -> AddPartitionsToTxnResponse:
    results = [
        AddPartitionsToTxnTopicResult(tp.topic, [AddPartitionsToTxnPartitionResult(tp.partition, code)])
        for tp in sorted(request.partitions)
    ]
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


def offsets_of(code: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[TxnOffsetCommitResponseTopic("t", partitions=[TxnOffsetCommitResponsePartition(0, code)])]
    )


ANSWERS: dict[type[TxnRequest], Callable[[Any, ErrorCode, int], Any]] = {
    FindCoordinator: lambda _, code, epoch: FindCoordinatorResponse(error_code=code, node_id=1, host="h", port=1),
    InitProducerId: lambda _, code, epoch: InitProducerIdResponse(
        error_code=code, producer_id=PRODUCER_ID, producer_epoch=epoch
    ),
    AddPartitionsToTxn: lambda request, code, epoch: parts_of(request, code),
    AddOffsetsToTxn: lambda _, code, epoch: AddOffsetsToTxnResponse(error_code=code),
    TxnOffsetCommit: lambda _, code, epoch: offsets_of(code),
    EndTxn: lambda _, code, epoch: EndTxnResponse(
        error_code=code, producer_id=-1 if epoch < 0 else PRODUCER_ID, producer_epoch=epoch
    ),
}

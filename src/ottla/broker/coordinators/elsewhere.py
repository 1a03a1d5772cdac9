"""Asks the coordinators of transactions, at whichever broker of a cluster, whether a transaction has partitions that are led here (KIP-890).

    produce ──► partitions not known to take part ──► AddPartitionsToTxn to the coordinator ──► verdicts ──► the produce goes on

What comes while another broker is asked goes together in the next question. Clients of version 2 leave it to this
broker to have a partition taken in, those before only have it looked up.

Between a coordinator's word and the append the transaction may end here, and the batch would begin another that nobody ever ends. So a
verdict is void where a marker of that producer was written into the partition since the question: the producer asks again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field

from ottla.broker.peers.batched_questions import BatchedQuestions, Form
from ottla.broker.peers.peer_connection import PeerConnection
from ottla.coordination.quorum.observer import Address
from ottla.errors import ErrorCode, OttlaError, name_of
from ottla.model import TopicPartition
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

log = logging.getLogger(__name__)
VERSION = 5
"""Of AddPartitionsToTxn; those below 4 are for clients."""
Verdicts = dict[TopicPartition, int]
"""What the coordinator says of each partition."""


class Inquiry(Struct, eq=False):
    """About one producer's transaction, on behalf of one produce request."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]
    verify_only: bool
    """Whether the client has the partitions taken in by itself."""
    done: Callable[[Verdicts], None]
    ended: set[TopicPartition] = field(default_factory=set)
    """Where a marker was written meanwhile."""

    def answer(self, codes: Verdicts, otherwise: int) -> None:
        """Tell the verdicts; `otherwise` of partitions of which nothing was said."""
        void = dict.fromkeys(self.ended, int(ErrorCode.CONCURRENT_TRANSACTIONS))
        self.done({each: int(codes.get(each, otherwise)) for each in self.partitions} | void)


class CoordinatorsElsewhere:
    """Those of all transactional ids, the one that is this broker too. What waits for them waits in the loop, to which this belongs."""

    def __init__(
        self,
        find: Callable[[str], int],
        address: Callable[[int], Address | None],
        connect: Callable[[int], PeerConnection],
        me: int,
        ask_here: Callable[[Inquiry, Callable[[Verdicts, int], None]], None],
    ) -> None:
        """`find` says which broker coordinates a transactional id, -1 where nobody does; `address` where it is.

        `ask_here` has this broker's own coordinator say the verdicts, and what holds of partitions of which it says nothing; not within the call.
        """
        self._find = find
        self._address = address
        self._me = me
        self._ask_here = ask_here
        self._here: list[Inquiry] = []
        self._questions: BatchedQuestions[Inquiry] = BatchedQuestions(address, connect, chosen, form, answered)

    def ask(self, inquiry: Inquiry) -> bool:
        """Have it answered, never within this call; False where nobody can be asked at present."""
        broker = self._find(inquiry.transactional_id)
        if broker == self._me:
            self._here.append(inquiry)
            self._ask_here(inquiry, lambda codes, otherwise: self._answer(inquiry, codes, otherwise))
            return True
        if broker == -1 or self._address(broker) is None:
            return False
        self._questions.add(broker, inquiry)
        return True

    def marker_written(self, partition: TopicPartition, producer_id: int) -> None:
        """A transaction of this producer has ended in a partition: what was asked before is void."""
        for each in (*self._here, *self._questions):
            if each.producer_id == producer_id and partition in each.partitions:
                each.ended.add(partition)

    def look(self) -> None:
        """The metadata are others now: where another coordinates, the producer asks again, and waits for nobody who may be cut off."""
        for each in self._questions.withdraw(lambda broker, asked: self._find(asked.transactional_id) != broker):
            each.answer({}, ErrorCode.NETWORK_EXCEPTION)

    def close(self) -> None:
        self._here.clear()
        self._questions.close()

    def _answer(self, inquiry: Inquiry, codes: Verdicts, otherwise: int) -> None:
        if inquiry in self._here:
            self._here.remove(inquiry)
            inquiry.answer(codes, otherwise)


def chosen(waiting: Sequence[Inquiry]) -> list[Inquiry]:
    """Each transactional id once, the first that was asked about it."""
    return list({each.transactional_id: each for each in reversed(waiting)}.values())


def form(inquiries: list[Inquiry]) -> Form:
    request = AddPartitionsToTxnRequest(transactions=[transaction_of(each) for each in inquiries])
    return Form(request, VERSION, AddPartitionsToTxnResponse)


def answered(broker: int, asked: list[Inquiry], answer: AddPartitionsToTxnResponse | OttlaError) -> None:
    otherwise, found = told(broker, answer)
    for each in asked:
        each.answer(found.get(each.transactional_id, {}), otherwise)


def told(broker: int, answer: AddPartitionsToTxnResponse | OttlaError) -> tuple[int, dict[str, Verdicts]]:
    """What holds where nothing was said, and the verdicts for each transactional id."""
    if isinstance(answer, OttlaError):
        log.warning("the coordinator of a transaction, broker %d, was asked in vain: %s", broker, answer)
        return ErrorCode.NETWORK_EXCEPTION, {}
    if answer.error_code:
        log.warning("the coordinator of a transaction, broker %d, answers %s", broker, name_of(answer.error_code))
        return answer.error_code, {}
    return ErrorCode.NETWORK_EXCEPTION, {
        each.transactional_id: verdicts_of(each) for each in answer.results_by_transaction
    }


def verdicts_of(result: AddPartitionsToTxnResult) -> Verdicts:
    return {
        TopicPartition(topic.name, each.partition_index): each.partition_error_code
        for topic in result.topic_results
        for each in topic.results_by_partition
    }


def transaction_of(inquiry: Inquiry) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        inquiry.transactional_id, inquiry.producer_id, inquiry.epoch, inquiry.verify_only, by_topic(inquiry.partitions)
    )


def by_topic(partitions: Iterable[TopicPartition]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, list[int]] = {}
    for name, number in sorted(partitions):
        topics.setdefault(name, []).append(number)
    return [AddPartitionsToTxnTopic(name, numbers) for name, numbers in topics.items()]

"""Asks the coordinators of transactions at other brokers of a cluster whether a transaction has partitions that are led here (KIP-890).

    produce ──► partitions not known to take part ──► AddPartitionsToTxn to the coordinator ──► verdicts ──► the produce goes on

One question at a time is under way to each broker; what comes meanwhile goes together in the next. Clients of version 2 leave it to this
broker to have a partition taken in, those before only have it looked up.

Between a coordinator's word and the append the transaction may end here, and the batch would begin another that nobody ever ends. So a
verdict is void where a marker of that producer was written into the partition since the question: the producer asks again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ottla.broker.peers.loop_connection import LoopConnection, Question
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


@dataclass(eq=False)
class Inquiry:
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
    """Those of all transactional ids but of one's own. What waits for them waits in the loop, to which this belongs."""

    def __init__(
        self,
        find: Callable[[str], int],
        address: Callable[[int], Address | None],
        connect: Callable[[int], LoopConnection],
        me: int,
    ) -> None:
        """`find` says which broker coordinates a transactional id, -1 where nobody does; `address` where it is."""
        self._find = find
        self._address = address
        self._connect = connect
        self._me = me
        self._connections: dict[int, LoopConnection] = {}
        self._waiting: dict[int, list[Inquiry]] = {}
        self._asked: dict[int, list[Inquiry]] = {}

    def ask(self, inquiry: Inquiry) -> bool:
        """Have it answered, never within this call; False where nobody can be asked at present."""
        broker = self._find(inquiry.transactional_id)
        if broker in (-1, self._me) or self._address(broker) is None:
            return False
        self._waiting.setdefault(broker, []).append(inquiry)
        if broker not in self._asked:
            self._put(broker)
        return True

    def marker_written(self, partition: TopicPartition, producer_id: int) -> None:
        """A transaction of this producer has ended in a partition: what was asked before is void."""
        for inquiries in (*self._waiting.values(), *self._asked.values()):
            for each in inquiries:
                if each.producer_id == producer_id and partition in each.partitions:
                    each.ended.add(partition)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._waiting.clear()
        self._asked.clear()

    def _put(self, broker: int) -> None:
        """Ask all that waits, each transactional id once."""
        chosen = list({each.transactional_id: each for each in reversed(self._waiting[broker])}.values())
        left = [each for each in self._waiting.pop(broker) if each not in chosen]
        if left:
            self._waiting[broker] = left
        address = self._address(broker)
        self._asked[broker] = chosen
        if address is None:
            self._answered(broker, OttlaError(f"nobody knows where broker {broker} is"))
            return
        if broker not in self._connections:
            self._connections[broker] = self._connect(broker)
        request = AddPartitionsToTxnRequest(transactions=[transaction_of(each) for each in chosen])
        done = lambda answer: self._answered(broker, answer)  # noqa: E731
        self._connections[broker].ask(Question(address, request, VERSION, AddPartitionsToTxnResponse, done))

    def _answered(self, broker: int, answer: AddPartitionsToTxnResponse | OttlaError) -> None:
        asked = self._asked.pop(broker, [])
        otherwise, found = told(broker, answer)
        for each in asked:
            each.answer(found.get(each.transactional_id, {}), otherwise)
        if self._waiting.get(broker) and broker not in self._asked:
            self._put(broker)


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

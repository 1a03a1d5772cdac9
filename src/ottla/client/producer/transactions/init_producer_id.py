"""Asks for a producer id, or for the next epoch of the one there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ottla.client.metadata.coordinators import TRANSACTION
from ottla.client.producer.producer_id_and_epoch import NO_PRODUCER, ProducerIdAndEpoch
from ottla.client.producer.transactions.txn_request import Learner, Priority, TxnRequest, Verdict
from ottla.errors import ErrorCode
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest

LAST_VERSION = 5
"""The next one is for transactions in two phases (KIP-939)."""
FIRST_VERSION_WITH_EPOCH = 3


class InitProducerId(TxnRequest):
    """A transactional id's coordinator answers for that id, and fences who had it; without one any broker will do."""

    NAME = "InitProducerId"
    PRIORITY = Priority.INIT_PRODUCER_ID
    OVERRIDES: ClassVar[Mapping[int, Verdict]] = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.FATAL}

    def __init__(self, transactional_id: str | None, timeout_ms: int, producer: ProducerIdAndEpoch) -> None:
        coordinator = None if transactional_id is None else (TRANSACTION, transactional_id)
        super().__init__(InitProducerIdRequest(transactional_id, timeout_ms, *producer), coordinator, LAST_VERSION)
        self.producer = producer
        """Whom the next epoch is for; NO_PRODUCER at the start."""

    @property
    def is_bump(self) -> bool:
        """Whether it is for a producer that goes on, which brokers know since 2.5."""
        return self.producer != NO_PRODUCER

    def succeed(self, answer: Any, learner: Learner) -> None:
        learner.learn_producer(ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch))

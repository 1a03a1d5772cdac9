"""Commits or aborts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ottla.client.metadata.coordinators import TRANSACTION
from ottla.client.producer.producer_id_and_epoch import ProducerIdAndEpoch
from ottla.client.producer.transactions.txn_request import Learner, Priority, TxnRequest, Verdict
from ottla.errors import ErrorCode
from ottla.protocol.messages.end_txn import EndTxnRequest

LAST_VERSION_BEFORE_V2 = 4
"""The next one answers with id and epoch of the next transaction (KIP-890)."""


class EndTxn(TxnRequest):
    """Goes out once every record of the transaction has its outcome."""

    NAME = "EndTxn"
    PRIORITY = Priority.END_TXN
    OVERRIDES: ClassVar[Mapping[int, Verdict]] = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.FATAL}

    def __init__(self, transactional_id: str, producer: ProducerIdAndEpoch, *, commit: bool, v2: bool) -> None:
        message = EndTxnRequest(transactional_id, *producer, commit)
        super().__init__(message, (TRANSACTION, transactional_id), None if v2 else LAST_VERSION_BEFORE_V2)

    def succeed(self, answer: Any, learner: Learner) -> None:
        learner.learn_end(ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch))

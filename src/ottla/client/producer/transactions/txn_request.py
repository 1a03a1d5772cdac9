"""What all requests of a transactional producer have in common, and what errors mean to them.

Pure: who sends them and when, others know.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar, Protocol

from ottla.client.producer.producer_id_and_epoch import ProducerIdAndEpoch
from ottla.client.producer.transactions.outcome import Outcome
from ottla.errors import ErrorCode
from ottla.model import FOREVER


class Verdict(IntEnum):
    """What is to be done after an error, from harmless to hopeless."""

    RETRY = 0
    REDISCOVER = 1
    """Another broker may be the coordinator now."""
    ABORT = 2
    """The transaction can only be aborted."""
    FENCED = 3
    FATAL = 4


class Priority(IntEnum):
    """Which request goes first when several wait."""

    FIND_COORDINATOR = 0
    INIT_PRODUCER_ID = 1
    ADD_PARTITIONS_OR_OFFSETS = 2
    END_TXN = 3


ERRORS: Mapping[int, Verdict] = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Verdict.RETRY,
    ErrorCode.CONCURRENT_TRANSACTIONS: Verdict.RETRY,
    ErrorCode.REQUEST_TIMED_OUT: Verdict.RETRY,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.RETRY,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Verdict.REDISCOVER,
    ErrorCode.NOT_COORDINATOR: Verdict.REDISCOVER,
    ErrorCode.NETWORK_EXCEPTION: Verdict.REDISCOVER,
    ErrorCode.TRANSACTION_ABORTABLE: Verdict.ABORT,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Verdict.ABORT,
    ErrorCode.OPERATION_NOT_ATTEMPTED: Verdict.ABORT,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Verdict.ABORT,
    ErrorCode.INVALID_GROUP_ID: Verdict.ABORT,
    ErrorCode.UNKNOWN_PRODUCER_ID: Verdict.ABORT,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Verdict.ABORT,
    ErrorCode.UNKNOWN_MEMBER_ID: Verdict.ABORT,
    ErrorCode.ILLEGAL_GENERATION: Verdict.ABORT,
    ErrorCode.STALE_MEMBER_EPOCH: Verdict.ABORT,
    ErrorCode.FENCED_INSTANCE_ID: Verdict.ABORT,
    ErrorCode.OFFSET_METADATA_TOO_LARGE: Verdict.ABORT,
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: Verdict.ABORT,
    ErrorCode.PRODUCER_FENCED: Verdict.FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH: Verdict.FENCED,
}
"""What an error means; one that is not here is fatal."""

Failure = tuple[str, int]
"""What it is about, and its error code."""


class Learner(Protocol):
    """Whom the requests tell what they have learnt."""

    def learn_coordinator(self, kind: int, key: str, node_id: int, host: str, port: int) -> None: ...
    def learn_producer(self, producer: ProducerIdAndEpoch) -> None: ...
    def learn_end(self, producer: ProducerIdAndEpoch) -> None: ...
    def learn_partitions(self, partitions: Any) -> None: ...


class TxnRequest:
    """One question, asked until there is an answer to it."""

    NAME: ClassVar[str]
    PRIORITY: ClassVar[Priority]
    JOINS: ClassVar[bool] = False
    """Whether it takes something into the transaction: once it was sent, the coordinator may have done so."""
    OVERRIDES: ClassVar[Mapping[int, Verdict]] = {}
    """Where this request takes an error otherwise than the others."""

    def __init__(self, message: Any, coordinator: tuple[int, str] | None, max_version: int | None = None) -> None:
        self.message = message
        self.coordinator = coordinator
        """Kind and key of the coordinator to ask; None where any broker will do."""
        self.max_version = max_version
        self.outcome = Outcome()
        self.attempts = 0
        self.retry_at = -FOREVER

    def failures(self, answer: Any) -> list[Failure]:
        """The errors of an answer; none when all went well."""
        return [] if answer.error_code == ErrorCode.NONE else [("", answer.error_code)]

    def succeed(self, answer: Any, learner: Learner) -> None:
        """Pass on what an answer without errors says."""

    def verdict(self, code: int) -> Verdict:
        """What an error means to this request."""
        return self.OVERRIDES.get(code, ERRORS.get(code, Verdict.FATAL))

"""Finds the broker that coordinates a transactional id, or a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ottla.client.metadata.coordinators import LAST_VERSION_WITH_ONE_KEY
from ottla.client.producer.transactions.txn_request import Learner, Priority, TxnRequest, Verdict
from ottla.errors import ErrorCode
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest


class FindCoordinator(TxnRequest):
    """Any broker knows."""

    NAME = "FindCoordinator"
    PRIORITY = Priority.FIND_COORDINATOR
    OVERRIDES: ClassVar[Mapping[int, Verdict]] = {
        ErrorCode.COORDINATOR_NOT_AVAILABLE: Verdict.RETRY,
        ErrorCode.NETWORK_EXCEPTION: Verdict.RETRY,
    }

    def __init__(self, kind: int, key: str) -> None:
        super().__init__(FindCoordinatorRequest(key=key, key_type=kind), None, LAST_VERSION_WITH_ONE_KEY)
        self.kind = kind
        self.key = key

    def succeed(self, answer: Any, learner: Learner) -> None:
        learner.learn_coordinator(self.kind, self.key, answer.node_id, answer.host, answer.port)

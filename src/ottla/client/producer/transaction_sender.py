"""Sends what the transaction manager wants to know: the shell around it, on the sender's thread.

One request at a time; records travel beside it.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.client.client_request import ClientRequest
from ottla.client.client_response import ClientResponse
from ottla.client.network_client import NetworkClient
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.client.producer.transactions.end_txn import EndTxn
from ottla.client.producer.transactions.init_producer_id import FIRST_VERSION_WITH_EPOCH, InitProducerId
from ottla.client.producer.transactions.txn_request import TxnRequest
from ottla.errors import UnsupportedVersionError
from ottla.model import Node
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest

FOREVER = float("inf")
FEATURE = "transaction.version"
IMPLICIT_SINCE = 2
"""The level of the feature from which on brokers take partitions into a transaction by themselves (KIP-890)."""


class TransactionSender:
    """Takes requests to the brokers they are for, and answers back."""

    def __init__(self, client: NetworkClient, manager: TransactionManager, request_timeout_ms: int) -> None:
        self._client = client
        self._manager = manager
        self._timeout_ms = request_timeout_ms

    def send_next(self, now: float, *, incomplete: Callable[[], bool]) -> float:
        """Send what is due; returns the seconds after which to look again.

        `incomplete` tells whether records wait for their outcome. It is asked under the lock: an answer from before it
        may be older than a transaction that was filled and given up meanwhile, whose records would go with the next.
        """
        manager = self._manager
        with manager.lock:
            manager.resolve()
            request, wait = manager.next_request(now, incomplete=incomplete)
            if request is None:
                return wait
            node = self._node_for(request, now)
            if node is None:
                # Finding the coordinator comes first now, if that is what is missing.
                request, wait = manager.next_request(now, incomplete=incomplete)
                node = self._node_for(request, now) if request is not None else None
            if node is None or request is None:
                return min(wait, 0.1) if wait else 0.1
            if not self._client.ready(node, now):
                return self._not_ready(request, node, now)
            self._send(request, node, now)
        return FOREVER

    def _node_for(self, request: TxnRequest, now: float) -> Node | None:
        if request.coordinator is not None:
            return self._manager.ensure_coordinator(request)
        if self._manager.transactional_id is None and not self._client.metadata.version:
            return None  # nobody has sent anything yet
        return self._client.least_loaded_node(now)

    def _not_ready(self, request: TxnRequest, node: Node, now: float) -> float:
        if self._client.failed(node.node_id) and request.coordinator is not None:
            self._manager.forget_coordinator(request.coordinator)  # who knows whether it comes back
        return min(self._client.delay(node.node_id, now) or FOREVER, 1.0)

    def _send(self, request: TxnRequest, node: Node, now: float) -> None:
        if isinstance(request, InitProducerId) and request.is_bump and self._is_too_old(node):
            return
        self._manager.sent(request)
        self._client.send(
            ClientRequest(
                node.node_id,
                request.message,
                now,
                self._timeout_ms,
                lambda response: self._handle(request, response),
                max_version=request.max_version,
            ),
            now,
        )

    def _is_too_old(self, node: Node) -> bool:
        """Whether the broker cannot give a producer that goes on its next epoch; then that one is finished."""
        versions = self._client.api_versions.get(node.node_id)
        newest = versions.newest(InitProducerIdRequest.KEY) if versions is not None else None
        if newest is not None and newest >= FIRST_VERSION_WITH_EPOCH:
            return False
        self._manager.fail(
            UnsupportedVersionError(f"{node} cannot bump the epoch of a producer (Kafka 2.5 can); make a new producer")
        )
        return True

    def _handle(self, request: TxnRequest, response: ClientResponse) -> None:
        manager = self._manager
        with manager.lock:
            if response.error is not None:
                manager.fail(response.error)
            elif response.disconnected or response.message is None:
                manager.lost(request, response.received)
            else:
                if isinstance(request, InitProducerId | EndTxn):
                    manager.v2 = self._is_v2(response.node_id)
                manager.answered(request, response.message, response.received)

    def _is_v2(self, node_id: int) -> bool:
        versions = self._client.api_versions.get(node_id)
        return versions is not None and versions.features.get(FEATURE, 0) >= IMPLICIT_SINCE

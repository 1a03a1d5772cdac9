"""Sends what the transaction manager wants to know: the shell around it, on the sender's thread.

One request at a time; records travel beside it.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.client.network.client_request import ClientRequest, ClientResponse
from ottla.client.network.network_client import NetworkClient
from ottla.client.producer.events import CoordinatorAnswered, CoordinatorAsked
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.client.producer.transactions.requests import FIRST_VERSION_WITH_EPOCH, InitProducerId, TxnRequest
from ottla.client.producer.transactions.transaction_machine import TransactionMachine
from ottla.errors import UnsupportedVersionError, name_of
from ottla.model import FOREVER, Node
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest

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
        try:
            with self._manager.lock:
                return self._send_due(self._manager.machine, now, incomplete)
        finally:
            self._manager.report()

    def _send_due(self, machine: TransactionMachine, now: float, incomplete: Callable[[], bool]) -> float:
        machine.resolve()
        request, wait = machine.next_request(now, incomplete=incomplete)
        if request is None:
            return wait
        node = self._node_for(machine, request, now)
        if node is None:
            # Finding the coordinator comes first now, if that is what is missing.
            request, wait = machine.next_request(now, incomplete=incomplete)
            node = self._node_for(machine, request, now) if request is not None else None
        if node is None or request is None:
            return min(wait, 0.1) if wait else 0.1
        if not self._client.ready(node, now):
            return self._not_ready(machine, request, node, now)
        self._send(machine, request, node, now)
        return FOREVER

    def _node_for(self, machine: TransactionMachine, request: TxnRequest, now: float) -> Node | None:
        if request.coordinator is not None:
            return machine.requests.coordinator_of(request)
        if machine.transactional_id is None and not self._client.metadata.version:
            return None  # nobody has sent anything yet
        return self._client.least_loaded_node(now)

    def _not_ready(self, machine: TransactionMachine, request: TxnRequest, node: Node, now: float) -> float:
        if self._client.failed(node.node_id):
            machine.requests.forget_coordinator(request)  # who knows whether it comes back
        return min(self._client.delay(node.node_id, now) or FOREVER, 1.0)

    def _send(self, machine: TransactionMachine, request: TxnRequest, node: Node, now: float) -> None:
        if isinstance(request, InitProducerId) and request.is_bump and not self._can_bump(node):
            text = f"{node} cannot bump the epoch of a producer (Kafka 2.5 can); make a new producer"
            machine.fail(UnsupportedVersionError(text))
            return
        machine.sent(request)
        if self._manager.events.active:
            self._manager.events.tell(CoordinatorAsked(request.NAME, node.node_id))
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

    def _can_bump(self, node: Node) -> bool:
        """Whether the broker can give a producer that goes on its next epoch; without it that one is finished."""
        versions = self._client.api_versions.get(node.node_id)
        newest = versions.newest(InitProducerIdRequest.KEY) if versions is not None else None
        return newest is not None and newest >= FIRST_VERSION_WITH_EPOCH

    def _handle(self, request: TxnRequest, response: ClientResponse) -> None:
        if self._manager.events.active:
            self._manager.events.tell(CoordinatorAnswered(request.NAME, error_in(request, response)))
        machine = self._manager.machine
        with self._manager.lock:
            if response.error is not None:
                machine.fail(response.error)
            elif response.disconnected or response.message is None:
                machine.lost(request, response.received)
            else:
                machine.answered(request, response.message, response.received, v2=self._is_v2(response.node_id))
        self._manager.report()

    def _is_v2(self, node_id: int) -> bool:
        versions = self._client.api_versions.get(node_id)
        return versions is not None and versions.features.get(FEATURE, 0) >= IMPLICIT_SINCE


def error_in(request: TxnRequest, response: ClientResponse) -> str:
    """What is wrong with an answer, or that there is none; nothing when all is well."""
    if response.message is None:
        return str(response.error or response.reason)
    return ", ".join(name_of(code) for _, code in request.failures(response.message))

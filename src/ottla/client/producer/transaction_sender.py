"""Send the requests of the transaction manager, on the sender thread.

One request is in flight at a time, independent of Produce requests.
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
"""The level of the feature `transaction.version` from which on brokers add partitions to a transaction by themselves
(KIP-890).
"""


class TransactionSender:
    """Sends requests to their brokers, and passes the responses to the machine."""

    def __init__(self, client: NetworkClient, manager: TransactionManager, request_timeout_ms: int) -> None:
        self._client = client
        self._manager = manager
        self._timeout_ms = request_timeout_ms

    def send_next_request(self, now: float, *, incomplete: Callable[[], bool]) -> float:
        """Send the due request. Return the seconds until the next call.

        `incomplete` returns True while records have no result. It is called under the lock: an earlier result may be
        outdated by a transaction that was filled and aborted meanwhile, with records that would be ended with the next
        one.
        """
        try:
            with self._manager.lock:
                return self._send_due_request(self._manager.machine, now, incomplete)
        finally:
            self._manager.report_changes()

    def _send_due_request(self, machine: TransactionMachine, now: float, incomplete: Callable[[], bool]) -> float:
        machine.resolve_failed_batches()
        request, wait = machine.next_request(now, incomplete=incomplete)
        if request is None:
            return wait
        node = self._find_node(machine, request, now)
        if node is None:
            # Looking up the coordinator may come first now.
            request, wait = machine.next_request(now, incomplete=incomplete)
            node = self._find_node(machine, request, now) if request is not None else None
        if node is None or request is None:
            return min(wait, 0.1) if wait else 0.1
        if not self._client.ready(node, now):
            return self._handle_unready_node(machine, request, node, now)
        self._send(machine, request, node, now)
        return FOREVER

    def _find_node(self, machine: TransactionMachine, request: TxnRequest, now: float) -> Node | None:
        if request.coordinator is not None:
            return machine.requests.find_coordinator(request)
        if machine.transactional_id is None and not self._client.metadata.version:
            return None  # nothing was sent yet
        return self._client.least_loaded_node(now)

    def _handle_unready_node(self, machine: TransactionMachine, request: TxnRequest, node: Node, now: float) -> float:
        if self._client.has_failed_login(node.node_id):
            machine.requests.forget_coordinator(request)  # the coordinator may not return
        return min(self._client.connection_delay(node.node_id, now) or FOREVER, 1.0)

    def _send(self, machine: TransactionMachine, request: TxnRequest, node: Node, now: float) -> None:
        if isinstance(request, InitProducerId) and request.is_bump and not self._can_bump(node):
            text = f"{node} cannot bump a producer epoch (requires Kafka 2.5); create a new producer"
            machine.fail(UnsupportedVersionError(text))
            return
        machine.record_sent(request)
        if self._manager.events.active:
            self._manager.events.publish(CoordinatorAsked(request.NAME, node.node_id))
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
        """Return True if the broker can bump the epoch of a producer; otherwise the producer cannot continue."""
        versions = self._client.api_versions.get(node.node_id)
        newest = versions.newest_version(InitProducerIdRequest.KEY) if versions is not None else None
        return newest is not None and newest >= FIRST_VERSION_WITH_EPOCH

    def _handle(self, request: TxnRequest, response: ClientResponse) -> None:
        if self._manager.events.active:
            self._manager.events.publish(CoordinatorAnswered(request.NAME, find_error(request, response)))
        machine = self._manager.machine
        with self._manager.lock:
            if response.error is not None:
                machine.fail(response.error)
            elif response.disconnected or response.message is None:
                machine.handle_disconnect(request, response.received)
            else:
                machine.handle_response(request, response.message, response.received, v2=self._is_v2(response.node_id))
        self._manager.report_changes()

    def _is_v2(self, node_id: int) -> bool:
        versions = self._client.api_versions.get(node_id)
        return versions is not None and versions.features.get(FEATURE, 0) >= IMPLICIT_SINCE


def find_error(request: TxnRequest, response: ClientResponse) -> str:
    """Return the error of a response, or the reason for a missing one; "" on success."""
    if response.message is None:
        return str(response.error or response.reason)
    return ", ".join(name_of(code) for _, code in request.find_failures(response.message))

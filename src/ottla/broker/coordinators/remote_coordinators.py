"""Verifies with the transaction coordinator that partitions led by this broker are part of a transaction (KIP-890).

    produce ──► partitions not known to be in the transaction ──► AddPartitionsToTxn ──► a code per partition ──► the produce continues

Apache Kafka's counterpart is AddPartitionsToTxnManager. One request per broker is in flight; verifications that arrive meanwhile are sent
together in the next. Clients of `transaction.version` 2 rely on this broker to add the partition; for older clients it is only verified.

The transaction may end in this partition between the coordinator's response and the append. The batch would then start another
transaction that is never ended. So a positive result is void if a marker of the producer was appended to the partition since the
verification began; the producer receives a retriable error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field

from ottla.broker.peers.batched_requests import BatchedRequests, Form
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
"""The version of AddPartitionsToTxn; versions below 4 are for clients."""
VerificationCodes = dict[TopicPartition, int]
"""The error code of each partition."""


class Verification(Struct, eq=False):
    """The partitions of one produce request to be verified for one producer's transaction."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: frozenset[TopicPartition]
    verify_only: bool
    """True if the client adds the partitions to the transaction itself."""
    on_done: Callable[[VerificationCodes], None]
    ended: set[TopicPartition] = field(default_factory=set)
    """Partitions to which a marker was appended meanwhile."""

    def complete(self, codes: VerificationCodes, default: int) -> None:
        """Report the codes; partitions without one get `default`."""
        void = dict.fromkeys(self.ended, int(ErrorCode.CONCURRENT_TRANSACTIONS))
        self.on_done({each: int(codes.get(each, default)) for each in self.partitions} | void)


class RemoteCoordinators:
    """The transaction coordinators of a cluster, including this broker's own. Belongs to the event loop."""

    def __init__(
        self,
        coordinator_of: Callable[[str], int],
        address: Callable[[int], Address | None],
        connect: Callable[[int], PeerConnection],
        node_id: int,
        verify_locally: Callable[[Verification, Callable[[VerificationCodes, int], None]], None],
    ) -> None:
        """`coordinator_of` returns the broker that coordinates a transactional id, -1 if there is none.

        `verify_locally` has this broker's own coordinator verify, and calls back later with the codes and the default code.
        """
        self._coordinator_of = coordinator_of
        self._address = address
        self._node_id = node_id
        self._verify_locally = verify_locally
        self._local: list[Verification] = []
        self._requests: BatchedRequests[Verification] = BatchedRequests(
            address, connect, choose_verifications, build_request, handle_response
        )

    def verify(self, verification: Verification) -> bool:
        """Start a verification; it completes after this call. Return False if no coordinator is known."""
        broker = self._coordinator_of(verification.transactional_id)
        if broker == self._node_id:
            self._local.append(verification)
            self._verify_locally(
                verification, lambda codes, default: self._complete_local(verification, codes, default)
            )
            return True
        if broker == -1 or self._address(broker) is None:
            return False
        self._requests.add(broker, verification)
        return True

    def marker_written(self, partition: TopicPartition, producer_id: int) -> None:
        """Void the pending verifications of this producer for a partition to which a marker was appended."""
        for each in (*self._local, *self._requests):
            if each.producer_id == producer_id and partition in each.partitions:
                each.ended.add(partition)

    def handle_new_metadata(self) -> None:
        """Fail the verifications that were sent to a broker which no longer is the coordinator; it may be disconnected."""
        for each in self._requests.withdraw(
            lambda broker, pending: self._coordinator_of(pending.transactional_id) != broker
        ):
            each.complete({}, ErrorCode.NETWORK_EXCEPTION)

    def close(self) -> None:
        self._local.clear()
        self._requests.close()

    def _complete_local(self, verification: Verification, codes: VerificationCodes, default: int) -> None:
        if verification in self._local:
            self._local.remove(verification)
            verification.complete(codes, default)


def choose_verifications(waiting: Sequence[Verification]) -> list[Verification]:
    """Return the verifications for the next request: the first of each transactional id."""
    return list({each.transactional_id: each for each in reversed(waiting)}.values())


def build_request(verifications: list[Verification]) -> Form:
    request = AddPartitionsToTxnRequest(transactions=[build_transaction(each) for each in verifications])
    return Form(request, VERSION, AddPartitionsToTxnResponse)


def handle_response(
    broker: int, verifications: list[Verification], response: AddPartitionsToTxnResponse | OttlaError
) -> None:
    default, found = parse_response(broker, response)
    for each in verifications:
        each.complete(found.get(each.transactional_id, {}), default)


def parse_response(
    broker: int, response: AddPartitionsToTxnResponse | OttlaError
) -> tuple[int, dict[str, VerificationCodes]]:
    """Return the default code, and the codes by transactional id."""
    if isinstance(response, OttlaError):
        log.warning("AddPartitionsToTxn failed broker=%d error=%s", broker, response)
        return ErrorCode.NETWORK_EXCEPTION, {}
    if response.error_code:
        log.warning("AddPartitionsToTxn failed broker=%d error=%s", broker, name_of(response.error_code))
        return response.error_code, {}
    return ErrorCode.NETWORK_EXCEPTION, {
        each.transactional_id: codes_by_partition(each) for each in response.results_by_transaction
    }


def codes_by_partition(result: AddPartitionsToTxnResult) -> VerificationCodes:
    return {
        TopicPartition(topic.name, each.partition_index): each.partition_error_code
        for topic in result.topic_results
        for each in topic.results_by_partition
    }


def build_transaction(verification: Verification) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        verification.transactional_id,
        verification.producer_id,
        verification.epoch,
        verification.verify_only,
        by_topic(verification.partitions),
    )


def by_topic(partitions: Iterable[TopicPartition]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, list[int]] = {}
    for name, index in sorted(partitions):
        topics.setdefault(name, []).append(index)
    return [AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()]

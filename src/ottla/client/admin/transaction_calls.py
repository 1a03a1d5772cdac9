"""List, describe and abort transactions, and fence producers (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, AdminQuery, Lookup, lookup_each_broker, raise_first
from ottla.client.admin.coordinators import coordinator_lookup
from ottla.client.admin.group_offset_calls import group_by_topic
from ottla.client.admin.leaders import leader_lookup
from ottla.client.admin.topic_calls import TopicCalls
from ottla.client.admin.transaction import (
    AbortTransactionSpec,
    ProducerIdAndEpoch,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from ottla.client.interface.arguments import (
    LAST_PARTITION,
    checked_broker,
    checked_list,
    checked_partition,
    checked_partitions,
    checked_text,
    checked_texts,
    checked_whole,
)
from ottla.client.metadata.coordinators import TRANSACTION
from ottla.client.runtime.deadline import Deadline
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import Node, TopicPartition
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


class TransactionCalls:
    """Implements the transaction methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver, topics: TopicCalls) -> None:
        self._driver = driver
        self._topics = topics
        self._coordinators = coordinator_lookup(TRANSACTION)

    def list_transactions(
        self,
        states: Iterable[str],
        producer_ids: Iterable[int],
        longer_than_ms: int,
        pattern: str | None,
        timeout: float | None,
    ) -> list[TransactionListing]:
        ids = checked_list("producer_ids", producer_ids, "[4711]")
        request = ListTransactionsRequest(
            checked_texts("states", states, "Ongoing"),
            [checked_whole("producer_ids", each, "numbers of producers") for each in ids],
            checked_whole("longer_than_ms", longer_than_ms, "milliseconds, -1 for any", first=-1),
            None if pattern is None else checked_text("transactional_id_pattern", pattern, "flights-.*"),
        )
        found = self._driver.query_each_broker(request, partial(read_listing, pattern), timeout)
        return sorted(listing for listings in found.values() for listing in listings)

    def describe_transactions(
        self, transactional_ids: Iterable[str], timeout: float | None
    ) -> dict[str, TransactionDescription]:
        requested = list(dict.fromkeys(checked_texts("transactional_ids", transactional_ids, "flights")))
        nodes: dict[str, Node] = {}

        def lookup(driver: AdminApiDriver, keys: list[str], deadline: Deadline) -> Mapping[str, Node | KafkaError]:
            located = self._coordinators(driver, keys, deadline)
            nodes.update({key: node for key, node in located.items() if isinstance(node, Node)})
            return located

        query: AdminQuery[str, TransactionDescription] = AdminQuery(
            lookup, lambda keys: DescribeTransactionsRequest(keys), partial(read_descriptions, nodes)
        )
        found, failed = self._driver.run_query(query, requested, timeout)
        raise_first(failed)
        return {each: found[each] for each in requested}

    def describe_producers(
        self, partitions: Iterable[TopicPartition], broker_id: int | None, timeout: float | None
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        requested = checked_partitions(partitions)
        if broker_id is not None:
            checked_broker(broker_id)
        query: AdminQuery[TopicPartition, tuple[ProducerState, ...]] = AdminQuery(
            leader_lookup(self._topics.metadata, requested) if broker_id is None else lookup_at_broker(broker_id),
            lambda keys: DescribeProducersRequest([TopicRequest(*each) for each in group_by_topic(keys).items()]),
            read_producers,
        )
        found, failed = self._driver.run_query(query, requested, timeout)
        raise_first(failed)
        return {each: found[each] for each in requested}

    def fence_producers(self, transactional_ids: Iterable[str], timeout: float | None) -> dict[str, ProducerIdAndEpoch]:
        requested = list(dict.fromkeys(checked_texts("transactional_ids", transactional_ids, "flights")))
        query: AdminQuery[str, ProducerIdAndEpoch] = AdminQuery(
            self._coordinators,
            lambda keys: InitProducerIdRequest(keys[0], self._driver.timeout_ms(timeout)),
            read_fenced,
            can_batch=False,
        )
        found, failed = self._driver.run_query(query, requested, timeout)
        raise_first(failed)
        return {each: found[each] for each in requested}

    def abort_transaction(self, spec: AbortTransactionSpec, timeout: float | None) -> None:
        if not isinstance(spec, AbortTransactionSpec):
            raise TypeError(
                f"spec = {spec!r}: must be an AbortTransactionSpec, filled from the result of describe_producers()"
            )
        tp = checked_partition(spec.topic_partition)
        marker = WritableTxnMarker(
            producer_id=checked_whole("producer_id", spec.producer_id, "the number of a producer"),
            producer_epoch=checked_whole("producer_epoch", spec.producer_epoch, "its epoch", 2**15 - 1),
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(tp.topic, [tp.partition])],
            coordinator_epoch=checked_whole(
                "coordinator_epoch", spec.coordinator_epoch, "the epoch of its coordinator, or -1", LAST_PARTITION, -1
            ),
        )
        query: AdminQuery[TopicPartition, bool] = AdminQuery(
            leader_lookup(self._topics.metadata, [tp]), lambda _: WriteTxnMarkersRequest([marker]), read_markers
        )
        _, failed = self._driver.run_query(query, [tp], timeout)
        raise_first(failed)


def lookup_at_broker(broker_id: int) -> Lookup[TopicPartition]:
    """Return a lookup that sends all keys to one broker."""

    def lookup(
        driver: AdminApiDriver, keys: list[TopicPartition], deadline: Deadline
    ) -> Mapping[TopicPartition, Node | KafkaError]:
        return dict.fromkeys(keys, lookup_each_broker(driver, [broker_id], deadline)[broker_id])

    return lookup


def read_listing(
    pattern: str | None, brokers: list[int], response: Any
) -> Mapping[int, list[TransactionListing] | KafkaError]:
    """Return the transactional ids of one broker."""
    (broker,) = brokers
    if response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION:
        return {
            broker: error_for(
                response.error_code, f"transactional_id_pattern = {pattern!r}: write it in the syntax of RE2"
            )
        }
    if response.error_code:
        return {broker: error_for(response.error_code, f"the transactions of broker {broker}")}
    if response.unknown_state_filters:
        unknown = ", ".join(map(repr, response.unknown_state_filters))
        return {broker: error_for(ErrorCode.INVALID_REQUEST, f"broker {broker} knows no state {unknown}")}
    return {
        broker: [
            TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, broker)
            for each in response.transaction_states
        ]
    }


def read_descriptions(
    nodes: Mapping[str, Node], ids: list[str], response: Any
) -> Mapping[str, TransactionDescription | KafkaError]:
    """Return the state of each transactional id."""
    return {each.transactional_id: parse_description(nodes, each) for each in response.transaction_states}


def parse_description(nodes: Mapping[str, Node], response: Any) -> TransactionDescription | KafkaError:
    if response.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return error_for(response.error_code, f"there is no transactional id {response.transactional_id!r}")
    if response.error_code:
        return error_for(response.error_code, f"transactional id {response.transactional_id!r}")
    return TransactionDescription(
        response.transactional_id,
        nodes[response.transactional_id].node_id,
        response.transaction_state,
        response.producer_id,
        response.producer_epoch,
        response.transaction_timeout_ms,
        response.transaction_start_time_ms if response.transaction_start_time_ms >= 0 else None,
        tuple(sorted(TopicPartition(each.topic, number) for each in response.topics for number in each.partitions)),
    )


def read_producers(
    partitions: list[TopicPartition], response: Any
) -> Mapping[TopicPartition, tuple[ProducerState, ...] | KafkaError]:
    """Return the producers of each partition."""
    return {
        TopicPartition(topic.name, part.partition_index): parse_producers(
            TopicPartition(topic.name, part.partition_index), part
        )
        for topic in response.topics
        for part in topic.partitions
    }


def parse_producers(tp: TopicPartition, response: Any) -> tuple[ProducerState, ...] | KafkaError:
    if response.error_code:
        return error_for(response.error_code, response.error_message or f"partition {tp}")
    return tuple(
        ProducerState(
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.coordinator_epoch,
            each.current_txn_start_offset if each.current_txn_start_offset >= 0 else None,
        )
        for each in response.active_producers
    )


def read_markers(partitions: list[TopicPartition], response: Any) -> Mapping[TopicPartition, bool | KafkaError]:
    """Return True for each partition in which the marker was written, else its error."""
    codes = {
        TopicPartition(topic.name, part.partition_index): part.error_code
        for marker in response.markers
        for topic in marker.topics
        for part in topic.partitions
    }
    return {tp: error_for(code, f"the transaction in {tp}") if code else True for tp, code in codes.items()}


def read_fenced(keys: list[str], response: Any) -> Mapping[str, ProducerIdAndEpoch | KafkaError]:
    """Return the producer id and epoch that the call has allocated to fence the producer."""
    (key,) = keys
    if response.error_code:
        return {key: error_for(response.error_code, f"transactional id {key!r}")}
    return {key: ProducerIdAndEpoch(response.producer_id, response.producer_epoch)}

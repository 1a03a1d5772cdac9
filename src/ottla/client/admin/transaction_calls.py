"""Transactions and producers: listed, described, ended (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, Lookup, Question, each_broker, raise_first
from ottla.client.admin.coordinators import coordinators
from ottla.client.admin.group_offset_calls import by_topic
from ottla.client.admin.leaders import leaders
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
    """What an admin does with transactions; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver, topics: TopicCalls) -> None:
        self._driver = driver
        self._topics = topics
        self._coordinators = coordinators(TRANSACTION)

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
        found = self._driver.ask_each_broker(request, partial(read_listing, pattern), timeout)
        return sorted(listing for listings in found.values() for listing in listings)

    def describe_transactions(
        self, transactional_ids: Iterable[str], timeout: float | None
    ) -> dict[str, TransactionDescription]:
        asked = list(dict.fromkeys(checked_texts("transactional_ids", transactional_ids, "flights")))
        where: dict[str, Node] = {}

        def lookup(driver: AdminApiDriver, keys: list[str], deadline: Deadline) -> Mapping[str, Node | KafkaError]:
            located = self._coordinators(driver, keys, deadline)
            where.update({key: node for key, node in located.items() if isinstance(node, Node)})
            return located

        question: Question[str, TransactionDescription] = Question(
            lookup, lambda keys: DescribeTransactionsRequest(keys), partial(read_descriptions, where)
        )
        found, failed = self._driver.ask(question, asked, timeout)
        raise_first(failed)
        return {each: found[each] for each in asked}

    def describe_producers(
        self, partitions: Iterable[TopicPartition], broker_id: int | None, timeout: float | None
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        asked = checked_partitions(partitions)
        if broker_id is not None:
            checked_broker(broker_id)
        question: Question[TopicPartition, tuple[ProducerState, ...]] = Question(
            leaders(self._topics.metadata, asked) if broker_id is None else at_broker(broker_id),
            lambda keys: DescribeProducersRequest([TopicRequest(*each) for each in by_topic(keys).items()]),
            read_producers,
        )
        found, failed = self._driver.ask(question, asked, timeout)
        raise_first(failed)
        return {each: found[each] for each in asked}

    def fence_producers(self, transactional_ids: Iterable[str], timeout: float | None) -> dict[str, ProducerIdAndEpoch]:
        asked = list(dict.fromkeys(checked_texts("transactional_ids", transactional_ids, "flights")))
        question: Question[str, ProducerIdAndEpoch] = Question(
            self._coordinators,
            lambda keys: InitProducerIdRequest(keys[0], self._driver.timeout_ms(timeout)),
            read_fenced,
            together=False,
        )
        found, failed = self._driver.ask(question, asked, timeout)
        raise_first(failed)
        return {each: found[each] for each in asked}

    def abort_transaction(self, spec: AbortTransactionSpec, timeout: float | None) -> None:
        if not isinstance(spec, AbortTransactionSpec):
            raise TypeError(f"spec = {spec!r}: must be an AbortTransactionSpec, of what describe_producers() tells")
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
        question: Question[TopicPartition, bool] = Question(
            leaders(self._topics.metadata, [tp]), lambda _: WriteTxnMarkersRequest([marker]), read_markers
        )
        _, failed = self._driver.ask(question, [tp], timeout)
        raise_first(failed)


def at_broker(broker_id: int) -> Lookup[TopicPartition]:
    """A lookup that sends everything to one broker."""

    def lookup(
        driver: AdminApiDriver, keys: list[TopicPartition], deadline: Deadline
    ) -> Mapping[TopicPartition, Node | KafkaError]:
        return dict.fromkeys(keys, each_broker(driver, [broker_id], deadline)[broker_id])

    return lookup


def read_listing(
    pattern: str | None, brokers: list[int], answer: Any
) -> Mapping[int, list[TransactionListing] | KafkaError]:
    """The transactional ids of one broker."""
    (broker,) = brokers
    if answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION:
        return {broker: error_for(answer.error_code, f"transactional_id_pattern = {pattern!r}: write it as RE2 has it")}
    if answer.error_code:
        return {broker: error_for(answer.error_code, f"the transactions of broker {broker}")}
    if answer.unknown_state_filters:
        unknown = ", ".join(map(repr, answer.unknown_state_filters))
        return {broker: error_for(ErrorCode.INVALID_REQUEST, f"broker {broker} knows no state {unknown}")}
    return {
        broker: [
            TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, broker)
            for each in answer.transaction_states
        ]
    }


def read_descriptions(
    where: Mapping[str, Node], ids: list[str], answer: Any
) -> Mapping[str, TransactionDescription | KafkaError]:
    """How each transactional id stands."""
    return {each.transactional_id: described(where, each) for each in answer.transaction_states}


def described(where: Mapping[str, Node], answer: Any) -> TransactionDescription | KafkaError:
    if answer.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return error_for(answer.error_code, f"there is no transactional id {answer.transactional_id!r}")
    if answer.error_code:
        return error_for(answer.error_code, f"transactional id {answer.transactional_id!r}")
    return TransactionDescription(
        answer.transactional_id,
        where[answer.transactional_id].node_id,
        answer.transaction_state,
        answer.producer_id,
        answer.producer_epoch,
        answer.transaction_timeout_ms,
        answer.transaction_start_time_ms if answer.transaction_start_time_ms >= 0 else None,
        tuple(sorted(TopicPartition(each.topic, number) for each in answer.topics for number in each.partitions)),
    )


def read_producers(
    partitions: list[TopicPartition], answer: Any
) -> Mapping[TopicPartition, tuple[ProducerState, ...] | KafkaError]:
    """The producers of each partition."""
    return {
        TopicPartition(topic.name, part.partition_index): producers_of(
            TopicPartition(topic.name, part.partition_index), part
        )
        for topic in answer.topics
        for part in topic.partitions
    }


def producers_of(tp: TopicPartition, answer: Any) -> tuple[ProducerState, ...] | KafkaError:
    if answer.error_code:
        return error_for(answer.error_code, answer.error_message or f"partition {tp}")
    return tuple(
        ProducerState(
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.coordinator_epoch,
            each.current_txn_start_offset if each.current_txn_start_offset >= 0 else None,
        )
        for each in answer.active_producers
    )


def read_markers(partitions: list[TopicPartition], answer: Any) -> Mapping[TopicPartition, bool | KafkaError]:
    """Whether the marker was written."""
    codes = {
        TopicPartition(topic.name, part.partition_index): part.error_code
        for marker in answer.markers
        for topic in marker.topics
        for part in topic.partitions
    }
    return {tp: error_for(code, f"the transaction in {tp}") if code else True for tp, code in codes.items()}


def read_fenced(keys: list[str], answer: Any) -> Mapping[str, ProducerIdAndEpoch | KafkaError]:
    """What the next producer's identity would have been."""
    (key,) = keys
    if answer.error_code:
        return {key: error_for(answer.error_code, f"transactional id {key!r}")}
    return {key: ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)}

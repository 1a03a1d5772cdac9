"""Create, delete, list and describe topics, and look up offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, AdminQuery, lookup_controller, raise_first
from ottla.client.admin.topic import NewTopic, TopicDescription, TopicListing
from ottla.client.consumer.topic_metadata_fetcher import TopicMetadataFetcher
from ottla.client.interface.arguments import (
    LAST_OFFSET,
    checked_broker,
    checked_dict,
    checked_flag,
    checked_list,
    checked_number,
    checked_partition,
    checked_text,
    checked_topic,
    checked_topics,
    checked_whole,
)
from ottla.client.metadata.metadata_snapshot import KnownTopic
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import OffsetAndTimestamp, TopicPartition
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

if TYPE_CHECKING:
    from ottla.client.consumer.offsets.offset_fetcher import OffsetFetcher

TIME = "milliseconds since 1970, or a special timestamp of Kafka below 0"
EARLIEST_SPECIAL = -6
"""The lowest special timestamp."""
TIMES = "{TopicPartition('flights', 0): 1767225600000}"
INT32, INT16 = (2**31 - 1, -(2**31)), (2**15 - 1, -(2**15))
"""The ranges of the protocol's types; the broker checks whether a value makes sense."""


class TopicCalls:
    """Implements the topic methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver
        self.metadata = TopicMetadataFetcher(driver.client, driver.backoff, allow_auto_topic_creation=False)

    @cached_property
    def _offsets(self) -> OffsetFetcher:
        from ottla.client.consumer.offsets.offset_fetcher import OffsetFetcher
        from ottla.client.consumer.subscription_state import SubscriptionState

        driver = self._driver
        timeout_ms = driver.config.request_timeout_ms
        return OffsetFetcher(driver.client, SubscriptionState(None), driver.backoff, request_timeout_ms=timeout_ms)

    def create_topics(self, topics: Iterable[NewTopic], timeout: float | None, *, validate_only: bool) -> None:
        wanted = {topic.name: encode_new_topic(topic) for topic in checked_new_topics(topics)}
        checked_flag("validate_only", validate_only)
        self._change(
            list(wanted),
            lambda names: CreateTopicsRequest(
                topics=[wanted[name] for name in names],
                timeout_ms=self._driver.timeout_ms(timeout),
                validate_only=validate_only,
            ),
            lambda message: message.topics,
            timeout,
        )

    def delete_topics(self, names: Iterable[str], timeout: float | None) -> None:
        self._change(
            checked_topics(names),
            lambda remaining: DeleteTopicsRequest(
                topics=[DeleteTopicState(name=name) for name in remaining],
                topic_names=remaining,
                timeout_ms=self._driver.timeout_ms(timeout),
            ),
            lambda message: message.responses,
            timeout,
        )

    def list_topics(self, timeout: float | None, *, internal: bool) -> dict[str, TopicListing]:
        checked_flag("internal", internal)
        return {
            name: TopicListing(name, info.topic_id, info.internal)
            for name, info in sorted(self.fetch(None, timeout).items())
            if internal or not info.internal
        }

    def describe_topics(self, names: Iterable[str] | None, timeout: float | None) -> dict[str, TopicDescription]:
        if names is None:
            return {name: TopicDescription(*info) for name, info in sorted(self.fetch(None, timeout).items())}
        wanted = list(dict.fromkeys(checked_topics(names)))
        found = self.fetch(wanted, timeout)
        missing = [name for name in wanted if name not in found]
        if missing:
            names_of_missing = ", ".join(map(repr, missing))
            raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {names_of_missing}")
        return {name: TopicDescription(*found[name]) for name in wanted}

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        requested = {
            checked_partition(tp): checked_whole(f"the time for {tp}", time, TIME, LAST_OFFSET, EARLIEST_SPECIAL)
            for tp, time in checked_dict("timestamps", timestamps, TIMES).items()
        }
        with self._driver.hold_lock():
            return self._driver.client.run(
                self._offsets.fetch_offsets(requested, self._driver.timeout_seconds(timeout))
            )

    def fetch(self, names: list[str] | None, timeout: float | None) -> dict[str, KnownTopic]:
        """Return the existing topics of these names, or all."""
        with self._driver.hold_lock():
            return self._driver.client.run(self.metadata.fetch_topics(names, self._driver.timeout_seconds(timeout)))

    def _change(
        self,
        names: list[str],
        request: Callable[[list[str]], Any],
        results: Callable[[Any], Iterable[Any]],
        timeout: float | None,
    ) -> None:
        """Send a request that changes topics to the controller."""

        def read(_: list[str], message: Any) -> dict[str, KafkaError | bool]:
            return {each.name: result_error(each) for each in results(message)}

        query: AdminQuery[str, bool] = AdminQuery(lookup_controller, request, read)
        _, failed = self._driver.run_query(query, names, timeout)
        raise_first({name: failed[name] for name in names if name in failed})


def result_error(response: Any) -> KafkaError | bool:
    """Return the error of one topic, or True."""
    if not response.error_code:
        return True
    if response.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # Kafka's message does not name the topic
        return error_for(response.error_code, f"there is no topic {response.name!r}")
    return error_for(response.error_code, response.error_message or f"topic {response.name!r}")


def checked_new_topics(topics: Iterable[Any]) -> list[NewTopic]:
    """Return the topics to create. A mere name lacks the number of partitions, and a single topic is not a list."""
    if isinstance(topics, NewTopic | str):
        raise TypeError(f"{topics!r} is not a list of topics: write [NewTopic('flights', num_partitions=6)]")
    wanted = checked_list("topics", topics, "[NewTopic('flights', num_partitions=6)]")
    for topic in wanted:
        if not isinstance(topic, NewTopic):
            raise TypeError(f"{topic!r} is not a NewTopic: write NewTopic('flights', num_partitions=6)")
        checked_topic(topic.name)
        checked_whole(f"num_partitions of {topic.name!r}", topic.num_partitions, "a number, -1 for the default", *INT32)
        checked_whole(
            f"replication_factor of {topic.name!r}", topic.replication_factor, "a number, -1 for the default", *INT16
        )
    return wanted


def encode_new_topic(topic: NewTopic) -> CreatableTopic:
    """Return a new topic in the form of the protocol."""
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.replica_assignments else topic.num_partitions,
        replication_factor=-1 if topic.replica_assignments else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(
                partition_index=checked_number(index),
                broker_ids=[checked_broker(each) for each in checked_list("brokers", brokers, "(1, 2)")],
            )
            for index, brokers in checked_dict("replica_assignments", topic.replica_assignments, "{0: (1, 2)}").items()
        ],
        configs=[
            CreatableTopicConfig(name=checked_text("the name of a config", name, "retention.ms"), value=str(value))
            for name, value in checked_dict("configs", topic.configs, "{'retention.ms': '3600000'}").items()
        ],
    )

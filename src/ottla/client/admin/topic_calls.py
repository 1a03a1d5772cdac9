"""Topics: made, deleted, listed, described, and their offsets looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, Question, controller, raise_first
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
from ottla.client.metadata.cluster import TopicInfo
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

TIME = "milliseconds since the epoch, or one of Kafka's numbers below 0"
EARLIEST_SPECIAL = -6
"""The lowest of the numbers that mean an end of the log instead of a time."""
TIMES = "{TopicPartition('flights', 0): 1767225600000}"
INT32, INT16 = (2**31 - 1, -(2**31)), (2**15 - 1, -(2**15))
"""What the protocol has room for; which numbers make sense the broker says."""


class TopicCalls:
    """What an admin does with topics; `Admin` has the same names and says what they do."""

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
        wanted = {topic.name: creatable(topic) for topic in checked_new_topics(topics)}
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
            lambda left: DeleteTopicsRequest(
                topics=[DeleteTopicState(name=name) for name in left],
                topic_names=left,
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
        asked = {
            checked_partition(tp): checked_whole(f"the time for {tp}", time, TIME, LAST_OFFSET, EARLIEST_SPECIAL)
            for tp, time in checked_dict("timestamps", timestamps, TIMES).items()
        }
        with self._driver.turn():
            return self._driver.client.run(self._offsets.fetch_offsets(asked, self._driver.span(timeout)))

    def fetch(self, names: list[str] | None, timeout: float | None) -> dict[str, TopicInfo]:
        """The named topics that there are, or all."""
        with self._driver.turn():
            return self._driver.client.run(self.metadata.topics(names, self._driver.span(timeout)))

    def _change(
        self,
        names: list[str],
        request: Callable[[list[str]], Any],
        results: Callable[[Any], Iterable[Any]],
        timeout: float | None,
    ) -> None:
        """Have the controller change topics."""

        def read(_: list[str], message: Any) -> dict[str, KafkaError | bool]:
            return {each.name: outcome(each) for each in results(message)}

        question: Question[str, bool] = Question(controller, request, read)
        _, failed = self._driver.ask(question, names, timeout)
        raise_first({name: failed[name] for name in names if name in failed})


def outcome(answer: Any) -> KafkaError | bool:
    """What became of one topic."""
    if not answer.error_code:
        return True
    if answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # Kafka's own words for it leave out which
        return error_for(answer.error_code, f"there is no topic {answer.name!r}")
    return error_for(answer.error_code, answer.error_message or f"topic {answer.name!r}")


def checked_new_topics(topics: Iterable[Any]) -> list[NewTopic]:
    """What to create; a mere name lacks its partitions, and one topic alone is no list."""
    if isinstance(topics, NewTopic | str):
        raise TypeError(f"{topics!r} is no list of topics: write [NewTopic('flights', num_partitions=6)]")
    wanted = checked_list("topics", topics, "[NewTopic('flights', num_partitions=6)]")
    for topic in wanted:
        if not isinstance(topic, NewTopic):
            raise TypeError(f"{topic!r} is no NewTopic: write NewTopic('flights', num_partitions=6)")
        checked_topic(topic.name)
        checked_whole(f"num_partitions of {topic.name!r}", topic.num_partitions, "a number, -1 for the default", *INT32)
        checked_whole(
            f"replication_factor of {topic.name!r}", topic.replication_factor, "a number, -1 for the default", *INT16
        )
    return wanted


def creatable(topic: NewTopic) -> CreatableTopic:
    """A new topic as it travels."""
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

"""Topics: made, deleted, listed, described, and their offsets looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, Question, controller, raise_first
from ottla.client.admin.topic import NewTopic, TopicDescription, TopicListing
from ottla.client.arguments import checked_partition, checked_topic, checked_topics
from ottla.client.cluster import TopicInfo
from ottla.client.consumer.offsets.offset_fetcher import OffsetFetcher
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.consumer.topic_metadata_fetcher import TopicMetadataFetcher
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import OffsetAndTimestamp, TopicPartition
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


class TopicCalls:
    """What an admin does with topics; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver
        self.metadata = TopicMetadataFetcher(driver.client, driver.backoff, allow_auto_topic_creation=False)
        self._offsets = OffsetFetcher(
            driver.client,
            SubscriptionState(None),
            driver.backoff,
            request_timeout_ms=driver.config.request_timeout_ms,
        )

    def create_topics(self, topics: Iterable[NewTopic], timeout: float | None, *, validate_only: bool) -> None:
        wanted = {topic.name: creatable(topic) for topic in checked_new_topics(topics)}
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
        return {
            name: TopicListing(name, info.topic_id, info.internal)
            for name, info in sorted(self.fetch(None, timeout).items())
            if internal or not info.internal
        }

    def describe_topics(self, names: Iterable[str], timeout: float | None) -> dict[str, TopicDescription]:
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
        asked = {checked_partition(tp): timestamp for tp, timestamp in timestamps.items()}
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
    return error_for(answer.error_code, answer.error_message or f"topic {answer.name!r}")


def checked_new_topics(topics: Iterable[Any]) -> list[NewTopic]:
    """What to create; a mere name lacks its partitions, and one topic alone is no list."""
    if isinstance(topics, NewTopic | str):
        raise TypeError(f"{topics!r} is no list of topics: write [NewTopic('flights', num_partitions=6)]")
    wanted = list(topics)
    for topic in wanted:
        if not isinstance(topic, NewTopic):
            raise TypeError(f"{topic!r} is no NewTopic: write NewTopic('flights', num_partitions=6)")
        checked_topic(topic.name)
    return wanted


def creatable(topic: NewTopic) -> CreatableTopic:
    """A new topic as it travels."""
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.replica_assignments else topic.num_partitions,
        replication_factor=-1 if topic.replica_assignments else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.replica_assignments.items()
        ],
        configs=[CreatableTopicConfig(name=name, value=str(value)) for name, value in topic.configs.items()],
    )

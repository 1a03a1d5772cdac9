"""What this client's user may do with topics and with the cluster (KIP-430); groups say it where they are described."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.acl import operations_in
from ottla.client.admin.admin_api_driver import AdminApiDriver, Question, any_broker, raise_first
from ottla.errors import KafkaError, error_for
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

Operations = frozenset[str] | None


class AuthorizedCalls:
    """Asks any broker, for each of them knows all rules."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def of_cluster(self, timeout: float | None) -> Operations:
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        answer = self._driver.ask_one(any_broker, request, "what may be done with the cluster", timeout)
        return operations_in(answer.cluster_authorized_operations)

    def of_topics(self, names: Iterable[str], timeout: float | None) -> Mapping[str, Operations]:
        question: Question[str, Operations] = Question(any_broker, asking, read)
        found, failed = self._driver.ask(question, names, timeout)
        raise_first(failed)
        return found


def asking(names: list[str]) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )


def read(_: list[str], answer: Any) -> Mapping[str, Operations | KafkaError]:
    """The operations on each topic; what is wrong with one of them, where it was deleted in between for instance."""
    return {
        topic.name: error_for(topic.error_code, f"topic {topic.name!r}")
        if topic.error_code
        else operations_in(topic.topic_authorized_operations)
        for topic in answer.topics
    }

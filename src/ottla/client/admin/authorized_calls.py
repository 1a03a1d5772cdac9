"""The operations that the client's user may perform on topics and on the cluster (KIP-430).

Groups return them when they are described.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.acl import operations_in
from ottla.client.admin.admin_api_driver import AdminApiDriver, AdminQuery, lookup_any_broker, raise_first
from ottla.errors import KafkaError, error_for
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

Operations = frozenset[str] | None


class AuthorizedCalls:
    """Requests the operations from any broker, because every broker knows all ACLs."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def cluster_operations(self, timeout: float | None) -> Operations:
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        response = self._driver.send_one(
            lookup_any_broker, request, "the authorized operations of the cluster", timeout
        )
        return operations_in(response.cluster_authorized_operations)

    def topic_operations(self, names: Iterable[str], timeout: float | None) -> Mapping[str, Operations]:
        query: AdminQuery[str, Operations] = AdminQuery(lookup_any_broker, operations_request, read_operations)
        found, failed = self._driver.run_query(query, names, timeout)
        raise_first(failed)
        return found


def operations_request(names: list[str]) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )


def read_operations(_: list[str], response: Any) -> Mapping[str, Operations | KafkaError]:
    """Return the operations or the error of each topic; it may have been deleted meanwhile."""
    return {
        topic.name: error_for(topic.error_code, f"topic {topic.name!r}")
        if topic.error_code
        else operations_in(topic.topic_authorized_operations)
        for topic in response.topics
    }

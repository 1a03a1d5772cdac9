"""The admin client: what users call.

Any number of threads may use it, one call at a time; each call waits for its answer. Its methods are in `…_admin`, what they do in `…_calls`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

from ottla.client.admin.access_admin import AccessAdmin
from ottla.client.admin.admin_api_driver import AdminApiDriver
from ottla.client.admin.admin_calls import AdminCalls
from ottla.client.admin.cluster_admin import ClusterAdmin
from ottla.client.admin.config import read_admin_settings
from ottla.client.admin.group_admin import GroupAdmin
from ottla.client.admin.topic_admin import TopicAdmin
from ottla.client.interface.identity import describe_client, next_client_id
from ottla.client.interface.method_names import ADMIN, explain_names

if TYPE_CHECKING:
    from ottla.client.config.typed_settings import AdminSettings
    from ottla.client.metrics.client_metrics import ClientMetrics


class Admin(TopicAdmin, GroupAdmin, ClusterAdmin, AccessAdmin):
    """Manages topics and their partitions, consumer groups, transactions, configs, ACLs and quotas.

    Settings come as Kafka's dotted names, as keywords, or both. Close it, or use it in a `with` statement. A call about
    several things does each or not by itself; afterwards the first error is raised, with all of them in its text.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Unpack[AdminSettings]) -> None:
        self.config = read_admin_settings(config, keywords)
        self.client_id = self.config.client_id or next_client_id("adminclient")
        self._driver = AdminApiDriver(self.config, self.client_id)
        self._calls = AdminCalls(self._driver)

    def __repr__(self) -> str:
        return describe_client(self, self._driver.closed)

    def metrics(self) -> ClientMetrics:
        """What is counted and measured in here, by the names of Java's clients; at any time, from any thread."""
        return self._driver.metrics()

    def client_instance_id(self, timeout: float | None = None) -> UUID:
        """The id under which brokers know this client where it pushes metrics to them (KIP-714), the same until it is closed.

        Asked for within `timeout` seconds, left out: `default.api.timeout.ms`. IllegalStateError with `enable.metrics.push = false`,
        UnsupportedVersionError where the broker takes no metrics, KafkaTimeoutError where none answers.
        """
        return self._driver.client_instance_id(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Close all connections; a call of another thread ends with WakeupError. May be called again."""
        self._driver.close(timeout)

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


explain_names(Admin, ADMIN)

"""The public admin client.

Any number of threads may use it; calls run one at a time, and each call waits for its response. The methods are in
`…_admin`, their implementation in `…_calls`.
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
    """Manage topics, partitions, consumer groups, transactions, configs, ACLs and quotas.

    Settings are given with Kafka's dotted names, as keywords, or both. Close the client, or use it in a `with`
    statement. A call for several items processes each independently; afterwards the first error is raised, with all
    errors in its text.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Unpack[AdminSettings]) -> None:
        self.config = read_admin_settings(config, keywords)
        self.client_id = self.config.client_id or next_client_id("adminclient")
        self._driver = AdminApiDriver(self.config, self.client_id)
        self._calls = AdminCalls(self._driver)

    def __repr__(self) -> str:
        return describe_client(self, self._driver.closed)

    def metrics(self) -> ClientMetrics:
        """Return the metrics of this client, with the names of the Java clients.

        May be called at any time from any thread.
        """
        return self._driver.metrics()

    def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Return the id that brokers assigned to this client for pushing metrics (KIP-714); it does not change until the client is closed.

        The id is requested within `timeout` seconds, by default `default.api.timeout.ms`. Raises IllegalStateError with
        `enable.metrics.push = false`, UnsupportedVersionError if the broker does not accept metrics, KafkaTimeoutError
        if no broker responds.
        """
        return self._driver.client_instance_id(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Close all connections. A call in another thread raises WakeupError. May be called again."""
        self._driver.close(timeout)

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


explain_names(Admin, ADMIN)

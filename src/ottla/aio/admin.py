"""The admin client, awaited: `ottla.Admin` with a thread in which its calls wait.

Each method is that of the blocking client, with its arguments and its answer; `awaited` makes it, and nothing is written twice.
Why a thread, where the other clients here have none, is in decision 0091.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack

from ottla.client.admin import admin as blocking
from ottla.client.admin.access_admin import AccessAdmin
from ottla.client.admin.cluster_admin import ClusterAdmin
from ottla.client.admin.group_admin import GroupAdmin
from ottla.client.admin.topic_admin import TopicAdmin
from ottla.client.interface.method_names import ADMIN, explain_names

if TYPE_CHECKING:
    from ottla.client.config.typed_settings import AdminSettings
    from ottla.client.metrics.client_metrics import ClientMetrics

P = ParamSpec("P")
R = TypeVar("R")


class awaited(Generic[P, R]):
    """A method of the blocking client, to be awaited."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, admin: Admin | None, owner: type[Admin]) -> Callable[P, Awaitable[R]]:
        @wraps(self._method)
        async def call(*arguments: P.args, **keywords: P.kwargs) -> R:
            assert admin is not None, f"Admin.{self._method.__name__} is a method of an object"
            return await admin._call(partial(self._method, admin._blocking, *arguments, **keywords))

        return call


class Admin:
    """Manages what `ottla.Admin` does, by the same methods; each is awaited.

    Settings are the same, too. Use it by `async with`, or close it. Calls are made one after the other, in a thread of their own. A
    task that is cancelled waits no longer; what was asked of the brokers may be done all the same.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Unpack[AdminSettings]) -> None:
        self._blocking = blocking.Admin(config, **keywords)
        self.config, self.client_id = self._blocking.config, self._blocking.client_id
        self._thread = ThreadPoolExecutor(1, f"ottla-aio-admin | {self.client_id}")  # which begins with the first call

    def __repr__(self) -> str:
        return f"aio.{self._blocking!r}"

    def metrics(self) -> ClientMetrics:
        """What is counted and measured in here, by the names of Java's clients; at any time, from any thread."""
        return self._blocking.metrics()

    async def close(self, timeout: float | None = None) -> None:
        """Close all connections; a call that is under way ends with WakeupError. May be called again."""
        await asyncio.to_thread(self._blocking.close, timeout)
        self._thread.shutdown(wait=False)

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _call(self, call: Callable[[], R]) -> R:
        if self._blocking._driver.closed:
            return call()  # which says so
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    client_instance_id = awaited(blocking.Admin.client_instance_id)

    create_topics = awaited(TopicAdmin.create_topics)
    delete_topics = awaited(TopicAdmin.delete_topics)
    list_topics = awaited(TopicAdmin.list_topics)
    describe_topics = awaited(TopicAdmin.describe_topics)
    list_offsets = awaited(TopicAdmin.list_offsets)
    create_partitions = awaited(TopicAdmin.create_partitions)
    delete_records = awaited(TopicAdmin.delete_records)
    elect_leaders = awaited(TopicAdmin.elect_leaders)
    alter_partition_reassignments = awaited(TopicAdmin.alter_partition_reassignments)
    list_partition_reassignments = awaited(TopicAdmin.list_partition_reassignments)
    describe_log_dirs = awaited(TopicAdmin.describe_log_dirs)
    describe_replica_log_dirs = awaited(TopicAdmin.describe_replica_log_dirs)
    alter_replica_log_dirs = awaited(TopicAdmin.alter_replica_log_dirs)

    list_consumer_groups = awaited(GroupAdmin.list_consumer_groups)
    list_groups = awaited(GroupAdmin.list_groups)
    describe_classic_groups = awaited(GroupAdmin.describe_classic_groups)
    describe_consumer_groups = awaited(GroupAdmin.describe_consumer_groups)
    delete_consumer_groups = awaited(GroupAdmin.delete_consumer_groups)
    remove_members_from_consumer_group = awaited(GroupAdmin.remove_members_from_consumer_group)
    list_consumer_group_offsets = awaited(GroupAdmin.list_consumer_group_offsets)
    alter_consumer_group_offsets = awaited(GroupAdmin.alter_consumer_group_offsets)
    delete_consumer_group_offsets = awaited(GroupAdmin.delete_consumer_group_offsets)
    list_transactions = awaited(GroupAdmin.list_transactions)
    describe_transactions = awaited(GroupAdmin.describe_transactions)
    describe_producers = awaited(GroupAdmin.describe_producers)
    fence_producers = awaited(GroupAdmin.fence_producers)
    force_terminate_transaction = awaited(GroupAdmin.force_terminate_transaction)
    abort_transaction = awaited(GroupAdmin.abort_transaction)

    describe_cluster = awaited(ClusterAdmin.describe_cluster)
    describe_metadata_quorum = awaited(ClusterAdmin.describe_metadata_quorum)
    add_raft_voter = awaited(ClusterAdmin.add_raft_voter)
    remove_raft_voter = awaited(ClusterAdmin.remove_raft_voter)
    unregister_broker = awaited(ClusterAdmin.unregister_broker)
    describe_features = awaited(ClusterAdmin.describe_features)
    update_features = awaited(ClusterAdmin.update_features)
    describe_configs = awaited(ClusterAdmin.describe_configs)
    alter_configs = awaited(ClusterAdmin.alter_configs)
    list_config_resources = awaited(ClusterAdmin.list_config_resources)

    create_acls = awaited(AccessAdmin.create_acls)
    describe_acls = awaited(AccessAdmin.describe_acls)
    delete_acls = awaited(AccessAdmin.delete_acls)
    describe_user_scram_credentials = awaited(AccessAdmin.describe_user_scram_credentials)
    alter_user_scram_credentials = awaited(AccessAdmin.alter_user_scram_credentials)
    create_delegation_token = awaited(AccessAdmin.create_delegation_token)
    renew_delegation_token = awaited(AccessAdmin.renew_delegation_token)
    expire_delegation_token = awaited(AccessAdmin.expire_delegation_token)
    describe_delegation_token = awaited(AccessAdmin.describe_delegation_token)
    describe_client_quotas = awaited(AccessAdmin.describe_client_quotas)
    alter_client_quotas = awaited(AccessAdmin.alter_client_quotas)


explain_names(Admin, ADMIN)

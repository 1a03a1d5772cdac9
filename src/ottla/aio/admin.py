"""The admin client for asyncio: `ottla.Admin` with a thread in which its calls wait.

Each method is created by `make_awaitable` from the blocking method, with the same arguments and result. Decision 0091 explains
why the admin uses a thread.
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


class make_awaitable(Generic[P, R]):
    """Wraps a method of the blocking client as a coroutine method."""

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
    """Manage what `ottla.Admin` manages, with the same methods; each is awaited.

    The settings are the same, too. Use it with `async with`, or close it. Calls run one after the other in a thread. A
    cancelled task stops waiting, but brokers may still perform its request.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Unpack[AdminSettings]) -> None:
        self._blocking = blocking.Admin(config, **keywords)
        self.config, self.client_id = self._blocking.config, self._blocking.client_id
        self._thread = ThreadPoolExecutor(
            1, f"ottla-aio-admin | {self.client_id}"
        )  # the thread starts with the first call

    def __repr__(self) -> str:
        return f"aio.{self._blocking!r}"

    def metrics(self) -> ClientMetrics:
        """Return the metrics of this client, with the names of the Java clients.

        May be called at any time from any thread.
        """
        return self._blocking.metrics()

    async def close(self, timeout: float | None = None) -> None:
        """Close all connections. A call in progress raises WakeupError. May be called again."""
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
            return call()  # raises IllegalStateError
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    client_instance_id = make_awaitable(blocking.Admin.client_instance_id)

    create_topics = make_awaitable(TopicAdmin.create_topics)
    delete_topics = make_awaitable(TopicAdmin.delete_topics)
    list_topics = make_awaitable(TopicAdmin.list_topics)
    describe_topics = make_awaitable(TopicAdmin.describe_topics)
    list_offsets = make_awaitable(TopicAdmin.list_offsets)
    create_partitions = make_awaitable(TopicAdmin.create_partitions)
    delete_records = make_awaitable(TopicAdmin.delete_records)
    elect_leaders = make_awaitable(TopicAdmin.elect_leaders)
    alter_partition_reassignments = make_awaitable(TopicAdmin.alter_partition_reassignments)
    list_partition_reassignments = make_awaitable(TopicAdmin.list_partition_reassignments)
    describe_log_dirs = make_awaitable(TopicAdmin.describe_log_dirs)
    describe_replica_log_dirs = make_awaitable(TopicAdmin.describe_replica_log_dirs)
    alter_replica_log_dirs = make_awaitable(TopicAdmin.alter_replica_log_dirs)

    list_consumer_groups = make_awaitable(GroupAdmin.list_consumer_groups)
    list_groups = make_awaitable(GroupAdmin.list_groups)
    describe_classic_groups = make_awaitable(GroupAdmin.describe_classic_groups)
    describe_consumer_groups = make_awaitable(GroupAdmin.describe_consumer_groups)
    delete_consumer_groups = make_awaitable(GroupAdmin.delete_consumer_groups)
    remove_members_from_consumer_group = make_awaitable(GroupAdmin.remove_members_from_consumer_group)
    list_consumer_group_offsets = make_awaitable(GroupAdmin.list_consumer_group_offsets)
    alter_consumer_group_offsets = make_awaitable(GroupAdmin.alter_consumer_group_offsets)
    delete_consumer_group_offsets = make_awaitable(GroupAdmin.delete_consumer_group_offsets)
    describe_share_groups = make_awaitable(GroupAdmin.describe_share_groups)
    list_share_group_offsets = make_awaitable(GroupAdmin.list_share_group_offsets)
    alter_share_group_offsets = make_awaitable(GroupAdmin.alter_share_group_offsets)
    delete_share_group_offsets = make_awaitable(GroupAdmin.delete_share_group_offsets)
    delete_share_groups = make_awaitable(GroupAdmin.delete_share_groups)
    describe_streams_groups = make_awaitable(GroupAdmin.describe_streams_groups)
    list_streams_group_offsets = make_awaitable(GroupAdmin.list_streams_group_offsets)
    alter_streams_group_offsets = make_awaitable(GroupAdmin.alter_streams_group_offsets)
    delete_streams_group_offsets = make_awaitable(GroupAdmin.delete_streams_group_offsets)
    delete_streams_groups = make_awaitable(GroupAdmin.delete_streams_groups)
    list_transactions = make_awaitable(GroupAdmin.list_transactions)
    describe_transactions = make_awaitable(GroupAdmin.describe_transactions)
    describe_producers = make_awaitable(GroupAdmin.describe_producers)
    fence_producers = make_awaitable(GroupAdmin.fence_producers)
    force_terminate_transaction = make_awaitable(GroupAdmin.force_terminate_transaction)
    abort_transaction = make_awaitable(GroupAdmin.abort_transaction)

    describe_cluster = make_awaitable(ClusterAdmin.describe_cluster)
    describe_metadata_quorum = make_awaitable(ClusterAdmin.describe_metadata_quorum)
    add_raft_voter = make_awaitable(ClusterAdmin.add_raft_voter)
    remove_raft_voter = make_awaitable(ClusterAdmin.remove_raft_voter)
    unregister_broker = make_awaitable(ClusterAdmin.unregister_broker)
    unregister_controller = make_awaitable(ClusterAdmin.unregister_controller)
    describe_features = make_awaitable(ClusterAdmin.describe_features)
    update_features = make_awaitable(ClusterAdmin.update_features)
    describe_configs = make_awaitable(ClusterAdmin.describe_configs)
    alter_configs = make_awaitable(ClusterAdmin.alter_configs)
    list_config_resources = make_awaitable(ClusterAdmin.list_config_resources)

    create_acls = make_awaitable(AccessAdmin.create_acls)
    describe_acls = make_awaitable(AccessAdmin.describe_acls)
    delete_acls = make_awaitable(AccessAdmin.delete_acls)
    describe_user_scram_credentials = make_awaitable(AccessAdmin.describe_user_scram_credentials)
    alter_user_scram_credentials = make_awaitable(AccessAdmin.alter_user_scram_credentials)
    create_delegation_token = make_awaitable(AccessAdmin.create_delegation_token)
    renew_delegation_token = make_awaitable(AccessAdmin.renew_delegation_token)
    expire_delegation_token = make_awaitable(AccessAdmin.expire_delegation_token)
    describe_delegation_token = make_awaitable(AccessAdmin.describe_delegation_token)
    describe_client_quotas = make_awaitable(AccessAdmin.describe_client_quotas)
    alter_client_quotas = make_awaitable(AccessAdmin.alter_client_quotas)


explain_names(Admin, ADMIN)

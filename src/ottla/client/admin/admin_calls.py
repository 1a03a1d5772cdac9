"""The implementations of the admin's methods, each imported when a method of its kind is first called.

A shell command calls one method; importing all of them would delay it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.admin.acl_calls import AclCalls
    from ottla.client.admin.admin_api_driver import AdminApiDriver
    from ottla.client.admin.authorized_calls import AuthorizedCalls
    from ottla.client.admin.config_calls import ConfigCalls
    from ottla.client.admin.delegation_token_calls import DelegationTokenCalls
    from ottla.client.admin.feature_calls import FeatureCalls
    from ottla.client.admin.group_calls import GroupCalls
    from ottla.client.admin.group_offset_calls import GroupOffsetCalls
    from ottla.client.admin.log_dir_calls import LogDirCalls
    from ottla.client.admin.partition_calls import PartitionCalls
    from ottla.client.admin.quorum_calls import QuorumCalls
    from ottla.client.admin.quota_calls import QuotaCalls
    from ottla.client.admin.scram_calls import ScramCalls
    from ottla.client.admin.share_group_calls import ShareGroupCalls
    from ottla.client.admin.streams_group_calls import StreamsGroupCalls
    from ottla.client.admin.topic_calls import TopicCalls
    from ottla.client.admin.transaction_calls import TransactionCalls


class AdminCalls:
    """Creates each implementation once. Two threads that call at the same time may create two; they have no state."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    @cached_property
    def topics(self) -> TopicCalls:
        from ottla.client.admin.topic_calls import TopicCalls

        return TopicCalls(self._driver)

    @cached_property
    def partitions(self) -> PartitionCalls:
        from ottla.client.admin.partition_calls import PartitionCalls

        return PartitionCalls(self._driver, self.topics)

    @cached_property
    def log_dirs(self) -> LogDirCalls:
        from ottla.client.admin.log_dir_calls import LogDirCalls

        return LogDirCalls(self._driver)

    @cached_property
    def groups(self) -> GroupCalls:
        from ottla.client.admin.group_calls import GroupCalls

        return GroupCalls(self._driver)

    @cached_property
    def share_groups(self) -> ShareGroupCalls:
        from ottla.client.admin.share_group_calls import ShareGroupCalls

        return ShareGroupCalls(self._driver)

    @cached_property
    def streams_groups(self) -> StreamsGroupCalls:
        from ottla.client.admin.streams_group_calls import StreamsGroupCalls

        return StreamsGroupCalls(self._driver)

    @cached_property
    def group_offsets(self) -> GroupOffsetCalls:
        from ottla.client.admin.group_offset_calls import GroupOffsetCalls

        return GroupOffsetCalls(self._driver)

    @cached_property
    def transactions(self) -> TransactionCalls:
        from ottla.client.admin.transaction_calls import TransactionCalls

        return TransactionCalls(self._driver, self.topics)

    @cached_property
    def configs(self) -> ConfigCalls:
        from ottla.client.admin.config_calls import ConfigCalls

        return ConfigCalls(self._driver)

    @cached_property
    def authorized(self) -> AuthorizedCalls:
        from ottla.client.admin.authorized_calls import AuthorizedCalls

        return AuthorizedCalls(self._driver)

    @cached_property
    def features(self) -> FeatureCalls:
        from ottla.client.admin.feature_calls import FeatureCalls

        return FeatureCalls(self._driver)

    @cached_property
    def quorum(self) -> QuorumCalls:
        from ottla.client.admin.quorum_calls import QuorumCalls

        return QuorumCalls(self._driver)

    @cached_property
    def acls(self) -> AclCalls:
        from ottla.client.admin.acl_calls import AclCalls

        return AclCalls(self._driver)

    @cached_property
    def scram(self) -> ScramCalls:
        from ottla.client.admin.scram_calls import ScramCalls

        return ScramCalls(self._driver)

    @cached_property
    def tokens(self) -> DelegationTokenCalls:
        from ottla.client.admin.delegation_token_calls import DelegationTokenCalls

        return DelegationTokenCalls(self._driver)

    @cached_property
    def quotas(self) -> QuotaCalls:
        from ottla.client.admin.quota_calls import QuotaCalls

        return QuotaCalls(self._driver)

"""Groups and transactions as methods of `Admin`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.admin.admin_calls import AdminCalls
    from ottla.client.admin.group import (
        ConsumerGroupDescription,
        GroupListing,
        ShareGroupDescription,
        SharePartitionOffsetInfo,
        StreamsGroupDescription,
    )
    from ottla.client.admin.transaction import (
        AbortTransactionSpec,
        ProducerIdAndEpoch,
        ProducerState,
        TransactionDescription,
        TransactionListing,
    )
    from ottla.model import OffsetAndMetadata, TopicPartition


class GroupAdmin:
    """The methods of `Admin` for groups, members, offsets and transactions."""

    _calls: AdminCalls

    def list_consumer_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = (), timeout: float | None = None
    ) -> list[GroupListing]:
        """Return all consumer groups, or those in some states and of some types, named as in KIP-518 and KIP-848."""
        return self._calls.groups.list_consumer_groups(states, types, timeout)

    def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        protocol_types: Iterable[str] = (),
        timeout: float | None = None,
    ) -> list[GroupListing]:
        """Return groups of every application, Connect included, or those of some states, types and protocol types (KIP-1043)."""
        return self._calls.groups.list_groups(states, types, protocol_types, timeout)

    def describe_classic_groups(
        self, group_ids: Iterable[str], timeout: float | None = None, *, include_authorized_operations: bool = False
    ) -> dict[str, ConsumerGroupDescription]:
        """Return groups of the classic protocol, of any application.

        `assignment` is empty if its format is not that of consumers.
        """
        return self._calls.groups.describe_classic_groups(group_ids, timeout, include_authorized_operations)

    def describe_consumer_groups(
        self, group_ids: Iterable[str], timeout: float | None = None, *, include_authorized_operations: bool = False
    ) -> dict[str, ConsumerGroupDescription]:
        """Return groups of either protocol with their members and assignments. An unknown group is an error.

        `include_authorized_operations` requests the operations that the client's user may perform on each (KIP-430).
        """
        return self._calls.groups.describe_consumer_groups(group_ids, timeout, include_authorized_operations)

    def delete_consumer_groups(self, group_ids: Iterable[str], timeout: float | None = None) -> None:
        """Delete groups without members, and their committed offsets."""
        self._calls.groups.delete_consumer_groups(group_ids, timeout)

    def remove_members_from_consumer_group(
        self, group_id: str, group_instance_ids: Iterable[str] | None = None, timeout: float | None = None
    ) -> None:
        """Remove members of a group: static ones by their group.instance.id, or all with None.

        A running member joins again.
        """
        self._calls.groups.remove_members_from_consumer_group(group_id, group_instance_ids, timeout)

    def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        timeout: float | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets for these partitions, or for all. Partitions without an offset are omitted.

        `require_stable` waits for transactions that may still change the offsets.
        """
        return self._calls.group_offsets.list_consumer_group_offsets(
            group_id, partitions, timeout, require_stable=require_stable
        )

    def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        timeout: float | None = None,
    ) -> None:
        """Set the committed offsets of a group without members. A group that does not exist is created."""
        self._calls.group_offsets.alter_consumer_group_offsets(group_id, offsets, timeout)

    def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> None:
        """Delete the committed offsets of partitions. No member of the group may be subscribed to their topics."""
        self._calls.group_offsets.delete_consumer_group_offsets(group_id, partitions, timeout)

    def describe_share_groups(
        self, group_ids: Iterable[str], timeout: float | None = None, *, include_authorized_operations: bool = False
    ) -> dict[str, ShareGroupDescription]:
        """Return share groups with their members and assignments (KIP-932). An unknown group is an error."""
        return self._calls.share_groups.describe_share_groups(group_ids, timeout, include_authorized_operations)

    def list_share_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, timeout: float | None = None
    ) -> dict[TopicPartition, SharePartitionOffsetInfo]:
        """Return the start offset and the lag of a share group in these partitions, or in all.

        Partitions without a start offset are omitted.
        """
        return self._calls.share_groups.list_share_group_offsets(group_id, partitions, timeout)

    def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> None:
        """Set the start offsets of a share group without members."""
        self._calls.share_groups.alter_share_group_offsets(group_id, offsets, timeout)

    def delete_share_group_offsets(self, group_id: str, topics: Iterable[str], timeout: float | None = None) -> None:
        """Delete the start offsets of topics in a share group without members."""
        self._calls.share_groups.delete_share_group_offsets(group_id, topics, timeout)

    def delete_share_groups(self, group_ids: Iterable[str], timeout: float | None = None) -> None:
        """Delete share groups without members, and their start offsets."""
        self._calls.groups.delete_consumer_groups(group_ids, timeout)

    def describe_streams_groups(
        self,
        group_ids: Iterable[str],
        timeout: float | None = None,
        *,
        include_authorized_operations: bool = False,
        include_topology_description: bool = False,
    ) -> dict[str, StreamsGroupDescription]:
        """Return streams groups with their members and tasks (KIP-1071). An unknown group is an error.

        `include_topology_description` requests the nodes of the topology, which brokers have if they store descriptions (KIP-1331).
        """
        return self._calls.streams_groups.describe_streams_groups(
            group_ids, timeout, include_authorized_operations, include_topology_description
        )

    def list_streams_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        timeout: float | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that an application has committed in these partitions, or in all.

        Partitions without an offset are omitted. `require_stable` waits for transactions that may still change the offsets.
        """
        return self._calls.group_offsets.list_consumer_group_offsets(
            group_id, partitions, timeout, require_stable=require_stable
        )

    def alter_streams_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        timeout: float | None = None,
    ) -> None:
        """Set the committed offsets of a streams group without members.

        Internal topics and state stores are not reset: an application that reads its input again also needs these deleted.
        """
        self._calls.group_offsets.alter_consumer_group_offsets(group_id, offsets, timeout)

    def delete_streams_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> None:
        """Delete the committed offsets of partitions. No member of the group may read their topics."""
        self._calls.group_offsets.delete_consumer_group_offsets(group_id, partitions, timeout)

    def delete_streams_groups(self, group_ids: Iterable[str], timeout: float | None = None) -> None:
        """Delete streams groups without members, and their committed offsets."""
        self._calls.groups.delete_consumer_groups(group_ids, timeout)

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        transactional_id_pattern: str | None = None,
        timeout: float | None = None,
    ) -> list[TransactionListing]:
        """Return all transactional ids, or those that match every filter; the pattern is a regular expression."""
        return self._calls.transactions.list_transactions(
            states, producer_ids, longer_than_ms, transactional_id_pattern, timeout
        )

    def describe_transactions(
        self, transactional_ids: Iterable[str], timeout: float | None = None
    ) -> dict[str, TransactionDescription]:
        """Return the state of transactional ids. An unknown one is an error."""
        return self._calls.transactions.describe_transactions(transactional_ids, timeout)

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None, timeout: float | None = None
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """Return the producer ids that wrote to partitions, as reported by the leaders or by the broker with this id."""
        return self._calls.transactions.describe_producers(partitions, broker_id, timeout)

    def fence_producers(
        self, transactional_ids: Iterable[str], timeout: float | None = None
    ) -> dict[str, ProducerIdAndEpoch]:
        """Fence the producers with these transactional ids, and abort their open transactions."""
        return self._calls.transactions.fence_producers(transactional_ids, timeout)

    def force_terminate_transaction(self, transactional_id: str, timeout: float | None = None) -> None:
        """Abort the open transaction of a transactional id, even if it is prepared, and fence its producer (KIP-939)."""
        self._calls.transactions.fence_producers([transactional_id], timeout)

    def abort_transaction(self, spec: AbortTransactionSpec, timeout: float | None = None) -> None:
        """Abort a transaction in one partition, regardless of its coordinator.

        For hanging transactions that the coordinator has lost.
        """
        self._calls.transactions.abort_transaction(spec, timeout)

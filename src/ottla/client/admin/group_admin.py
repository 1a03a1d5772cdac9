"""Groups and transactions, as an admin's methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.admin.admin_calls import AdminCalls
    from ottla.client.admin.group import ConsumerGroupDescription, GroupListing
    from ottla.client.admin.transaction import (
        AbortTransactionSpec,
        ProducerIdAndEpoch,
        ProducerState,
        TransactionDescription,
        TransactionListing,
    )
    from ottla.model import OffsetAndMetadata, TopicPartition


class GroupAdmin:
    """What `Admin` does with groups, their members and offsets, and with transactions."""

    _calls: AdminCalls

    def list_consumer_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = (), timeout: float | None = None
    ) -> list[GroupListing]:
        """All consumer groups, or those in some states and of some types; KIP-518 and KIP-848 have the names."""
        return self._calls.groups.list_consumer_groups(states, types, timeout)

    def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        protocol_types: Iterable[str] = (),
        timeout: float | None = None,
    ) -> list[GroupListing]:
        """Groups of whatever application, Connect's among them, or of some states, types and protocol types (KIP-1043)."""
        return self._calls.groups.list_groups(states, types, protocol_types, timeout)

    def describe_classic_groups(
        self, group_ids: Iterable[str], timeout: float | None = None, *, include_authorized_operations: bool = False
    ) -> dict[str, ConsumerGroupDescription]:
        """Groups of the classic protocol, of whatever application; `assignment` is empty where that is not consumers'."""
        return self._calls.groups.describe_classic_groups(group_ids, timeout, include_authorized_operations)

    def describe_consumer_groups(
        self, group_ids: Iterable[str], timeout: float | None = None, *, include_authorized_operations: bool = False
    ) -> dict[str, ConsumerGroupDescription]:
        """Groups of either protocol with their members and what those were given; an unknown one is an error.

        What this client's user may do with each is asked for with `include_authorized_operations` (KIP-430).
        """
        return self._calls.groups.describe_consumer_groups(group_ids, timeout, include_authorized_operations)

    def delete_consumer_groups(self, group_ids: Iterable[str], timeout: float | None = None) -> None:
        """Forget groups that have no members, and what they committed."""
        self._calls.groups.delete_consumer_groups(group_ids, timeout)

    def remove_members_from_consumer_group(
        self, group_id: str, group_instance_ids: Iterable[str] | None = None, timeout: float | None = None
    ) -> None:
        """Send members of a group away: static ones by their group.instance.id, or all with None. Who still runs comes again."""
        self._calls.groups.remove_members_from_consumer_group(group_id, group_instance_ids, timeout)

    def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        timeout: float | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group committed for these partitions, or for all; what it has not is left out.

        With `require_stable` waits for transactions that may still change the offsets.
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
        """Set what a group without members has committed; a group that does not exist begins to."""
        self._calls.group_offsets.alter_consumer_group_offsets(group_id, offsets, timeout)

    def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> None:
        """Forget what a group committed for partitions of topics that its members do not read."""
        self._calls.group_offsets.delete_consumer_group_offsets(group_id, partitions, timeout)

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        transactional_id_pattern: str | None = None,
        timeout: float | None = None,
    ) -> list[TransactionListing]:
        """All transactional ids, or those that every filter lets through; the pattern is a regular expression."""
        return self._calls.transactions.list_transactions(
            states, producer_ids, longer_than_ms, transactional_id_pattern, timeout
        )

    def describe_transactions(
        self, transactional_ids: Iterable[str], timeout: float | None = None
    ) -> dict[str, TransactionDescription]:
        """How transactional ids stand; an unknown one is an error."""
        return self._calls.transactions.describe_transactions(transactional_ids, timeout)

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None, timeout: float | None = None
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """Who wrote to partitions with a producer id, as their leaders remember it, or the broker of that id."""
        return self._calls.transactions.describe_producers(partitions, broker_id, timeout)

    def fence_producers(
        self, transactional_ids: Iterable[str], timeout: float | None = None
    ) -> dict[str, ProducerIdAndEpoch]:
        """Shut out who writes under these transactional ids, and abort what they had begun."""
        return self._calls.transactions.fence_producers(transactional_ids, timeout)

    def force_terminate_transaction(self, transactional_id: str, timeout: float | None = None) -> None:
        """Abort what is open under a transactional id, also what is prepared, and shut out who writes under it (KIP-939)."""
        self._calls.transactions.fence_producers([transactional_id], timeout)

    def abort_transaction(self, spec: AbortTransactionSpec, timeout: float | None = None) -> None:
        """End a transaction in one partition whatever its coordinator knows; for those that hang, which that has lost."""
        self._calls.transactions.abort_transaction(spec, timeout)

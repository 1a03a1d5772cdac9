"""The admin client: what users call.

Any number of threads may use it, one call at a time; each call waits for its answer. What is done is in `…_calls`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from ottla.client.admin.acl import AclBinding, AclBindingFilter
from ottla.client.admin.acl_calls import AclCalls
from ottla.client.admin.admin_api_driver import AdminApiDriver
from ottla.client.admin.client_quota import ClientQuotaEntity
from ottla.client.admin.cluster import ClusterDescription
from ottla.client.admin.config import read_admin_settings
from ottla.client.admin.config_calls import ConfigCalls
from ottla.client.admin.config_resource import ConfigEntry, ConfigResource
from ottla.client.admin.group import ConsumerGroupDescription, GroupListing
from ottla.client.admin.group_calls import GroupCalls
from ottla.client.admin.group_offset_calls import GroupOffsetCalls
from ottla.client.admin.partition import LogDirDescription, NewPartitions, PartitionReassignment
from ottla.client.admin.partition_calls import PartitionCalls
from ottla.client.admin.quota_calls import QuotaCalls
from ottla.client.admin.scram import UserScramCredentialDeletion, UserScramCredentialUpsertion
from ottla.client.admin.scram_calls import ScramCalls
from ottla.client.admin.topic import NewTopic, TopicDescription, TopicListing
from ottla.client.admin.topic_calls import TopicCalls
from ottla.client.admin.transaction import (
    AbortTransactionSpec,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from ottla.client.admin.transaction_calls import TransactionCalls
from ottla.client.client_id import next_client_id
from ottla.client.described import described
from ottla.model import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from ottla.client.settings import AdminSettings


class Admin:
    """Manages topics and their partitions, consumer groups, transactions, configs, ACLs and quotas.

    Settings come as Kafka's dotted names, as keywords, or both. Close it, or use it in a `with` statement. A call about
    several things does each or not by itself; afterwards the first error is raised, with all of them in its text.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Unpack[AdminSettings]) -> None:
        self.config = read_admin_settings(config, keywords)
        self.client_id = self.config.client_id or next_client_id("adminclient")
        self._driver = AdminApiDriver(self.config, self.client_id)
        self._topics = TopicCalls(self._driver)
        self._partitions = PartitionCalls(self._driver, self._topics)
        self._groups = GroupCalls(self._driver)
        self._group_offsets = GroupOffsetCalls(self._driver)
        self._transactions = TransactionCalls(self._driver, self._topics)
        self._configs = ConfigCalls(self._driver)
        self._acls = AclCalls(self._driver)
        self._scram = ScramCalls(self._driver)
        self._quotas = QuotaCalls(self._driver)

    def __repr__(self) -> str:
        return described(self, self._driver.closed)

    # Topics.

    def create_topics(
        self, topics: Iterable[NewTopic], timeout: float | None = None, *, validate_only: bool = False
    ) -> None:
        """Create topics, or only check whether that would succeed."""
        self._topics.create_topics(topics, timeout, validate_only=validate_only)

    def delete_topics(self, names: Iterable[str], timeout: float | None = None) -> None:
        """Delete topics and all their records."""
        self._topics.delete_topics(names, timeout)

    def list_topics(self, timeout: float | None = None, *, internal: bool = False) -> dict[str, TopicListing]:
        """All topics by name; Kafka's own only if `internal`."""
        return self._topics.list_topics(timeout, internal=internal)

    def describe_topics(self, names: Iterable[str], timeout: float | None = None) -> dict[str, TopicDescription]:
        """The named topics with their partitions; an unknown one is an error."""
        return self._topics.describe_topics(names, timeout)

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """The offset of each partition at a time in ms, or at EARLIEST, LATEST, MAX_TIMESTAMP of `ottla.model`.

        Offset -1 where there is no record at or after the time.
        """
        return self._topics.list_offsets(timestamps, timeout)

    # Partitions.

    def create_partitions(
        self,
        new_partitions: Mapping[str, int | NewPartitions],
        timeout: float | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Give topics more partitions, by how many each shall have in all; or only check whether that would succeed."""
        self._partitions.create_partitions(new_partitions, timeout, validate_only=validate_only)

    def delete_records(
        self, before_offsets: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Delete all records before an offset of each partition, -1 for all that is committed; the first offset there is now."""
        return self._partitions.delete_records(before_offsets, timeout)

    def elect_leaders(
        self,
        election_type: str = "PREFERRED",
        partitions: Iterable[TopicPartition] | None = None,
        timeout: float | None = None,
    ) -> set[TopicPartition]:
        """Have the preferred replica lead again, or with UNCLEAN any that lives, which may lose records; of these partitions or of all.

        Those that have another leader now.
        """
        return self._partitions.elect_leaders(election_type, partitions, timeout)

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        timeout: float | None = None,
        *,
        allow_replication_factor_change: bool = True,
    ) -> None:
        """Begin to move partitions to other brokers, the preferred leader first; None stops a move that is under way (KIP-455)."""
        self._partitions.alter_partition_reassignments(
            reassignments, timeout, allow_replication_factor_change=allow_replication_factor_change
        )

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, timeout: float | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """The moves that are under way, of these partitions or of all."""
        return self._partitions.list_partition_reassignments(partitions, timeout)

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None = None, timeout: float | None = None
    ) -> dict[int, dict[str, LogDirDescription]]:
        """The directories of these brokers, or of all, by path: which copies are in them, and how large each is."""
        return self._partitions.describe_log_dirs(broker_ids, timeout)

    # The cluster.

    def describe_cluster(self, timeout: float | None = None) -> ClusterDescription:
        """The brokers that are there now, by what one of them says."""
        return ClusterDescription(tuple(self._driver.brokers_now(timeout)))

    # Consumer groups.

    def list_consumer_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = (), timeout: float | None = None
    ) -> list[GroupListing]:
        """All consumer groups, or those in some states and of some types; KIP-518 and KIP-848 have the names."""
        return self._groups.list_consumer_groups(states, types, timeout)

    def describe_consumer_groups(
        self, group_ids: Iterable[str], timeout: float | None = None
    ) -> dict[str, ConsumerGroupDescription]:
        """Groups of either protocol with their members and what those were given; an unknown one is an error."""
        return self._groups.describe_consumer_groups(group_ids, timeout)

    def delete_consumer_groups(self, group_ids: Iterable[str], timeout: float | None = None) -> None:
        """Forget groups that have no members, and what they committed."""
        self._groups.delete_consumer_groups(group_ids, timeout)

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
        return self._group_offsets.list_consumer_group_offsets(
            group_id, partitions, timeout, require_stable=require_stable
        )

    def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        timeout: float | None = None,
    ) -> None:
        """Set what a group without members has committed; a group that does not exist begins to."""
        self._group_offsets.alter_consumer_group_offsets(group_id, offsets, timeout)

    def delete_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> None:
        """Forget what a group committed for partitions of topics that its members do not read."""
        self._group_offsets.delete_consumer_group_offsets(group_id, partitions, timeout)

    # Transactions.

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
        return self._transactions.list_transactions(
            states, producer_ids, longer_than_ms, transactional_id_pattern, timeout
        )

    def describe_transactions(
        self, transactional_ids: Iterable[str], timeout: float | None = None
    ) -> dict[str, TransactionDescription]:
        """How transactional ids stand; an unknown one is an error."""
        return self._transactions.describe_transactions(transactional_ids, timeout)

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, broker_id: int | None = None, timeout: float | None = None
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """Who wrote to partitions with a producer id, as their leaders remember it, or the broker of that id."""
        return self._transactions.describe_producers(partitions, broker_id, timeout)

    def abort_transaction(self, spec: AbortTransactionSpec, timeout: float | None = None) -> None:
        """End a transaction in one partition whatever its coordinator knows; for those that hang, which that has lost."""
        self._transactions.abort_transaction(spec, timeout)

    # Configs.

    def describe_configs(
        self, resources: Iterable[ConfigResource], timeout: float | None = None
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """The configs of topics, brokers and groups by name, each with the place that its value comes from."""
        return self._configs.describe_configs(resources, timeout)

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, Any]],
        timeout: float | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Set single configs and leave the others; None gives one back to its default."""
        self._configs.alter_configs(changes, timeout, validate_only=validate_only)

    def list_config_resources(self, kinds: Iterable[str] = (), timeout: float | None = None) -> list[ConfigResource]:
        """What has configs, of some kinds or of all; of groups those that set some themselves."""
        return self._configs.list_config_resources(kinds, timeout)

    # Who may do what, and how much.

    def create_acls(self, acls: Iterable[AclBinding], timeout: float | None = None) -> None:
        """Keep rules of who may, or may not, do what; one that is kept already is no error."""
        self._acls.create_acls(acls, timeout)

    def describe_acls(self, filter: AclBindingFilter, timeout: float | None = None) -> list[AclBinding]:
        """The rules that a filter means; `AclBindingFilter()` means all."""
        return self._acls.describe_acls(filter, timeout)

    def delete_acls(self, filters: Iterable[AclBindingFilter], timeout: float | None = None) -> list[AclBinding]:
        """Delete every rule that one of the filters means, and return them."""
        return self._acls.delete_acls(filters, timeout)

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, timeout: float | None = None
    ) -> dict[str, dict[str, int]]:
        """Who may log in by SCRAM, these users or all: by which mechanisms, and how often the password is hashed for each."""
        return self._scram.describe_user_scram_credentials(users, timeout)

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialUpsertion | UserScramCredentialDeletion],
        timeout: float | None = None,
    ) -> None:
        """Give users passwords, and take them away. A password is hashed here; the broker is told the hash (KIP-554)."""
        self._scram.alter_user_scram_credentials(alterations, timeout)

    def describe_client_quotas(
        self, entity: ClientQuotaEntity | None = None, timeout: float | None = None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """What users, client ids and addresses are limited to: all that are, or one alone."""
        return self._quotas.describe_client_quotas(entity, timeout)

    def alter_client_quotas(
        self,
        changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        timeout: float | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Limit what somebody may use: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate;
        of an address connection_creation_rate. None lifts a limit.
        """
        self._quotas.alter_client_quotas(changes, timeout, validate_only=validate_only)

    def close(self, timeout: float | None = None) -> None:
        """Close all connections; a call of another thread ends with WakeupError. May be called again."""
        self._driver.close(timeout)

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

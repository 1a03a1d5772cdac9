"""The broker without its sockets: topics, partitions, groups, and what happens to them with time.

Handlers work on this; the server's loop drives it. Everything is called in the loop's thread.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ottla.broker.event_loop.disk import Disk
from ottla.broker.metadata import internal_topics
from ottla.broker.metadata.brokers import Brokers, KnownBroker
from ottla.broker.metadata.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from ottla.broker.metadata.metadata_log import METADATA_LOG, METADATA_PARTITION
from ottla.broker.metadata.observed_metadata import Features, ObservedMetadata
from ottla.broker.metadata.placement import connect_placement, list_cordoned
from ottla.broker.metadata.producer_ids import ProducerIds
from ottla.broker.metadata.topics import Topics, find_leader_of_key
from ottla.broker.network_server.connection import Connection
from ottla.broker.network_server.quota_manager import ConnectionRates, QuotaManager
from ottla.broker.replica_manager.assigned_replicas import AssignedReplicas
from ottla.broker.replica_manager.directory_assignments import DirectoryAssignments
from ottla.broker.replica_manager.fetch_purgatory import FetchPurgatory
from ottla.broker.replica_manager.fetch_session_cache import FetchSessionCache
from ottla.broker.replica_manager.isr_changes import IsrChanges
from ottla.broker.replica_manager.leadership import Leadership, become_leader, ignore
from ottla.broker.replica_manager.log_cleaner import LogCleaner
from ottla.broker.replica_manager.log_dir_failures import LogDirFailures
from ottla.broker.replica_manager.log_dir_moves import LogDirMoves
from ottla.broker.replica_manager.log_flusher import LogFlusher
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partitions import Partitions
from ottla.broker.replica_manager.refused_sequences import RejectedSequences
from ottla.broker.replica_manager.replication_throttle import FOLLOWER, LEADER, ThrottledReplicas
from ottla.broker.security.authentication import Authentication
from ottla.broker.security.authorization import access_over
from ottla.broker.security.delegation_tokens import DelegationTokens
from ottla.broker.security.scram_credentials import ScramCredentials
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.coordination.cluster.features import SHARE_VERSION
from ottla.coordination.cluster.topic import ClusterTopic
from ottla.coordination.lifecycle.controlled_shutdown import has_changes
from ottla.coordination.quorum.observer import Address
from ottla.coordination.quotas.client_quotas import OF_CLIENTS, ClientQuotas
from ottla.coordination.replication.assignment import LiveBrokers, ReplicaAssignment
from ottla.errors import ErrorCode, KafkaError
from ottla.kafka_id import id_of
from ottla.model import INT32_MAX, Buffer, TopicPartition
from ottla.protocol.messages.api_versions import ApiVersion
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicResult
from ottla.protocol.schema import Message
from ottla.storage.batches.damage import OutOfServiceError
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.storage.log.append_path import Appended
from ottla.storage.producers.producer_entry import Origin

if TYPE_CHECKING:
    from ottla.broker.client_telemetry import TelemetryReceiver
    from ottla.broker.coordinators.commitment import Commitment
    from ottla.broker.coordinators.coordinator_runtime import CoordinatorContext
    from ottla.broker.coordinators.end_offsets import EndOffsets
    from ottla.broker.coordinators.group_coordinator import GroupCoordinator
    from ottla.broker.coordinators.remote_coordinators import RemoteCoordinators
    from ottla.broker.coordinators.remote_markers import RemoteMarkers
    from ottla.broker.coordinators.share_coordinator import ShareCoordinator
    from ottla.broker.coordinators.share_persister import SharePersister
    from ottla.broker.coordinators.transaction_coordinator import TransactionCoordinator
    from ottla.broker.coordinators.transaction_markers import EndMarkers, MarkerWriter, TransactionEnd
    from ottla.broker.network_server.socket_server import SocketServer
    from ottla.broker.peers.network_partition import NetworkPartition
    from ottla.broker.peers.peer_connection import PeerConnection
    from ottla.broker.peers.peers import RemoteBrokers
    from ottla.broker.registration.membership import Membership
    from ottla.broker.replica_manager.replica_fetcher import LeaderFetcher
    from ottla.broker.schema_validation.validation import SchemaValidation
    from ottla.broker.security.audit_log import AuditLog
    from ottla.broker.security.bound_listeners import BoundListeners
    from ottla.broker.share.share_group_settings import ShareGroupSettings, ShareSettings
    from ottla.broker.share.share_partition_manager import SharePartitionManager

log = logging.getLogger(__name__)
DEAD_LETTERS_SINCE = 2
"""The level of share.version from which on share groups have dead letter queues."""
REGISTRY_THREADS = 2
"""The number of requests to a schema registry at a time."""
MADE_TOGETHER = 1_000
"""Topics that a client has only named, and that one request to the controller creates."""


class BrokerNode:
    """One broker's state, over a data directory that is open and locked."""

    def __init__(
        self,
        config: BrokerConfig,
        directory: DataDirectory | DataDirectories,
        server: SocketServer,
        listeners: BoundListeners,
        disk: Disk,
        apis: Sequence[ApiVersion],
        observed: ObservedMetadata,
        membership: Membership,
        audit: AuditLog | None = None,
    ) -> None:
        """`observed` is the committed metadata of the cluster, in which `membership` is this broker's place.

        `apis` is the table of APIs that this broker serves; `audit` is the log of authorization decisions, if there is one.
        """
        clock, timers = server.clock, server.timers
        self._given = config
        self._server = server
        self._listeners = listeners
        self._disk = disk
        self._cluster = observed
        self._membership = membership
        self.apis = apis
        self.clock = clock
        self.directory = directory
        self.timers = timers
        self._advertised = {name: (host, port) for name, host, port in config.advertised_endpoints().values()}
        self.waiting = FetchPurgatory(timers)
        self.fetch_sessions = FetchSessionCache(
            config.max_incremental_fetch_session_cache_slots, lambda: random.randrange(1, INT32_MAX)
        )
        self.refused_sequences = RejectedSequences()
        """Refused batches that must be appended before those after them."""

        self.passwords = ScramCredentials(observed, directory.meta.directory_id.encode())
        self.tokens = DelegationTokens(config, observed, clock)
        known = listeners.securities, self.passwords, self.tokens
        self.authentication = Authentication(config, *known, timers, clock, server.call_soon)
        self.access = access_over(observed, config, audit)
        """The authorizer; None without one, when everything is allowed."""

        self.brokers = Brokers(observed)
        """The registered brokers of the cluster."""
        self.features = Features(observed)
        self.partitions = Partitions(config, directory, clock, disk)
        self.topics = Topics(config, observed, self.partitions, self.authentication.check)
        self.producer_ids = ProducerIds(membership.errands.fetch_producer_ids)
        self.group_listeners: list[Callable[[Any], None]] = []
        """Called with each note of a group, which has a text. They are kept here, because the coordinator is imported later."""
        self.quotas: QuotaManager | None = None
        """The usage of clients by quota; None if there is no quota."""
        self.count_use()

        self.disk_watch = LogDirFailures(
            directory,
            self.partitions,
            self.waiting,
            self._take_offline,
            timers,
            clock,
            disk,
            stops_with_the_only_one=not config.is_alone,  # another broker can lead what is offline here
        )
        self.flusher = LogFlusher(disk, timers, clock, self.disk_watch.report_error)
        self.cleaning = LogCleaner(config, directory, disk, timers, clock)
        self.topics.on_configured(self.cleaning.configure)
        limit = lambda: self.config.leader_replication_throttled_rate  # noqa: E731
        self.copies_sent = ThrottledReplicas(LEADER, limit, self.topics.find_configs, config.node_id, clock)
        """The rate of fetches by followers, for the replication throttle."""
        connect_placement(directory, observed, config)
        self.topics.on_configured(self._apply_cordoned_directories)
        limit = lambda: self.config.replica_alter_log_dirs_io_max_bytes_per_second  # noqa: E731
        moves = self.partitions, limit, self, self.disk_watch.report_error, disk, timers, clock
        self.relocations = LogDirMoves(directory, *moves)
        self.replicas = self._make_replicas()
        """The replicas that the metadata assigns to this broker."""
        self.coordinators = None if config.is_alone else self._make_remote_coordinators()
        """The transaction coordinators on other brokers; None for the only node."""

    def _make_replicas(self) -> AssignedReplicas:
        config, timers, clock, membership = self._given, self.timers, self.clock, self._membership
        directory_id = id_of(self.directory.meta.directory_id)
        asked = config.node_id, lambda: membership.epoch, membership.partition_channel, timers, clock
        limit = lambda: self.config.follower_replication_throttled_rate  # noqa: E731
        fetched = ThrottledReplicas(FOLLOWER, limit, self.topics.find_configs, config.node_id, clock)

        def make_fetcher(leader: int) -> LeaderFetcher:
            from ottla.broker.replica_manager.replica_fetcher import (  # the only node never follows
                LeaderFetcher,
                Replica,
            )

            return LeaderFetcher(
                leader,
                self._find_address,
                Replica(config.node_id, lambda: membership.epoch, directory_id),
                timers,
                clock,
                self._connect(f"ottla-fetcher-{leader}"),
                fetched,
            )

        return AssignedReplicas(
            lambda: self.config,
            self._cluster,
            self.partitions,
            self.lead,
            make_fetcher,
            IsrChanges(*asked),
            DirectoryAssignments(self._find_directory, *asked, self.directory.has_less_than),
            self,
            self.waiting,
            self.flusher,
            timers,
            clock,
        )

    def _make_remote_coordinators(self) -> RemoteCoordinators:
        from ottla.broker.coordinators.remote_coordinators import RemoteCoordinators

        return RemoteCoordinators(
            lambda transactional_id: find_leader_of_key(self.topics.find_by_name(TRANSACTION_STATE), transactional_id),
            self._find_address,
            lambda broker: self._connect(f"ottla-transactions-{broker}"),
            self._given.node_id,
            lambda verification, on_done: self._server.call_soon(
                lambda: self.transactions.complete(verification, on_done)
            ),
        )

    def _connect(self, client_id: str) -> PeerConnection:
        """Return a connection to another broker."""
        return self._membership.peers.connect_to_broker(client_id, self._server.selector, self.timers)

    def _find_address(self, broker: int) -> Address | None:
        """Return the address of a broker for other brokers, if it is known."""
        known = self.brokers.reached_by(self._membership.peers.broker_listener)
        found = next((each for each in known if each.node_id == broker), None)
        return None if found is None else Address(found.host, found.port)

    def _apply_cordoned_directories(self, config: BrokerConfig) -> None:
        """Place no new partitions in the directories that the present settings cordon, and report them (KIP-1066)."""
        cordoned = list_cordoned(config, self.directory)
        if isinstance(self.directory, DataDirectories):
            self.directory.cordoned = cordoned
        self._membership.report_cordoned_directories(cordoned)

    def _find_directory(self, partition: TopicPartition) -> UUID | None:
        """Return the directory of a replica, or of a future one; None if it is offline."""
        try:
            return self.relocations.find_reported_directory(partition) or self.directory.place(partition).directory_id
        except KafkaError:
            return None  # the error is returned to users of the partition

    # the metadata

    def apply_metadata(self, records: list[Message] | None) -> None:
        """Apply records of the metadata that were replayed; None if a snapshot has replaced the image."""
        self.topics.handle_records(records)
        if not has_changes(records):
            return
        self.brokers.record_changes(self.clock.monotonic())
        self.count_use()
        self.replicas.apply_metadata()
        if self.coordinators is not None:
            self.coordinators.handle_new_metadata()
        if self._remote_markers is not None:
            self._remote_markers.handle_new_metadata()
        if "share_persister" in vars(self):
            self.share_persister.handle_new_metadata()
        if "share_partitions" in vars(self):
            self.share_partitions.handle_new_metadata()
        if "end_offsets" in vars(self):
            self.end_offsets.handle_new_metadata()

    def start_replicas(self) -> None:
        """Lead and follow, once the broker has caught up with the metadata; after a crash check the logs before."""
        self.brokers.record_start(self.clock.monotonic())
        self.replicas.start()
        if not self.directory.was_clean_shutdown:
            self.partitions.recover()
        self.relocations.start()

    def stop_replication(self) -> None:
        """Stop following, and close the connections to other brokers."""
        self.replicas.close()
        if self.coordinators is not None:
            self.coordinators.close()
        if self._remote_markers is not None:
            self._remote_markers.close()
        if "share_persister" in vars(self):
            self.share_persister.close()
        if "share_partitions" in vars(self):
            self.share_partitions.close()
        if "end_offsets" in vars(self):
            self.end_offsets.close()

    @property
    def split(self) -> NetworkPartition | None:
        """The nodes that are hidden for a test; None for the only node."""
        return None if self.is_alone else self._membership.peers.split

    @property
    def reached_at(self) -> Mapping[str, str]:
        """The address of each listener."""
        return self._listeners.addresses

    @cached_property
    def schema_validation(self) -> SchemaValidation:
        """Validates the records of topics with a schema registry. Imported at first use: few topics need it."""
        from ottla.broker.schema_validation.registered_schemas import RegisteredSchemas
        from ottla.broker.schema_validation.validation import SchemaValidation

        threads = Disk(self._server.call_soon, threads=REGISTRY_THREADS, name="registry")
        return SchemaValidation(self.topics, RegisteredSchemas(self._given, self.clock, threads))

    @cached_property
    def groups(self) -> GroupCoordinator:
        """The group coordinator. Imported at first use: importing it would take a third of a broker's start."""
        from ottla.broker.coordinators.group_coordinator import GroupCoordinator

        return GroupCoordinator(
            self.config, self.coordinator_context, lambda: self.share_persister, self.group_listeners
        )

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator, imported at first use for the same reason."""
        from ottla.broker.coordinators.transaction_coordinator import TransactionCoordinator

        return TransactionCoordinator(self.coordinator_context, self.producer_ids, self.markers.write)

    @cached_property
    def share_coordinator(self) -> ShareCoordinator:
        """The share coordinator, imported at first use for the same reason."""
        from ottla.broker.coordinators.share_coordinator import ShareCoordinator

        updates = self.config.share_coordinator_snapshot_update_records_per_snapshot
        return ShareCoordinator(updates, self.coordinator_context)

    @cached_property
    def share_persister(self) -> SharePersister:
        """Sends operations to share coordinators, including this broker's own."""
        from ottla.broker.coordinators.share_persister import SharePersister

        return SharePersister(
            lambda: self.share_coordinator,
            lambda key: find_leader_of_key(self.topics.find_by_name(SHARE_GROUP_STATE), key),
            self.config.node_id,
            self.timers,
            self.clock,
            self._remote_brokers,
        )

    @property
    def _remote_brokers(self) -> RemoteBrokers | None:
        """Addresses of other brokers and connections to them; None for the only node."""
        if self.is_alone:
            return None
        from ottla.broker.peers.peers import RemoteBrokers

        return RemoteBrokers(self._find_address, lambda purpose, broker: self._connect(f"ottla-{purpose}-{broker}"))

    @cached_property
    def share_partitions(self) -> SharePartitionManager:
        """The partitions that share groups read from this broker, and the sessions of their members."""
        from ottla.broker.share.dead_letter_queue import DeadLetterQueue, DeadLetterSettings
        from ottla.broker.share.led_share_partition import ShareLeaderContext
        from ottla.broker.share.share_counts import ShareCounts
        from ottla.broker.share.share_partition_manager import SharePartitionManager

        remote = self._remote_brokers
        letters = DeadLetterQueue(
            self.topics,
            self.partitions,
            self.clock,
            self.config.node_id,
            self.append,
            remote,
            lambda topic: self.request_topics([topic]),
            lambda: DeadLetterSettings(
                self.config.errors_deadletterqueue_topic_name_prefix,
                self.config.errors_deadletterqueue_auto_create_topics_enable,
            ),
            self.timers,
        )
        context = ShareLeaderContext(
            self.share_persister, self.clock, self.timers, self.waiting, self.share_settings, letters, ShareCounts()
        )
        limit = lambda: self.config.group_share_max_share_sessions  # noqa: E731
        return SharePartitionManager(self.topics, self.partitions, context, limit)

    def share_settings(self, group_id: str) -> ShareGroupSettings:
        """Return the settings of a share group."""
        return self._share_settings.find(group_id)

    @cached_property
    def _share_settings(self) -> ShareSettings:
        from ottla.broker.share.share_group_settings import ShareSettings

        return ShareSettings(
            lambda: self.config,
            lambda: self.topics.group_configs,
            lambda: self.features.finalized.get(SHARE_VERSION, 0) >= DEAD_LETTERS_SINCE,
        )

    @cached_property
    def end_offsets(self) -> EndOffsets:
        """The end offsets of partitions on all brokers, for the lag of share groups."""
        from ottla.broker.coordinators.end_offsets import EndOffsets

        return EndOffsets(self.topics, self.partitions, self.config.node_id, self._remote_brokers)

    @cached_property
    def connection_rates(self) -> ConnectionRates:
        """The rates of new connections, and their limits."""
        count, seconds = self._given.quota_window_num, self._given.quota_window_size_seconds
        return ConnectionRates(lambda: self.client_quotas, count, seconds)

    @cached_property
    def telemetry(self) -> TelemetryReceiver:
        """The metrics that clients push."""
        from ottla.broker.client_telemetry import TelemetryReceiver

        return TelemetryReceiver(lambda: self.config, lambda: self.topics.subscriptions)

    @property
    def coordinator_context(self) -> CoordinatorContext:
        from ottla.broker.coordinators.coordinator_runtime import CoordinatorContext

        return CoordinatorContext(
            topics=self.topics,
            partitions=self.partitions,
            clock=self.clock,
            timers=self.timers,
            disk=self._disk,
            commitment=self.commitment,
            on_append=self.appended,
            ensure_topic=self.ensure_topic,
            take_out_of_service=self.take_out_of_service,
        )

    @cached_property
    def commitment(self) -> Commitment:
        """Responses of the coordinators that wait until their records are committed."""
        from ottla.broker.coordinators.commitment import Commitment

        return Commitment(self.waiting, self.clock)

    def ensure_topic(self, name: str) -> ClusterTopic | CreatableTopicResult:
        """Return a topic, or an error after a request to the controllers to create it.

        The topic exists only some time after this returns, so the client has to retry.
        """
        return self.ensure_topics([name])[name]

    def ensure_topics(self, names: Sequence[str]) -> dict[str, ClusterTopic | CreatableTopicResult]:
        """Return several topics like `ensure_topic`. Missing ones are requested together."""
        missing = [name for name in names if self.topics.find_by_name(name) is None]
        for first in range(0, len(missing), MADE_TOGETHER):
            some = missing[first : first + MADE_TOGETHER]
            self.request_topics([self.topics.complete_creation(name) for name in some])
        code, text = ErrorCode.COORDINATOR_NOT_AVAILABLE, "the controllers have been asked to make it"
        return {
            name: self.topics.find_by_name(name) or CreatableTopicResult(name=name, error_code=code, error_message=text)
            for name in names
        }

    def request_topics(self, topics: Sequence[CreatableTopic]) -> None:
        """Have the active controller create topics."""
        self._membership.errands.create_topics(topics)

    def find_creation_error(self, name: str) -> str:
        """Return the last error of a topic that the controllers could not create; empty if there is none."""
        return self._membership.errands.find_refusal(name)

    def led(self, partition: Partition) -> None:
        """Handle that this broker leads a partition now.

        The transaction coordinator loads it at once, to finish transactions that were being ended. The group
        coordinator loads it at the first request.
        """
        if partition.topic_partition.topic == TRANSACTION_STATE:
            self.transactions.load_elected(partition)

    def lost(self, partition: Partition) -> None:
        """Handle that this broker does not lead a partition any more."""
        if partition.topic_partition.topic == CONSUMER_OFFSETS:
            self.groups.retire(partition)
        elif partition.topic_partition.topic == TRANSACTION_STATE:
            self.transactions.retire(partition)
        elif partition.topic_partition.topic == SHARE_GROUP_STATE:
            self.share_coordinator.retire(partition)
        elif "share_partitions" in vars(self):
            self.share_partitions.retire(partition)

    def topics_deleted(self, names: Collection[str]) -> None:
        """Delete the committed offsets of deleted topics, and the states of share groups that read them."""
        if self.topics.find_by_name(CONSUMER_OFFSETS) is not None:
            self.groups.topics_deleted(names)
        if "share_coordinator" in vars(self):
            self.share_coordinator.drop_deleted_topics()
        if "share_partitions" in vars(self):
            self.share_partitions.drop_deleted_topics()

    def disconnected(self, connection: Connection) -> None:
        """Handle the end of a client's connection: its share sessions are closed."""
        if "share_partitions" in vars(self):
            self.share_partitions.close_connection(connection)

    @cached_property
    def markers(self) -> MarkerWriter:
        """Writes transaction markers to the partitions of a transaction."""
        from ottla.broker.coordinators.transaction_markers import MarkerWriter

        return MarkerWriter(self.end_markers, self.commitment, self._remote_markers)

    @cached_property
    def _remote_markers(self) -> RemoteMarkers | None:
        """Sends markers to leaders on other brokers; None for the only node."""
        if self.is_alone:
            return None
        from ottla.broker.coordinators.remote_markers import RemoteMarkers

        return RemoteMarkers(
            self.topics.find_leader, self._find_address, lambda broker: self._connect(f"ottla-markers-{broker}")
        )

    @cached_property
    def end_markers(self) -> EndMarkers:
        """Appends markers to local partitions, also on behalf of remote coordinators (WriteTxnMarkers)."""
        from ottla.broker.coordinators.transaction_markers import EndMarkers

        def append(partition: Partition, data: bytes, end: TransactionEnd) -> None:
            self.append(partition, data, origin=Origin.COORDINATOR, transaction_version=end.version)

        def appended(partition: Partition, end: TransactionEnd) -> None:
            if self.coordinators is not None:
                self.coordinators.marker_written(partition.topic_partition, end.producer_id)
            self.groups.apply_transaction_end(partition, end.producer_id, commit=end.commit)

        return EndMarkers(self.partitions, self.topics.absent_code, self.clock, append, appended)

    def appended(self, partition: Partition, size_bytes: int) -> None:
        """Handle an append by a coordinator: notify waiting fetches, and flush if it is due.

        Segments that were never flushed would never be compacted.
        """
        self.waiting.handle_append(partition, size_bytes)
        if partition.leadership is not None:
            partition.leadership.handle_append(self.clock.monotonic())
        self.flusher.handle_append(partition, partition.log)

    def report_directory(self, partition: TopicPartition) -> None:
        """Report the directory of a replica, or its future one, to the controllers."""
        self.replicas.report_directory(partition)

    def use_moved_log(self, partition: Partition) -> None:
        """Handle that a partition was moved to another directory: its coordinator and its role continue with the new log."""
        self.replicas.relocate(partition)
        if (coordinator := self._find_coordinator(partition)) is not None:
            coordinator.relocate(partition)

    def is_at_rest(self, partition: Partition) -> bool:
        """Return True if no coordinator reads the partition's whole log."""
        coordinator = self._find_coordinator(partition)
        return coordinator is None or not coordinator.is_loading(partition)

    def _find_coordinator(
        self, partition: Partition
    ) -> GroupCoordinator | TransactionCoordinator | ShareCoordinator | None:
        """Return the coordinator with its state in a partition's log, if there is one."""
        match partition.topic_partition.topic:
            case internal_topics.CONSUMER_OFFSETS:
                return self.groups
            case internal_topics.TRANSACTION_STATE:
                return self.transactions
            case internal_topics.SHARE_GROUP_STATE:
                return self.share_coordinator
        return None

    # failures

    def suspect(self, error: BaseException | None, partition: Partition | None) -> None:
        """Check after an error whether the directory of the partition has failed."""
        self.disk_watch.report_error(error, partition)

    def is_served_elsewhere(self, partition: Partition) -> bool:
        """Return True if another broker leads a partition that is damaged here, or is about to, so that clients should retry."""
        return self.replicas.is_served_elsewhere(partition)

    def take_out_of_service(self, partition: Partition, error: OutOfServiceError) -> KafkaError:
        """Take a partition out of service after a failure to read its whole log. Return the error for the client.

        If other replicas are complete, one of them leads in a moment, and this one is repaired: the client should look
        for the new leader.
        """
        if self.is_served_elsewhere(partition):
            return KafkaError(
                ErrorCode.NOT_COORDINATOR, f"{partition} is damaged on this broker: another broker must lead it"
            )
        return partition.take_out_of_service(error)

    def _take_offline(self, directory: UUID, partitions: Sequence[Partition]) -> None:
        """Stop using partitions of a failed directory: their coordinators and roles end, and the controllers learn of it."""
        for each in partitions:
            try:
                self.lost(each)
            except KafkaError as error:
                log.error("%s: %s", each.topic_partition, error)
        if not self.is_alone:
            self.replicas.stop(partitions)
            self._membership.report_failed_directory(directory)

    @property
    def config(self) -> BrokerConfig:
        """The settings, with dynamic changes."""
        return self.topics.config

    @property
    def cluster_id(self) -> str:
        return self.directory.cluster_id

    @property
    def observed(self) -> ObservedMetadata:
        """The committed metadata of the cluster."""
        return self._cluster

    @property
    def metadata_log(self) -> Log:
        """The log of the cluster's metadata."""
        return self._cluster.log

    @property
    def client_quotas(self) -> ClientQuotas:
        return self._cluster.machine.quotas

    def address_for(self, connection: Connection) -> tuple[str, int]:
        """Return the address of this broker for a client: the advertised one, or the one it is connected to."""
        return self._advertised.get(connection.listener) or connection.local

    def address_of(self, broker: KnownBroker, connection: Connection) -> tuple[str, int]:
        """Return the address of a broker for a client: as registered. The only node has the address by which it was found."""
        return self.address_for(connection) if self.is_alone else (broker.host, broker.port)

    @property
    def is_alone(self) -> bool:
        """True if this is the only node of its cluster."""
        return self._given.is_alone

    def append(
        self, partition: Partition, data: Buffer, *, origin: Origin = Origin.CLIENT, transaction_version: int = 0
    ) -> Appended:
        """Append batches and notify waiting fetches; arguments and errors are those of `Log.append`."""
        try:
            opened = partition.log
            appended = opened.append(
                data,
                leader_epoch=partition.leader_epoch,
                now_ms=self.clock.wall_ms(),
                origin=origin,
                transaction_version=transaction_version,
            )
        except KafkaError as error:
            self.note_failure(partition, error)
            raise
        self.note_append(partition, opened, appended, len(data), origin)
        return appended

    def note_append(self, partition: Partition, opened: Log, appended: Appended, size: int, origin: Origin) -> None:
        """Handle an append of `size` bytes: notify waiting fetches, and flush if it is due."""
        if partition.failing:
            partition.failing = False
            log.warning("%s takes records again", partition.topic_partition)
        # A batch that had been appended before has no new records for readers.
        if (partition.waiting or partition.watchers) and not appended.repeated:
            if origin is Origin.COORDINATOR:
                # A marker makes earlier records readable for `read_committed`.
                self.waiting.recheck([partition])
            else:
                self.waiting.handle_append(partition, size)
        if partition.leadership is not None:
            partition.leadership.handle_append(self.clock.monotonic())
        # A flush may be due by count or by time (`flush.messages`, `flush.ms`).
        self.flusher.handle_append(partition, opened)

    def note_failure(self, partition: Partition, error: KafkaError) -> None:
        """Log a disk failure once per partition, as a rejected producer retries ten times a second."""
        if error.code == ErrorCode.KAFKA_STORAGE_ERROR and not partition.failing and partition.fault is None:
            partition.failing = True
            log.error("%s takes no records until its disk does: %s", partition.topic_partition, error)
        self.disk_watch.report_error(error, partition)

    def lead(
        self,
        partition: Partition,
        assignment: ReplicaAssignment,
        brokers: LiveBrokers,
        on_change: Callable[[Leadership], None] = ignore,
    ) -> None:
        """Lead a partition, as the metadata assigns it. `on_change` is called when the ISR may have to change."""
        now, max_lag = self.clock.monotonic(), self.config.replica_lag_time_max_ms / 1000
        become_leader(partition, self.config.node_id, assignment, brokers, self.waiting, now, max_lag, on_change)

    def count_use(self) -> None:
        """Start to count the usage of clients if there is a quota, and stop if there is none."""
        limited = self.client_quotas.has_limits(*OF_CLIENTS)
        if not limited:
            self.quotas = None
        elif self.quotas is None:
            self.quotas = QuotaManager(
                lambda: self.client_quotas, self._given.quota_window_num, self._given.quota_window_size_seconds
            )


def open_metadata_copy(
    config: BrokerConfig, directory: DataDirectory | DataDirectories, clock: Clock, disk: Disk
) -> ObservedMetadata:
    """Open the copy of the metadata log of a broker without the controller role."""
    from ottla.broker.metadata.observed_snapshots import snapshot_rules

    directory.ensure_whole(METADATA_PARTITION, is_copy=True)
    opened = directory.open_log(METADATA_PARTITION, METADATA_LOG, now_ms=clock.wall_ms())
    return ObservedMetadata(opened, clock, snapshot_rules(config), disk.submit)

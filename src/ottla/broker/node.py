"""The broker without its sockets: topics, partitions, groups, and what happens to them with time.

Handlers work on this; the server's loop drives it. Everything is called in the loop's thread.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

from ottla.broker.access import access_over
from ottla.broker.authentication.delegation_tokens import DelegationTokens
from ottla.broker.authentication.passwords import Passwords
from ottla.broker.cluster.brokers import Brokers
from ottla.broker.cluster.features import Features
from ottla.broker.cluster.own_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ottla.broker.cluster.placement import Placement
from ottla.broker.cluster.producer_ids import ProducerIds
from ottla.broker.cluster.topics import Topics, deleted_topics
from ottla.broker.coordinators.surroundings import Surroundings
from ottla.broker.disk import Disk
from ottla.broker.fetching.fetch_session_cache import FetchSessionCache
from ottla.broker.fetching.waiting import Waiting
from ottla.broker.machines.metadata_coding import METADATA_CODING
from ottla.broker.machines.runtime import Runtime
from ottla.broker.machines.snapshots import Snapshots
from ottla.broker.partitions.cleaning import Cleaning
from ottla.broker.partitions.disk_watch import DiskWatch
from ottla.broker.partitions.flusher import Flusher
from ottla.broker.partitions.leadership import lead
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import METADATA_LOG, METADATA_PARTITION, Partitions
from ottla.broker.partitions.refused_sequences import RefusedSequences
from ottla.broker.partitions.relocations import Relocations
from ottla.broker.quota_manager import ConnectionRates, QuotaManager
from ottla.broker.replication.throttled_copies import LEADER, ThrottledCopies
from ottla.broker.requests.connection import Connection
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.cluster.events import ClientQuotasChanged, NodeStarted
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.topic import Topic
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.quotas.client_quotas import OF_CLIENTS, ClientQuotas
from ottla.coordination.replication.assignment import Assignment, LiveBrokers
from ottla.errors import ErrorCode, KafkaError
from ottla.kafka_id import id_of
from ottla.model import INT32_MAX, Buffer, TopicPartition
from ottla.protocol.messages.alter_client_quotas import RequestEntryData
from ottla.protocol.messages.api_versions import ApiVersion
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicResult
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.storage.log.append_path import Appended
from ottla.storage.producers.producer_entry import Origin
from ottla.storage.state_log.voter import Voter

if TYPE_CHECKING:
    from ottla.broker.authentication.authentication import Authentication
    from ottla.broker.coordinators.commitment import Commitment
    from ottla.broker.coordinators.elsewhere import CoordinatorsElsewhere
    from ottla.broker.coordinators.end_markers import EndMarkers, TransactionEnd
    from ottla.broker.coordinators.groups import Groups
    from ottla.broker.coordinators.marker_writer import MarkerWriter
    from ottla.broker.coordinators.transaction_coordinator import TransactionCoordinator
    from ottla.broker.machines.observed_metadata import ObservedMetadata
    from ottla.broker.peers.split import Split
    from ottla.broker.telemetry import Telemetry

log = logging.getLogger(__name__)


class BrokerNode:
    """One broker's state, over a data directory that is open and locked."""

    def __init__(
        self,
        config: BrokerConfig,
        directory: DataDirectory | DataDirectories,
        clock: Clock,
        timers: Timers,
        disk: Disk,
        apis: Sequence[ApiVersion],
        observed: ObservedMetadata | None = None,
    ) -> None:
        """`observed` is the metadata of the controller role in this process; without it the broker has a log of its own."""
        self._given = config
        self.apis = apis
        """What this broker speaks."""
        self._advertised = {name: (host, port) for name, host, port in config.advertised_endpoints().values()}
        self.reached_at: Mapping[str, str] = {}
        """Where each listener can be reached, once that is known."""
        self.split: Split | None = None
        """Of a cluster's: which others it does not reach."""
        self.clock = clock
        self.directory = directory
        self.timers = timers
        self.waiting = Waiting(timers)
        self.fetch_sessions = FetchSessionCache(
            config.max_incremental_fetch_session_cache_slots, lambda: random.randrange(1, INT32_MAX)
        )
        self.flusher = Flusher(disk, timers, clock)
        self.partitions = Partitions(config, directory, clock, disk)
        self.cleaning = Cleaning(config, directory, disk, timers, clock)
        self.disk_watch = DiskWatch(directory, self.partitions, self.waiting, self.lost, timers, clock, disk)
        self.refused_sequences = RefusedSequences()
        """Refused batches that must be appended before those after them."""
        self.partitions.suspect = self.flusher.suspect = self.disk_watch.suspect
        self._disk = disk
        cluster = observed or self._open_metadata()
        if not config.joins:
            cluster.ask(lambda ticket: NodeStarted(ticket, config.node_id))
        self.brokers = Brokers(cluster) if config.joins else None
        """The brokers of the cluster that this one has joined; None where it is the only one."""
        self.make_topics: Callable[[Sequence[CreatableTopic]], None] = lambda topics: None
        """Have the controllers of that cluster make a topic."""
        self.coordinators: CoordinatorsElsewhere | None = None
        """Those of transactions, at whichever broker of that cluster."""
        self.features = Features(cluster, None if config.joins else directory.path)
        self.topics = Topics(config, cluster, self.partitions, self.waiting)
        self.topics.on_configured(self.cleaning.configure)
        limit = lambda: self.config.leader_replication_throttled_rate  # noqa: E731
        self.copies_sent = ThrottledCopies(LEADER, limit, self.topics.configs_of, config.node_id, clock)
        """What other brokers copy from here, next to what they may."""
        self.producer_ids = ProducerIds(cluster, config.node_id)
        self.access = access_over(cluster, config)
        """Who may do what; None where everybody may do everything."""
        self._cluster = cluster
        self.quotas: QuotaManager | None = None
        """What clients have used, where something is limited."""
        self._count_use()
        self.passwords = Passwords(cluster, directory.meta.directory_id.encode())
        self.tokens = DelegationTokens(config, cluster, clock)
        self.authentication: Authentication
        """Who clients are; set by whoever opens the listeners."""
        self._begin(cluster)

    def _begin(self, cluster: Runtime[ClusterMetadata]) -> None:
        """See to what the last run left, and say where everything is."""
        placement = Placement(self.directory, cluster, self._given)
        self.topics.on_new = placement.settle
        self.relocations = self._relocations(placement)
        if not self._given.joins:
            self.partitions.see_to_strays(lambda: deleted_topics(cluster))
            self.topics.on_new(self.topics.all())
        if not self.directory.clean:
            self.partitions.recover()

    @cached_property
    def groups(self) -> Groups:
        """Loaded when somebody first asks: a third of the time in which a broker is ready would go into it."""
        from ottla.broker.coordinators.groups import Groups

        return Groups(self.config, self._surroundings, self._disk)

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        """Loaded when somebody first asks, for the same reason."""
        from ottla.broker.coordinators.transaction_coordinator import TransactionCoordinator

        return TransactionCoordinator(self._surroundings, self.producer_ids, self.markers.write, self._disk)

    @cached_property
    def connection_rates(self) -> ConnectionRates:
        """How often connections come, next to how often they may."""
        count, seconds = self._given.quota_window_num, self._given.quota_window_size_seconds
        return ConnectionRates(lambda: self.client_quotas, count, seconds)

    @cached_property
    def telemetry(self) -> Telemetry:
        """What clients push of their metrics."""
        from ottla.broker.telemetry import Telemetry

        return Telemetry(lambda: self.config, lambda: self.topics.subscriptions)

    @property
    def _surroundings(self) -> Surroundings:
        return Surroundings(
            self.topics, self.partitions, self.clock, self.timers, self.appended, self.commitment, self.ensure_topic
        )

    @cached_property
    def commitment(self) -> Commitment:
        """Where the coordinators' answers wait until they are true everywhere."""
        from ottla.broker.coordinators.commitment import Commitment

        return Commitment(self.waiting, self.clock)

    def ensure_topic(self, name: str) -> Topic | CreatableTopicResult:
        """A topic that is wanted, and made where it is missing; in a cluster the controllers make it, which takes until after the answer."""
        return self.ensure_topics([name])[name]

    def ensure_topics(self, names: Sequence[str]) -> dict[str, Topic | CreatableTopicResult]:
        """The same for many, which are made together."""
        if self.brokers is None:
            return self.topics.ensure_all(names)
        missing = [name for name in names if self.topics.named(name) is None]
        if missing:
            self.make_topics([self.topics.of_the_cluster(name) for name in missing])
        code, text = ErrorCode.COORDINATOR_NOT_AVAILABLE, "the controllers have been asked to make it"
        return {
            name: self.topics.named(name) or CreatableTopicResult(name=name, error_code=code, error_message=text)
            for name in names
        }

    def led(self, partition: Partition) -> None:
        """A partition is led here now. Groups wait until somebody asks for them; of ends of transactions nobody may."""
        if partition.topic_partition.topic == TRANSACTION_STATE:
            self.transactions.take_up(partition)

    def lost(self, partition: Partition) -> None:
        """Another broker leads a partition now, or nobody."""
        if partition.topic_partition.topic == CONSUMER_OFFSETS:
            self.groups.retire(partition)
        elif partition.topic_partition.topic == TRANSACTION_STATE:
            self.transactions.retire(partition)

    def topics_deleted(self, names: Collection[str]) -> None:
        """What groups committed for these topics counts no more."""
        if self.topics.named(CONSUMER_OFFSETS) is not None:
            self.groups.topics_deleted(names)

    @cached_property
    def markers(self) -> MarkerWriter:
        """The way of markers to their partitions."""
        from ottla.broker.coordinators.marker_writer import MarkerWriter

        return MarkerWriter(self.end_markers, self.commitment)

    @cached_property
    def end_markers(self) -> EndMarkers:
        """Also for coordinators of transactions elsewhere (WriteTxnMarkers)."""
        from ottla.broker.coordinators.end_markers import EndMarkers

        def append(partition: Partition, data: bytes, end: TransactionEnd) -> None:
            self.append(partition, data, origin=Origin.COORDINATOR, transaction_version=end.version)

        def appended(partition: Partition, end: TransactionEnd) -> None:
            if self.coordinators is not None:
                self.coordinators.marker_written(partition.topic_partition, end.producer_id)
            self.groups.transaction_ended(partition, end.producer_id, commit=end.commit)

        return EndMarkers(self.partitions, self.clock, append, appended)

    def appended(self, partition: Partition, size_bytes: int) -> None:
        """After a machine has written to its log: wake who waits, and flush what is full, or it is never compacted."""
        self.waiting.appended(partition, size_bytes)
        if partition.leadership is not None:
            partition.leadership.appended(self.clock.monotonic())
        self.flusher.appended(partition, partition.log)

    def relocated(self, partition: Partition) -> None:
        """A partition has another log, in another directory: who coordinates by it goes on with that."""
        if (coordinator := self._coordinator_by(partition)) is not None:
            coordinator.relocate(partition)

    def _is_at_rest(self, partition: Partition) -> bool:
        coordinator = self._coordinator_by(partition)
        return coordinator is None or not coordinator.is_loading(partition)

    def _coordinator_by(self, partition: Partition) -> Groups | TransactionCoordinator | None:
        """Whose state is in a partition's log."""
        topic = partition.topic_partition.topic
        return self.groups if topic == CONSUMER_OFFSETS else self.transactions if topic == TRANSACTION_STATE else None

    def _relocations(self, placement: Placement) -> Relocations:
        """What moves copies between the directories of this broker."""
        limit = lambda: self.config.replica_alter_log_dirs_io_max_bytes_per_second  # noqa: E731
        made = Relocations(self.directory, self.partitions, limit, self._disk, self.timers, self.clock)
        made.is_at_rest, made.moved, made.suspect = self._is_at_rest, self.relocated, self.disk_watch.suspect
        made.tell = lambda name: placement.note({name: self._home_of(name)})
        return made

    def _home_of(self, name: TopicPartition) -> uuid.UUID:
        """The directory that the metadata are to say."""
        return self.relocations.told_home(name) or self.directory.place(name).directory_id

    @property
    def config(self) -> BrokerConfig:
        """What the broker was started with, with what was changed at run time."""
        return self.topics.config

    @property
    def cluster_id(self) -> str:
        return self.directory.cluster_id

    @property
    def observed(self) -> ObservedMetadata:
        """The metadata of the cluster that this broker has joined."""
        assert self._given.joins
        return cast("ObservedMetadata", self._cluster)

    @property
    def metadata_log(self) -> Log:
        """The log of the cluster's metadata."""
        return self._cluster.log

    @property
    def client_quotas(self) -> ClientQuotas:
        return self._cluster.machine.quotas

    def change_quotas(self, entries: Sequence[RequestEntryData], *, validate_only: bool) -> list[Refusal | None]:
        """Set and lift limits, in force at once; for each entity None, or why not. KafkaError where none can be kept."""
        try:
            refusals: list[Refusal | None] = self._cluster.ask(
                lambda ticket: ClientQuotasChanged(ticket, entries, validate_only)
            )
        finally:
            self._count_use()
        return refusals

    def address_for(self, connection: Connection) -> tuple[str, int]:
        """Where a client is to find this broker: as configured, else where it found us."""
        return self._advertised.get(connection.listener) or connection.local

    def append(
        self, partition: Partition, data: Buffer, *, origin: Origin = Origin.CLIENT, transaction_version: int = 0
    ) -> Appended:
        """Append batches and wake those who wait for them; arguments and errors are those of `Log.append`."""
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
        """See to what follows an append of `size` bytes: who waits for it, and when it is flushed."""
        if partition.failing:
            partition.failing = False
            log.warning("%s takes records again", partition.topic_partition)
        # A batch that was there already brings nothing to readers.
        if (partition.waiting or partition.watchers) and not appended.repeated:
            if origin is Origin.COORDINATOR:
                # The end of a transaction lets readers see what had come in long before it.
                self.waiting.look_again([partition])
            else:
                self.waiting.appended(partition, size)
        if partition.leadership is not None:
            partition.leadership.appended(self.clock.monotonic())
        # A flush may be due by count or by time (`flush.messages`, `flush.ms`).
        self.flusher.appended(partition, opened)

    def note_failure(self, partition: Partition, error: KafkaError) -> None:
        """Say that a disk fails: once, since a producer that is refused comes again ten times a second."""
        if error.code == ErrorCode.KAFKA_STORAGE_ERROR and not partition.failing and partition.fault is None:
            partition.failing = True
            log.error("%s takes no records until its disk does: %s", partition.topic_partition, error)
        self.disk_watch.suspect(error, partition)

    def lead(self, partition: Partition, assignment: Assignment, brokers: LiveBrokers) -> None:
        """Lead a partition, as the metadata say now."""
        now, max_lag = self.clock.monotonic(), self.config.replica_lag_time_max_ms / 1000
        lead(partition, self.config.node_id, assignment, brokers, self.waiting, now, max_lag)

    def _count_use(self) -> None:
        """Count what clients use if any of it is limited."""
        limited = self.client_quotas.limits(*OF_CLIENTS)
        if not limited:
            self.quotas = None
        elif self.quotas is None:
            self.quotas = QuotaManager(
                lambda: self.client_quotas, self._given.quota_window_num, self._given.quota_window_size_seconds
            )

    def _open_metadata(self) -> Runtime[ClusterMetadata]:
        self.directory.ensure_whole(METADATA_PARTITION, is_copy=self._given.joins)
        opened = self.directory.open_log(METADATA_PARTITION, METADATA_LOG, now_ms=self.clock.wall_ms())
        if self._given.joins:
            from ottla.broker.machines.observed_metadata import ObservedMetadata  # only where there is a cluster
            from ottla.broker.machines.observed_snapshots import snapshot_rules

            observed = ObservedMetadata(opened, self.clock, snapshot_rules(self._given))
            observed.snapshots.beside = self._disk.submit
            return observed
        meta = self.directory.meta
        epoch = max(opened.epochs.latest(), 0)  # where Kafka was before, it led more than once
        return Runtime(
            ClusterMetadata,
            opened,
            METADATA_CODING,
            self.clock,
            # A temporary directory does not outlive the broker, so it need not outlive the machine.
            durable=(durable := bool(self._given.log_dirs)),
            snapshots=Snapshots(
                self._given.metadata_log_max_record_bytes_between_snapshots,
                Voter(meta.node_id, id_of(meta.directory_id)),
                durable=durable,
            ),
            leader_epoch=lambda: epoch,
        )

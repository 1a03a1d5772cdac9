"""The settings of a broker, under Kafka's names and with Kafka's defaults.

Three defaults are ours: the listener is on loopback, a single broker is complete, so nothing is replicated, and the
memory for requests is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from ottla.broker.settings import config_checks, listener_settings, roles
from ottla.broker.settings.cluster_config import ClusterConfig
from ottla.broker.settings.connection_limits import read_overrides
from ottla.broker.settings.endpoints import Endpoint, map_protocols, parse_advertised, parse_listeners
from ottla.broker.settings.listener_config import ListenerConfig
from ottla.broker.settings.quorum_settings import check_controlling
from ottla.broker.settings.topic_configs import TOPIC_CONFIGS
from ottla.config import Between, Password, read_settings
from ottla.coordination.cluster.group_configs import Bounds, ConfigBound, parse_tags
from ottla.coordination.cluster.topic_configs import format_value, list_defaults
from ottla.model import INT32_MAX, INT64_MAX
from ottla.settings_class import beside, changed, settings
from ottla.storage.log_config import LogConfig

Size = Annotated[int, Between(1, INT32_MAX)]
SegmentSize = Annotated[int, Between(1_048_576, INT32_MAX)]


@settings
class BrokerConfig(ListenerConfig, ClusterConfig):
    """The settings of a broker."""

    node_id: Annotated[int, Between(0, INT32_MAX)] = 1
    """The number of this broker; a data directory belongs to one."""

    listeners: str = "127.0.0.1:9092"
    """The addresses to listen on, `host:port`, with commas between. Several should have names:
    `INTERNAL://127.0.0.1:9092, EXTERNAL://0.0.0.0:9094`. Port 0 takes a free one; an empty host, or 0.0.0.0, is
    every address of this machine, which all of its networks can reach.
    """

    advertised_listeners: str = ""
    """The addresses that clients connect to, each for the listener of its name: `EXTERNAL://example.org:9094`. Clients
    of other listeners use the address of their first connection.
    """

    listener_security_protocol_map: str = ""
    """The protocol of each listener, `NAME:PROTOCOL` with commas between: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. A
    listener that is missing has the protocol of its name, or PLAINTEXT if this setting is empty.
    """

    inter_broker_listener_name: str | None = None
    """The listener for connections between brokers of a cluster; it has the same name on every broker."""

    security_inter_broker_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Without `inter.broker.listener.name`: the name of the listener for connections between brokers."""

    sasl_mechanism_inter_broker_protocol: str = "GSSAPI"
    """The mechanism by which this broker authenticates to other brokers: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or
    `GSSAPI`. Its user is in `listener.name.<listener>.<mechanism>.sasl.jaas.config`.
    """

    sasl_mechanism_controller_protocol: str = "GSSAPI"
    """The same for controllers, on the first listener of `controller.listener.names`."""

    connection_failed_authentication_delay_ms: Annotated[int, Between(0, INT32_MAX)] = 100
    """The delay of the response to a failed authentication, which slows down guessing."""

    add_scram: Password | None = None
    """Users that the broker creates at its first start, one a line, in the form of Kafka's `--add-scram`:
    `SCRAM-SHA-512=[name=alice,password=…]`. A user with a password for that mechanism keeps it.
    """

    delegation_token_secret_key: Password | None = None
    """The secret for delegation tokens; without it they are disabled. A change invalidates all tokens."""

    delegation_token_max_lifetime_ms: Annotated[int, Between(1)] = 604_800_000
    """The maximum lifetime of a delegation token, with all renewals."""

    delegation_token_expiry_time_ms: Annotated[int, Between(1)] = 86_400_000
    """The time after which a delegation token has to be renewed."""

    delegation_token_expiry_check_interval_ms: Annotated[int, Between(1)] = 3_600_000
    """The interval at which expired tokens are removed."""

    controller_listener_names: tuple[str, ...] = ()
    """The names of controllers' listeners, which a broker does not open. The first one is that of its controllers, with
    the protocol in `listener.security.protocol.map`.
    """

    log_dirs: str = ""
    """The directories of the topics, with commas between; empty for a temporary one that is deleted when the broker
    closes. Each partition is in one of them, a new one in that with the fewest. If one fails, only its own
    partitions are offline.
    """

    metadata_log_dir: str = ""
    """The directory of the metadata, without which the broker stops; the first of `log.dirs` if it is empty."""

    log_dir_failure_timeout_ms: Annotated[int, Between(1)] = 30_000
    """Time after which a broker of a cluster stops if it cannot report a failed directory to the controllers."""

    num_partitions: Annotated[int, Between(1, INT32_MAX)] = 1
    """The number of partitions of a topic that is created without a number."""

    default_replication_factor: Annotated[int, Between(1, INT32_MAX)] = 1
    """The replication factor of a topic that is created without one. A single broker can have one replica."""

    min_insync_replicas: Annotated[int, Between(1, INT32_MAX)] = 1
    """The replicas in sync that a produce request with `acks=all` requires, unless its topic has a value."""

    auto_create_topics_enable: bool = True
    """Create a topic when a client first requests it."""

    delete_topic_enable: bool = True
    """Allow clients to delete topics."""

    message_max_bytes: Annotated[int, Between(0, INT32_MAX)] = 1_048_588
    """The largest record batch, compressed as it was sent."""

    max_decompressed_message_bytes: Annotated[int, Between(0, INT32_MAX)] = 2_147_483_639
    """The largest record of a compressed batch, without compression, in bytes. With a value below the default, the
    broker decompresses each batch to check it.
    """

    leader_replication_throttled_rate: Annotated[int, Between(0)] = INT64_MAX
    """The rate in bytes per second at which leaders send throttled replicas. Kafka's tools set and remove it; a single
    broker has no followers, so it has no effect there.
    """

    follower_replication_throttled_rate: Annotated[int, Between(0)] = INT64_MAX
    """The rate in bytes per second at which followers fetch throttled replicas."""

    replica_alter_log_dirs_io_max_bytes_per_second: Annotated[int, Between(0)] = INT64_MAX
    """The rate in bytes per second at which replicas move to another directory of their broker."""

    fetch_max_bytes: Annotated[int, Between(1024, INT32_MAX)] = 57_671_680
    """The largest response to a fetch, whatever the client requests; a first batch that is larger is still returned
    whole.
    """

    metadata_log_max_record_bytes_between_snapshots: Annotated[int, Between(1)] = 20_971_520
    """The maximum growth of the metadata log before a snapshot replaces its older records; a snapshot is written
    earlier if it would be much smaller than the log.
    """

    metadata_log_max_snapshot_interval_ms: Annotated[int, Between(0)] = 3_600_000
    """The time after which a broker of a cluster writes a snapshot of the metadata in any case, so that a start reads
    few records; 0 is never.
    """

    metadata_max_retention_bytes: Annotated[int, Between(-1)] = 104_857_600
    """The size of the metadata log and its snapshots above which the oldest are deleted, except for the newest
    snapshot; -1 is never.
    """

    metadata_max_retention_ms: Annotated[int, Between(-1)] = 604_800_000
    """The age of the last record in such a snapshot after which it is deleted, except for the newest snapshot."""

    telemetry_max_bytes: Annotated[int, Between(1, INT32_MAX)] = 1_048_576
    """The largest push of metrics by a client, compressed or not. A subscription has the number of pushes."""

    max_incremental_fetch_session_cache_slots: Annotated[int, Between(0, INT32_MAX)] = 1000
    """The maximum number of fetch sessions; a consumer without one names all of its partitions in each request."""

    socket_request_max_bytes: Annotated[int, Between(1024, INT32_MAX)] = 104_857_600
    """The maximum size of a request; a connection that announces a larger one is closed."""

    queued_max_request_bytes: Annotated[int, Between(-1)] = 268_435_456
    """The memory for incoming and waiting requests; -1 is no limit, which is Kafka's default. When it is exhausted,
    large requests are read one at a time: a single one is always read, even if it is larger. Small ones are not
    delayed.
    """

    max_connections: Annotated[int, Between(1, INT32_MAX)] = INT32_MAX
    """The maximum number of connections; further ones wait until one closes. One eighth of the file descriptors of the
    process is always reserved for files.
    """

    max_connections_per_ip: Annotated[int, Between(0, INT32_MAX)] = INT32_MAX
    """The maximum number of connections from one address; further ones are closed at once."""

    max_connections_per_ip_overrides: tuple[str, ...] = ()
    """The same for single addresses: `10.0.0.5:200`, with commas between."""

    metrics_listen: str = ""
    """The address of `/metrics`, `/healthz` and `/readyz` over HTTP, `host:port`; empty for none. Requires `pip install
    'ottla[metrics]'`.
    """

    schema_registry_url: tuple[str, ...] = ()
    """The schema registry for topics with `key.schema.validation` or `value.schema.validation`: `http://host:port`, several with
    commas between.
    """

    schema_registry_basic_auth_user_info: Password | None = None
    """The login at the registry, `user:password`."""

    schema_registry_ssl_truststore_location: str = ""
    """A PEM file with the authorities that may sign the registry's certificate; empty for those of the system."""

    trace_folder: str = ""
    """The folder of the Unix socket for live views by processes of the same user: `ottla trace broker`, the console's
    X-ray; empty for none.
    """

    request_log: str = ""
    """A file to which a line of JSON is appended for each request, `-` for standard error; empty for none."""

    slow_request_ms: Annotated[int, Between(-1)] = 1000
    """Time from which a request is marked as slow in the request log, its wait for records or for the disk apart; -1 is
    never."""

    connections_max_idle_ms: Annotated[int, Between(-1)] = 600_000
    """Time without a request after which a connection is closed; -1 for never."""

    log_segment_bytes: Size = 1_073_741_824
    """Size at which a segment of a partition is closed and the next one started."""

    log_roll_ms: Annotated[int, Between(1)] = 604_800_000
    """Age at which a segment is closed and the next one started, full or not."""

    log_index_size_max_bytes: Annotated[int, Between(12, INT32_MAX)] = 10_485_760
    """The maximum size of an index file."""

    log_index_interval_bytes: Annotated[int, Between(0, INT32_MAX)] = 4096
    """Bytes of log between two index entries."""

    log_message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    """The timestamps of records: those of the producer, or the broker's clock when they are appended."""

    log_message_timestamp_before_max_ms: Annotated[int, Between(0)] = INT64_MAX
    """The maximum time by which a timestamp of a producer may be behind the broker's clock."""

    log_message_timestamp_after_max_ms: Annotated[int, Between(0)] = 3_600_000
    """The maximum time by which a timestamp of a producer may be ahead of the broker's clock."""

    compression_type: Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"] = "producer"
    """The compression of records on disk; `producer` keeps the compression of the producer."""

    compression_gzip_level: Literal[-1, 1, 2, 3, 4, 5, 6, 7, 8, 9] = -1
    """Level of gzip, -1 for its own default."""

    compression_lz4_level: Annotated[int, Between(1, 17)] = 9
    """Level of lz4."""

    compression_zstd_level: Annotated[int, Between(-131072, 22)] = 3
    """Level of zstd."""

    log_flush_interval_messages: Annotated[int, Between(1)] = INT64_MAX
    """The number of records of a partition after which it is flushed to the disk before they are acknowledged; 1 for
    every batch. By default the operating system decides: a crash of the broker loses no acknowledged record, a crash of
    the machine may lose the last seconds.
    """

    log_flush_interval_ms: Annotated[int, Between(0)] = INT64_MAX
    """The time after which appended records are flushed to the disk."""

    log_flush_offset_checkpoint_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 60_000
    """The interval at which the flushed offsets are written to a file; a restart after a crash does not check the
    records before them.
    """

    replica_lag_time_max_ms: Annotated[int, Between(1)] = 30_000
    """The time that a follower may lag behind its leader before it leaves the ISR."""

    replica_high_watermark_checkpoint_interval_ms: Annotated[int, Between(1)] = 5_000
    """The interval at which the high watermarks of partitions are written to a file."""

    log_cleanup_policy: tuple[Literal["delete", "compact"], ...] = ("delete",)
    """The cleanup of topics without this setting: `delete` deletes old records by age and size, `compact` those with a
    later record of the same key.
    """

    log_retention_ms: Annotated[int, Between(-1)] = 604_800_000
    """Age after which old records are deleted, a file at a time; -1 is never."""

    log_retention_bytes: Annotated[int, Between(-1)] = -1
    """Size of a partition above which its oldest records are deleted, a file at a time; -1 is no limit."""

    log_retention_check_interval_ms: Annotated[int, Between(1)] = 300_000
    """The interval at which retention by age and size is checked."""

    log_cleaner_enable: bool = True
    """Compact topics with the policy `compact`, such as `__consumer_offsets`."""

    log_cleaner_backoff_ms: Annotated[int, Between(1)] = 15_000
    """The interval at which the log cleaner looks for partitions to compact."""

    log_cleaner_dedupe_buffer_size: Annotated[int, Between(96)] = 33_554_432
    """The memory for the keys of a pass of the log cleaner, 32 bytes per key; allocated only during a pass and for
    existing keys. More keys, above a million with this value, need several passes: raise it if a partition has many
    millions. Kafka allocates 128 MiB permanently.
    """

    log_cleaner_min_cleanable_ratio: Annotated[float, Between(0, 1)] = 0.5
    """The share of bytes not compacted yet above which a partition is compacted."""

    log_cleaner_min_compaction_lag_ms: Annotated[int, Between(0)] = 0
    """The age below which a record is not compacted."""

    log_cleaner_max_compaction_lag_ms: Annotated[int, Between(1)] = INT64_MAX
    """The age at which a record is compacted regardless of that share."""

    log_cleaner_delete_retention_ms: Annotated[int, Between(0)] = 86_400_000
    """Time for which the tombstone of a deleted key, and a transaction marker, is kept after its first compaction."""

    producer_id_expiration_ms: Annotated[int, Between(1, INT32_MAX)] = 86_400_000
    """The time for which a partition remembers an idle producer, so that it recognizes its repeated batches."""

    producer_id_expiration_check_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 600_000
    """The interval at which idle producers are removed."""

    offsets_topic_num_partitions: Annotated[int, Between(1, INT32_MAX)] = 50
    """The number of partitions of `__consumer_offsets`; it cannot be changed once the topic exists."""

    offsets_topic_segment_bytes: SegmentSize = 104_857_600
    """The size of a segment of `__consumer_offsets`."""

    offset_metadata_max_bytes: Annotated[int, Between(0, INT32_MAX)] = 4096
    """The maximum size of the metadata of a committed offset in bytes."""

    offsets_retention_minutes: Annotated[int, Between(1, INT32_MAX)] = 10_080
    """The time for which the offsets of a group without members are kept, and offsets of topics that the group does not
    read any more.
    """

    offsets_retention_check_interval_ms: Annotated[int, Between(1)] = 600_000
    """The interval at which expired offsets are removed."""

    group_initial_rebalance_delay_ms: Annotated[int, Between(0, INT32_MAX)] = 3000
    """The wait for further members before the first rebalance of a group; 0 for a broker inside a program, to start at
    once.
    """

    group_min_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 6000
    """The shortest `session.timeout.ms` of members of a group."""

    group_max_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 1_800_000
    """The longest `session.timeout.ms` of members of a group."""

    group_max_size: Annotated[int, Between(1, INT32_MAX)] = INT32_MAX
    """The maximum number of members of a group."""

    group_consumer_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 45_000
    """Time after which a member of a consumer group (KIP-848) that sends no heartbeats is removed."""

    group_consumer_min_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 45_000
    """The minimum of `group.consumer.session.timeout.ms`."""

    group_consumer_max_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 60_000
    """The maximum of `group.consumer.session.timeout.ms`."""

    group_consumer_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 5000
    """The interval of heartbeats of members of a consumer group; a rebalance takes two or three of them."""

    group_consumer_min_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 5000
    """The minimum of `group.consumer.heartbeat.interval.ms`."""

    group_consumer_max_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 15_000
    """The maximum of `group.consumer.heartbeat.interval.ms`."""

    group_consumer_max_size: Annotated[int, Between(1, INT32_MAX)] = INT32_MAX
    """The maximum number of members of a consumer group."""

    group_consumer_assignors: str = "uniform,range"
    """The assignors that members of consumer groups can choose, with commas between; the first is the default."""

    group_consumer_migration_policy: Literal["disabled", "upgrade", "downgrade", "bidirectional"] = "bidirectional"
    """The conversions of groups: `upgrade` makes a classic group a consumer group when a member joins by the new
    protocol, `downgrade` makes it a classic group again when the last such member has left.
    """

    group_share_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 45_000
    """The time without heartbeats after which a member of a share group (KIP-932) is removed."""

    group_share_min_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 45_000
    """The shortest `share.session.timeout.ms` of a group."""

    group_share_max_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 60_000
    """The longest `share.session.timeout.ms` of a group."""

    group_share_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 5000
    """The interval in which members of a share group send heartbeats."""

    group_share_min_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 5000
    """The shortest `share.heartbeat.interval.ms` of a group."""

    group_share_max_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 15_000
    """The longest `share.heartbeat.interval.ms` of a group."""

    group_share_max_size: Annotated[int, Between(1, 1000)] = 200
    """The most members that a share group may have."""

    group_share_max_share_sessions: Annotated[int, Between(1, INT32_MAX)] = 2000
    """The most share sessions of a broker: one for each member that fetches from it."""

    errors_deadletterqueue_auto_create_topics_enable: bool = False
    """Create the topic of a share group's dead letter queue when the first record is copied there."""

    errors_deadletterqueue_topic_name_prefix: str = "dlq."
    """Names of dead letter queues must start with this; empty allows any name."""

    group_share_delivery_count_limit: Annotated[int, Between(2, 25)] = 5
    """The number of deliveries after which a share group gives up a record that was not accepted."""

    group_share_min_delivery_count_limit: Annotated[int, Between(2, 25)] = 2
    """The smallest `share.delivery.count.limit` of a group."""

    group_share_max_delivery_count_limit: Annotated[int, Between(2, 25)] = 10
    """The largest `share.delivery.count.limit` of a group."""

    group_share_record_lock_duration_ms: Annotated[int, Between(1000, 3_600_000)] = 30_000
    """The time for which a member of a share group has acquired a record."""

    group_share_min_record_lock_duration_ms: Annotated[int, Between(1000, 30_000)] = 15_000
    """The shortest `share.record.lock.duration.ms` of a group."""

    group_share_max_record_lock_duration_ms: Annotated[int, Between(30_000, 3_600_000)] = 60_000
    """The longest `share.record.lock.duration.ms` of a group."""

    group_share_partition_max_record_locks: Annotated[int, Between(100, 10_000)] = 2000
    """The most records of a partition that a share group has in flight."""

    group_share_min_partition_max_record_locks: Annotated[int, Between(100, 10_000)] = 100
    """The smallest `share.partition.max.record.locks` of a group."""

    group_share_max_partition_max_record_locks: Annotated[int, Between(100, 10_000)] = 4000
    """The largest `share.partition.max.record.locks` of a group."""

    group_streams_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 45_000
    """The time without heartbeats after which a member of a streams group (KIP-1071) is removed."""

    group_streams_min_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 45_000
    """The shortest `streams.session.timeout.ms` of a group."""

    group_streams_max_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 60_000
    """The longest `streams.session.timeout.ms` of a group."""

    group_streams_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 5000
    """The interval in which members of a streams group send heartbeats."""

    group_streams_min_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 5000
    """The shortest `streams.heartbeat.interval.ms` of a group."""

    group_streams_max_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 15_000
    """The longest `streams.heartbeat.interval.ms` of a group."""

    group_streams_max_size: Annotated[int, Between(1, INT32_MAX)] = INT32_MAX
    """The most members that a streams group may have."""

    group_streams_num_standby_replicas: Annotated[int, Between(0, INT32_MAX)] = 0
    """The number of standby tasks for each task with state."""

    group_streams_max_standby_replicas: Annotated[int, Between(0, INT32_MAX)] = 2
    """The largest `streams.num.standby.replicas` of a group."""

    group_streams_initial_rebalance_delay_ms: Annotated[int, Between(0, INT32_MAX)] = 3000
    """The time for which the first assignment of an empty streams group waits for more members."""

    group_streams_assignment_interval_ms: Annotated[int, Between(0, INT32_MAX)] = 1000
    """The shortest time between two assignments of a streams group."""

    group_streams_min_assignment_interval_ms: Annotated[int, Between(0, INT32_MAX)] = 0
    """The smallest `streams.assignment.interval.ms` of a group."""

    group_streams_max_assignment_interval_ms: Annotated[int, Between(0, INT32_MAX)] = 15_000
    """The largest `streams.assignment.interval.ms` of a group."""

    group_streams_rack_aware_assignment_tags: str = ""
    """The client tags in which the processes with copies of a task should differ, with commas between."""

    group_streams_topology_description_plugin_class: str = ""
    """Where descriptions of the topologies of streams groups are stored: `memory`, or
    `org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin`. Without it none are requested, as in Kafka."""

    share_coordinator_state_topic_num_partitions: Annotated[int, Between(1, INT32_MAX)] = 50
    """Partitions of `__share_group_state`; they cannot be changed once the topic exists."""

    share_coordinator_state_topic_segment_bytes: SegmentSize = 104_857_600
    """The size of a segment of `__share_group_state`."""

    share_coordinator_snapshot_update_records_per_snapshot: Annotated[int, Between(0, INT32_MAX)] = 500
    """The number of updates of a partition's state after which the whole state is written."""

    transaction_state_log_num_partitions: Annotated[int, Between(1, INT32_MAX)] = 50
    """The number of partitions of `__transaction_state`; it cannot be changed once the topic exists."""

    transaction_state_log_segment_bytes: SegmentSize = 104_857_600
    """The size of a segment of `__transaction_state`."""

    transaction_max_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 900_000
    """The longest `transaction.timeout.ms` of producers: an open transaction makes readers of committed records wait
    for that time.
    """

    transaction_partition_verification_enable: bool = True
    """Accept a transactional batch only if the coordinator has the partition in the transaction."""

    transactional_id_expiration_ms: Annotated[int, Between(1, INT32_MAX)] = 604_800_000
    """Time after which an unused transactional id expires."""

    transaction_abort_timed_out_transaction_cleanup_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 10_000
    """The interval at which timed-out transactions are aborted."""

    authorizer_class_name: str = ""
    """The authorizer of clients' requests: the ACLs of the cluster, by the name of Kafka's class or `standard`. Without
    it, every client that reaches the broker is authorized for everything.
    """

    super_users: str = ""
    """Principals with all permissions regardless of ACLs, separated by semicolons: `User:admin;User:ops`."""

    allow_everyone_if_no_acl_found: bool = False
    """Authorize every client for everything on a resource without ACLs."""

    audit_log: str = ""
    """A file for a line of JSON about each thing that a client wanted to do, with the verdict; empty for none."""

    audit_log_max_bytes: Annotated[int, Between(1024)] = 104_857_600
    """Size at which that file is put aside, in place of the one that was put aside before."""

    audit_log_denied_only: bool = False
    """Log only denied requests in the audit log."""

    quota_window_num: Annotated[int, Between(2, 1000)] = 11
    """Samples over which what a client uses is averaged."""

    quota_window_size_seconds: Annotated[int, Between(1, 3600)] = 1
    """Seconds of a sample."""

    given: frozenset[str] = beside(default_factory=frozenset)
    """The fields that were set, to their default or to another value."""

    also_given: Mapping[str, str] = beside(default_factory=dict)
    """Settings of Kafka's that were given as well, as they were written: in another unit (`log.retention.hours`), or without effect."""
    for_listeners: Mapping[str, Any] = beside(default_factory=dict)
    """Settings of single listeners, by their whole names."""

    def explicit(self) -> dict[str, Any]:
        """Return the settings that were set, by keyword: the same configuration again."""
        return {name: getattr(self, name) for name in sorted(self.given)} | dict(self.for_listeners)

    @property
    def selects_by_rack(self) -> bool:
        """True if consumers with a rack read from a replica in it."""
        return self.replica_selector_class == config_checks.BY_RACK

    @property
    def directories(self) -> tuple[str, ...]:
        """Return the absolute paths in `log.dirs`."""
        return tuple(str(Path(each.strip()).absolute()) for each in self.log_dirs.split(",") if each.strip())

    @property
    def metadata_directory(self) -> str:
        """Return the directory of the metadata log."""
        return str(Path(self.metadata_log_dir).absolute()) if self.metadata_log_dir else self.directories[0]

    @cached_property
    def joins_cluster(self) -> bool:
        """True for a broker of a cluster with other nodes."""
        return not (self.is_controller or self.is_alone)

    @cached_property
    def has_both_roles(self) -> bool:
        """True for a node with both roles in a cluster with other nodes."""
        return roles.is_both(self)

    @cached_property
    def is_alone(self) -> bool:
        """True for a node with both roles that is the only voter, and the only node of its cluster."""
        return roles.is_alone(self)

    @property
    def is_controller(self) -> bool:
        """True for a controller without the broker role."""
        return self.process_roles == ("controller",)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the addresses to listen on. Raise ConfigError if they are malformed."""
        return parse_listeners(self.listeners, self.listener_security_protocol_map, self._other_listeners)

    def listener(self, name: str) -> ListenerConfig:
        """Return the settings of security of one listener."""
        return listener_settings.for_listener(self, self.for_listeners, name)

    def protocols(self) -> dict[str, str]:
        """Return the security protocols by the names of listeners. Raise ConfigError if one is missing."""
        return map_protocols([each.name for each in self.endpoints()], self.listener_security_protocol_map)

    @property
    def consumer_assignors(self) -> tuple[str, ...]:
        """The names in `group.consumer.assignors`; Java's classes are known by theirs too."""
        names = (name.strip() for name in self.group_consumer_assignors.split(","))
        return tuple(JAVA_ASSIGNORS.get(name, name) for name in names if name)

    @property
    def super_principals(self) -> frozenset[str]:
        """The names in `super.users`."""
        return frozenset(name for each in self.super_users.split(";") if (name := each.strip()))

    def advertised_endpoints(self) -> dict[str, Endpoint]:
        """Return the addresses for clients, by the name of the listener. Raise ConfigError if they are malformed."""
        return parse_advertised(self.advertised_listeners, self.endpoints(), self._other_listeners)

    @property
    def _other_listeners(self) -> set[str]:
        return set() if self.is_controller else {name.upper() for name in self.controller_listener_names}

    def topic_defaults(self) -> dict[str, str]:
        """Return the defaults of topic configs, by their names for topics."""
        return {topic: format_value(getattr(self, broker)) for topic, broker in TOPIC_CONFIGS.items()}

    def changed_topic_defaults(self) -> dict[str, str]:
        """Return the defaults of topic configs that differ from Kafka's."""
        return {name: value for name, value in self.topic_defaults().items() if value != list_defaults()[name]}

    def group_bounds(self) -> Bounds:
        """Return the limits and the defaults of group configs."""
        spans = [("consumer", name) for name in config_checks.CONSUMER_SPANS]
        spans += [("share", name) for name in config_checks.SHARE_SPANS]
        spans += [("streams", name) for name in config_checks.STREAMS_SPANS]
        bounds = {
            f"{kind}.{name.replace('_', '.')}": ConfigBound(
                getattr(self, f"group_{kind}_{name}"),
                getattr(self, f"group_{kind}_min_{name}"),
                getattr(self, f"group_{kind}_max_{name}"),
            )
            for kind, name in spans
        }
        standbys, most = self.group_streams_num_standby_replicas, self.group_streams_max_standby_replicas
        bounds["streams.num.standby.replicas"] = ConfigBound(standbys, 0, most)
        delay_ms = self.group_streams_initial_rebalance_delay_ms
        bounds["streams.initial.rebalance.delay.ms"] = ConfigBound(delay_ms, 0, INT32_MAX)
        return bounds

    @property
    def streams_tags(self) -> tuple[str, ...]:
        """The tags of `group.streams.rack.aware.assignment.tags`."""
        return parse_tags(self.group_streams_rack_aware_assignment_tags)

    def log_config(self, configs: Mapping[str, str]) -> LogConfig:
        """Return the settings of a log of a topic with these configs."""
        return LogConfig.of_topic({**self.topic_defaults(), **configs})


JAVA_ASSIGNORS = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


def read_config(settings: Mapping[str, Any] | None = None, /, **keywords: Any) -> BrokerConfig:
    """Return a checked configuration from dotted names and keywords. Raise ConfigError if a setting is invalid."""
    own, settings, keywords = listener_settings.split_settings(settings, keywords)
    config = changed(read_settings(BrokerConfig, settings, **keywords), for_listeners=own)
    listener_settings.check_listeners(
        own, (*(each.name for each in config.endpoints()), *config.controller_listener_names)
    )
    read_overrides(config.max_connections_per_ip_overrides)
    config.advertised_endpoints()  # which raises where addresses cannot be read
    config_checks.check_alone(config)
    config_checks.check_consumer_groups(config)
    config_checks.check_access(config)
    config_checks.check_descriptions(config)
    config_checks.check_joining(config)
    if config.is_controller:
        check_controlling(config)
    if config.has_both_roles:
        check_controlling(roles.controller_half(config))
    config_checks.check_selector(config)
    names = (str(name).replace(".", "_") for name in (*(settings or {}), *keywords))
    return changed(config, given=frozenset(names))

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
from ottla.broker.settings.endpoints import Endpoint, advertised, listening, protocols_of
from ottla.broker.settings.listener_config import ListenerConfig
from ottla.broker.settings.quorum_settings import check_controlling
from ottla.broker.settings.topic_configs import TOPIC_CONFIGS
from ottla.config import Between, Password, read_settings
from ottla.coordination.cluster.group_configs import Bound, Bounds
from ottla.coordination.cluster.topic_configs import as_text, defaults
from ottla.model import INT32_MAX, INT64_MAX
from ottla.settings_class import beside, changed, settings
from ottla.storage.log_config import LogConfig

Size = Annotated[int, Between(1, INT32_MAX)]
SegmentSize = Annotated[int, Between(1_048_576, INT32_MAX)]


@settings
class BrokerConfig(ListenerConfig, ClusterConfig):
    """What a broker can be told."""

    node_id: Annotated[int, Between(0, INT32_MAX)] = 1
    """The number of this broker; a data directory belongs to one."""

    listeners: str = "127.0.0.1:9092"
    """Where to listen, `host:port`, or several with commas between, then best with names: `INTERNAL://127.0.0.1:9092,
    EXTERNAL://0.0.0.0:9094`. Port 0 takes a free one; an empty host, or 0.0.0.0, means every address of this machine,
    and so everybody who can reach it."""

    advertised_listeners: str = ""
    """The addresses that clients are told to use, each for the listener whose name it bears: `EXTERNAL://example.org:9094`.
    A client that comes by another listener is told the address by which it came."""

    listener_security_protocol_map: str = ""
    """Which protocol each listener speaks, `NAME:PROTOCOL` with commas between: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
    One that is not in it speaks what it is called, or else PLAINTEXT where this is empty."""

    inter_broker_listener_name: str | None = None
    """The listener by which brokers of a cluster reach each other, this one and by theirs of the same name others."""

    security_inter_broker_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Where that is not set: the listener that is called as this."""

    sasl_mechanism_inter_broker_protocol: str = "GSSAPI"
    """How this broker logs in to others, if that listener asks for it: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or
    `GSSAPI`. Who it is says `listener.name.<listener>.<mechanism>.sasl.jaas.config`."""

    sasl_mechanism_controller_protocol: str = "GSSAPI"
    """The same for controllers, whose listener is the first of `controller.listener.names`."""

    connection_failed_authentication_delay_ms: Annotated[int, Between(0, INT32_MAX)] = 100
    """How long a client waits for being told that its login failed, so that guessing takes its time."""

    add_scram: Password | None = None
    """Users that the broker shall have from its first start on, a line each, in the words of Kafka's `--add-scram`:
    `SCRAM-SHA-512=[name=alice,password=…]`. A user who has a password for that mechanism already keeps it."""

    delegation_token_secret_key: Password | None = None
    """What delegation tokens are made with; without it there are none. Another one makes all tokens worthless."""

    delegation_token_max_lifetime_ms: Annotated[int, Between(1)] = 604_800_000
    """Longest life of a delegation token, renewals included."""

    delegation_token_expiry_time_ms: Annotated[int, Between(1)] = 86_400_000
    """Time after which one has to be renewed."""

    delegation_token_expiry_check_interval_ms: Annotated[int, Between(1)] = 3_600_000
    """How often tokens that have ended are cleared away."""

    controller_listener_names: tuple[str, ...] = ()
    """Listeners of controllers, which a broker does not open: by the first it reaches those of its cluster, with
    the protocol that `listener.security.protocol.map` says."""

    log_dirs: str = ""
    """The directories in which topics are kept, with commas between; empty for a temporary one that goes when the broker
    closes. Each partition is in one of them, a new one where fewest are; one that fails takes only its own partitions along."""

    metadata_log_dir: str = ""
    """The directory that has the metadata, without which the broker stops; the first of `log.dirs` where it is empty."""

    log_dir_failure_timeout_ms: Annotated[int, Between(1)] = 30_000
    """How long a broker of a cluster goes on whose controllers do not hear that one of its directories has failed."""

    num_partitions: Annotated[int, Between(1, INT32_MAX)] = 1
    """Partitions of a topic that is made without saying how many."""

    default_replication_factor: Annotated[int, Between(1, INT32_MAX)] = 1
    """Copies of a topic that is made without saying how many. One broker can keep one."""

    min_insync_replicas: Annotated[int, Between(1, INT32_MAX)] = 1
    """Copies in sync that a produce request with `acks=all` needs, unless its topic says otherwise."""

    auto_create_topics_enable: bool = True
    """Whether a topic is made when a client first asks for it."""

    delete_topic_enable: bool = True
    """Whether clients may delete topics."""

    message_max_bytes: Annotated[int, Between(0, INT32_MAX)] = 1_048_588
    """Largest record batch taken, compressed as it comes."""

    leader_replication_throttled_rate: Annotated[int, Between(0)] = INT64_MAX
    """Bytes a second that leaders send of partitions that move. Kafka's tools set and unset it; a single broker moves
    none, so nothing becomes slower."""

    follower_replication_throttled_rate: Annotated[int, Between(0)] = INT64_MAX
    """The same for those who fetch them."""

    replica_alter_log_dirs_io_max_bytes_per_second: Annotated[int, Between(0)] = INT64_MAX
    """The same for partitions that move to another directory of a broker."""

    fetch_max_bytes: Annotated[int, Between(1024, INT32_MAX)] = 57_671_680
    """Most that one fetch answer holds, whatever the client asks; a first batch that is larger still comes whole."""

    metadata_log_max_record_bytes_between_snapshots: Annotated[int, Between(1)] = 20_971_520
    """Most that the log of the cluster's metadata grows before a snapshot takes the place of its past; there is one
    earlier where that would be much shorter than the log."""

    metadata_log_max_snapshot_interval_ms: Annotated[int, Between(0)] = 3_600_000
    """Time after which a broker that joined a cluster writes a snapshot of its metadata in any case, so that a start has
    little to read; 0 is never."""

    metadata_max_retention_bytes: Annotated[int, Between(-1)] = 104_857_600
    """Size of that log and its snapshots from which the oldest go, but for the newest snapshot; -1 is never."""

    metadata_max_retention_ms: Annotated[int, Between(-1)] = 604_800_000
    """Age of the last record in such a snapshot from which it goes, likewise."""

    telemetry_max_bytes: Annotated[int, Between(1, INT32_MAX)] = 1_048_576
    """Most that one push of metrics by a client may be, compressed or not; how many it may push says a subscription."""

    max_incremental_fetch_session_cache_slots: Annotated[int, Between(0, INT32_MAX)] = 1000
    """Most fetch sessions kept; a consumer without one names all of its partitions in each request."""

    socket_request_max_bytes: Annotated[int, Between(1024, INT32_MAX)] = 104_857_600
    """Largest request taken; a connection that announces more is closed."""

    queued_max_request_bytes: Annotated[int, Between(-1)] = 268_435_456
    """Memory for requests that arrive and wait; -1 is no limit, which is Kafka's default. When it is used up, big
    requests are taken one at a time: a single one is always taken, even if it is larger. Small ones are not held up."""

    max_connections: Annotated[int, Between(1, INT32_MAX)] = INT32_MAX
    """Connections at a time; who comes after them waits until one goes. A part of the file descriptors that the system
    allows, one in eight, is kept for files, whatever is set here."""

    max_connections_per_ip: Annotated[int, Between(0, INT32_MAX)] = INT32_MAX
    """Connections at a time from one address; more are closed at once."""

    max_connections_per_ip_overrides: tuple[str, ...] = ()
    """The same for single addresses: `10.0.0.5:200`, with commas between."""

    metrics_listen: str = ""
    """Where `/metrics`, `/healthz` and `/readyz` are answered over HTTP, `host:port`; empty for nowhere. Needs `pip install 'ottla[metrics]'`."""

    trace_folder: str = ""
    """A folder for the Unix socket by which others of the same user look inside: `ottla trace broker`, the console's X-ray; empty for none."""

    request_log: str = ""
    """A file to which a line of JSON is appended for each request, `-` for standard error; empty for none."""

    slow_request_ms: Annotated[int, Between(-1)] = 1000
    """Time from which a request is marked as slow in the request log, its wait for records or for the disk apart; -1 is
    never."""

    connections_max_idle_ms: Annotated[int, Between(-1)] = 600_000
    """A connection on which nothing was asked for this long is closed; -1 is never."""

    log_segment_bytes: Size = 1_073_741_824
    """Size at which a file of a partition is closed and the next one begun."""

    log_roll_ms: Annotated[int, Between(1)] = 604_800_000
    """Age at which a file is closed and the next one begun, full or not."""

    log_index_size_max_bytes: Annotated[int, Between(12, INT32_MAX)] = 10_485_760
    """Largest index of a file."""

    log_index_interval_bytes: Annotated[int, Between(0, INT32_MAX)] = 4096
    """Bytes of log between two index entries."""

    log_message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    """Whose clock stamps the records: the producer's, or the broker's when they are appended."""

    log_message_timestamp_before_max_ms: Annotated[int, Between(0)] = INT64_MAX
    """How far a record's timestamp may lie behind the broker's clock, where it is the producer's."""

    log_message_timestamp_after_max_ms: Annotated[int, Between(0)] = 3_600_000
    """How far it may lie ahead."""

    compression_type: Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"] = "producer"
    """How records are compressed on disk; `producer` keeps what the producer did."""

    compression_gzip_level: Literal[-1, 1, 2, 3, 4, 5, 6, 7, 8, 9] = -1
    """Level of gzip, -1 for its own default."""

    compression_lz4_level: Annotated[int, Between(1, 17)] = 9
    """Level of lz4."""

    compression_zstd_level: Annotated[int, Between(-131072, 22)] = 3
    """Level of zstd."""

    log_flush_interval_messages: Annotated[int, Between(1)] = INT64_MAX
    """Records of a partition after which it is forced to the disk, before they are acknowledged; 1 for every batch.
    By default the operating system decides: a crash of the broker loses nothing it acknowledged, a crash of the
    machine may lose the last seconds."""

    log_flush_interval_ms: Annotated[int, Between(0)] = INT64_MAX
    """Time after which appended records are forced to the disk."""

    log_flush_offset_checkpoint_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 60_000
    """How often it is written down what has been forced to the disk, which a restart after a crash need not check."""

    replica_lag_time_max_ms: Annotated[int, Between(1)] = 30_000
    """For how long a follower may lack what its leader has before it is in sync no more."""

    replica_high_watermark_checkpoint_interval_ms: Annotated[int, Between(1)] = 5_000
    """How often it is written down up to where each partition is committed."""

    log_cleanup_policy: tuple[str, ...] = ("delete",)
    """What happens to old records of a topic that does not say: `delete` drops them by age and size, `compact` those
    that a later record with the same key supersedes."""

    log_retention_ms: Annotated[int, Between(-1)] = 604_800_000
    """Age after which old records are deleted, a file at a time; -1 is never."""

    log_retention_bytes: Annotated[int, Between(-1)] = -1
    """Size of a partition above which its oldest records are deleted, a file at a time; -1 is no limit."""

    log_retention_check_interval_ms: Annotated[int, Between(1)] = 300_000
    """How often the two are looked at."""

    log_cleaner_enable: bool = True
    """Whether topics with the policy `compact` are compacted; `__consumer_offsets` is one."""

    log_cleaner_backoff_ms: Annotated[int, Between(1)] = 15_000
    """How often it is looked whether there is anything to compact."""

    log_cleaner_dedupe_buffer_size: Annotated[int, Between(96)] = 33_554_432
    """Memory for the keys that compaction has in view at a time, 24 bytes for each and a third more; taken while it
    works only, as far as there are keys. More keys than it has room for, a million with this value, take several
    passes: raise it where a partition has many millions. Kafka takes 128 MiB, and keeps them."""

    log_cleaner_min_cleanable_ratio: Annotated[float, Between(0, 1)] = 0.5
    """Share of bytes not compacted before, above which compacting a partition is worth the work."""

    log_cleaner_min_compaction_lag_ms: Annotated[int, Between(0)] = 0
    """Age below which a record is not compacted."""

    log_cleaner_max_compaction_lag_ms: Annotated[int, Between(1)] = INT64_MAX
    """Age at which a record is compacted whatever the share is."""

    log_cleaner_delete_retention_ms: Annotated[int, Between(0)] = 86_400_000
    """How long the mark of a deleted key, and of a transaction's end, is kept once compaction has come upon it."""

    producer_id_expiration_ms: Annotated[int, Between(1, INT32_MAX)] = 86_400_000
    """How long a partition remembers a producer that writes nothing more, so that it knows its repeats."""

    producer_id_expiration_check_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 600_000
    """How often that is looked at."""

    offsets_topic_num_partitions: Annotated[int, Between(1, INT32_MAX)] = 50
    """Partitions of `__consumer_offsets`; not to be changed once it is there."""

    offsets_topic_segment_bytes: SegmentSize = 104_857_600
    """Size of a file of `__consumer_offsets`."""

    offset_metadata_max_bytes: Annotated[int, Between(0, INT32_MAX)] = 4096
    """Longest text that may be committed with an offset, in bytes."""

    offsets_retention_minutes: Annotated[int, Between(1, INT32_MAX)] = 10_080
    """Time for which the offsets of a group without members are kept, and those for topics it does not read any more."""

    offsets_retention_check_interval_ms: Annotated[int, Between(1)] = 600_000
    """How often it is looked for such offsets."""

    group_initial_rebalance_delay_ms: Annotated[int, Between(0, INT32_MAX)] = 3000
    """Time that the first members of a group are given to come, all into one rebalance; 0 for a broker inside a
    program, where nobody wants to wait."""

    group_min_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 6000
    """Shortest `session.timeout.ms` that a member of a group may ask for."""

    group_max_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 1_800_000
    """Longest `session.timeout.ms` that a member of a group may ask for."""

    group_max_size: Annotated[int, Between(1, INT32_MAX)] = INT32_MAX
    """Most members that a group may have."""

    group_consumer_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 45_000
    """Time after which a member of a consumer group (KIP-848) that sends no heartbeats is removed."""

    group_consumer_min_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 45_000
    """Shortest that `group.consumer.session.timeout.ms` may be."""

    group_consumer_max_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 60_000
    """Longest that `group.consumer.session.timeout.ms` may be."""

    group_consumer_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 5000
    """How often members of a consumer group are to send heartbeats; a rebalance takes two or three of them."""

    group_consumer_min_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 5000
    """Shortest that `group.consumer.heartbeat.interval.ms` may be."""

    group_consumer_max_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 15_000
    """Longest that `group.consumer.heartbeat.interval.ms` may be."""

    group_consumer_max_size: Annotated[int, Between(1, INT32_MAX)] = INT32_MAX
    """Most members that a consumer group may have."""

    group_consumer_assignors: str = "uniform,range"
    """Assignors that members of consumer groups may ask for, with commas between; the first is for all who do not."""

    group_consumer_migration_policy: Literal["disabled", "upgrade", "downgrade", "bidirectional"] = "bidirectional"
    """Whether a classic group becomes a consumer group when a member joins by the new protocol, and one again when the
    last of these is gone."""

    transaction_state_log_num_partitions: Annotated[int, Between(1, INT32_MAX)] = 50
    """Partitions of `__transaction_state`; not to be changed once it is there."""

    transaction_state_log_segment_bytes: SegmentSize = 104_857_600
    """Size of a file of `__transaction_state`."""

    transaction_max_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 900_000
    """Longest `transaction.timeout.ms` that a producer may ask for: so long can it keep readers of committed records
    waiting."""

    transaction_partition_verification_enable: bool = True
    """Whether a partition takes a batch of a transaction only if the coordinator knows that it takes part."""

    transactional_id_expiration_ms: Annotated[int, Between(1, INT32_MAX)] = 604_800_000
    """Time after which a transactional id that nobody uses is forgotten."""

    transaction_abort_timed_out_transaction_cleanup_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 10_000
    """How often it is looked for transactions that take too long, which are aborted."""

    authorizer_class_name: str = ""
    """Who says what clients may do: the ACLs of the cluster, by the name of Kafka's class or `standard`. Without, everybody
    who reaches the broker may do everything."""

    super_users: str = ""
    """Principals that may do everything whatever the ACLs say, with semicolons between: `User:admin;User:ops`."""

    allow_everyone_if_no_acl_found: bool = False
    """Whether everybody may do everything to a resource that no ACL is about."""

    audit_log: str = ""
    """A file for a line of JSON about each thing that a client wanted to do, with the verdict; empty for none."""

    audit_log_max_bytes: Annotated[int, Between(1024)] = 104_857_600
    """Size at which that file is put aside, in place of the one that was put aside before."""

    audit_log_denied_only: bool = False
    """Whether only what was denied is in it."""

    quota_window_num: Annotated[int, Between(2, 1000)] = 11
    """Samples over which what a client uses is averaged."""

    quota_window_size_seconds: Annotated[int, Between(1, 3600)] = 1
    """Seconds of a sample."""

    given: frozenset[str] = beside(default_factory=frozenset)
    """The fields that somebody set, to their default or to something else."""

    also_given: Mapping[str, str] = beside(default_factory=dict)
    """Settings of Kafka's that were given as well, as they were written: in another unit (`log.retention.hours`), or without effect."""
    for_listeners: Mapping[str, Any] = beside(default_factory=dict)
    """Settings of single listeners, by their whole names."""

    def explicit(self) -> dict[str, Any]:
        """What was set, by keyword: the same configuration again."""
        return {name: getattr(self, name) for name in sorted(self.given)} | dict(self.for_listeners)

    @property
    def selects_by_rack(self) -> bool:
        """Whether consumers that say where they are read from a copy that is there."""
        return self.replica_selector_class == config_checks.BY_RACK

    @property
    def directories(self) -> tuple[str, ...]:
        """What `log.dirs` names, in full."""
        return tuple(str(Path(each.strip()).absolute()) for each in self.log_dirs.split(",") if each.strip())

    @property
    def metadata_directory(self) -> str:
        """Where the log of the metadata is."""
        return str(Path(self.metadata_log_dir).absolute()) if self.metadata_log_dir else self.directories[0]

    @cached_property
    def joins(self) -> bool:
        """Whether this is a broker of a cluster that has controllers."""
        alone = self.process_roles == ("broker",) and bool(roles.controllers(self))
        return alone or self.combines

    @cached_property
    def combines(self) -> bool:
        """Whether this is a controller of that cluster as well."""
        return roles.is_both(self)

    @property
    def controls(self) -> bool:
        """Whether this is a controller, and nothing else."""
        return self.process_roles == ("controller",)

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where to listen; ConfigError where that cannot be read."""
        return listening(self.listeners, self.listener_security_protocol_map, self._elsewhere)

    def listener(self, name: str) -> ListenerConfig:
        """The settings of security of one listener."""
        return listener_settings.for_listener(self, self.for_listeners, name)

    def protocols(self) -> dict[str, str]:
        """Security protocols by the names of listeners; ConfigError where one is not said."""
        return protocols_of([each.name for each in self.endpoints()], self.listener_security_protocol_map)

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
        """What to tell clients, by the name of the listener; ConfigError where that cannot be read."""
        return advertised(self.advertised_listeners, self.endpoints(), self._elsewhere)

    @property
    def _elsewhere(self) -> set[str]:
        return set() if self.controls else {name.upper() for name in self.controller_listener_names}

    def topic_defaults(self) -> dict[str, str]:
        """What a topic's configs are where the topic does not set them, by the topic's names for them."""
        return {topic: as_text(getattr(self, broker)) for topic, broker in TOPIC_CONFIGS.items()}

    def changed_topic_defaults(self) -> dict[str, str]:
        """Those of them that are not Kafka's."""
        return {name: value for name, value in self.topic_defaults().items() if value != defaults()[name]}

    def group_bounds(self) -> Bounds:
        """What groups may be told of their own, and what they go by where they are not."""
        return {
            f"consumer.{name.replace('_', '.')}": Bound(
                getattr(self, f"group_consumer_{name}"),
                getattr(self, f"group_consumer_min_{name}"),
                getattr(self, f"group_consumer_max_{name}"),
            )
            for name in config_checks.CONSUMER_SPANS
        }

    def log_config(self, configs: Mapping[str, str]) -> LogConfig:
        """The settings of a log of a topic with these configs."""
        return LogConfig.of_topic({**self.topic_defaults(), **configs})


JAVA_ASSIGNORS = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


def read_config(settings: Mapping[str, Any] | None = None, /, **keywords: Any) -> BrokerConfig:
    """A checked configuration from dotted names and keywords; ConfigError says what does not fit."""
    own, settings, keywords = listener_settings.split(settings, keywords)
    config = changed(read_settings(BrokerConfig, settings, **keywords), for_listeners=own)
    listener_settings.check_listeners(
        own, (*(each.name for each in config.endpoints()), *config.controller_listener_names)
    )
    read_overrides(config.max_connections_per_ip_overrides)
    config.advertised_endpoints()  # which raises where addresses cannot be read
    config_checks.check_alone(config)
    config_checks.check_consumer_groups(config)
    config_checks.check_access(config)
    config_checks.check_joining(config)
    if config.controls:
        check_controlling(config)
    if config.combines:
        check_controlling(roles.controller_half(config))
    config_checks.check_selector(config)
    names = (str(name).replace(".", "_") for name in (*(settings or {}), *keywords))
    return changed(config, given=frozenset(names))

"""The settings of a consumer, with Kafka's names. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from ottla.client.config.common_config import CommonConfig, Millis, read_client_settings
from ottla.config import Between
from ottla.errors import ConfigError
from ottla.settings_class import settings

Deserializer = Callable[[bytes], Any]


@settings
class ConsumerConfig(CommonConfig):
    """Settings of a consumer."""

    group_id: str | None = None
    """The consumer group: its members share the partitions of the topics they subscribe to, and commit under its name.
    None: no group, `assign()` only, and nothing is committed."""

    group_protocol: Literal["classic", "consumer"] = "classic"
    """The group protocol. `classic`: one member assigns the partitions for all (JoinGroup, SyncGroup). `consumer`:
    the coordinator does, and each member reconciles its own assignment (KIP-848), which needs Kafka 4.0 or Ottla."""

    group_remote_assignor: str | None = None
    """With `group.protocol = consumer`: the broker's assignor, such as `uniform` or
    `range`. None: the broker chooses."""

    group_instance_id: str | None = None
    """A name for this member that stays the same over restarts (static membership). A member that restarts within its
    session timeout keeps its partitions without a rebalance. Each running member needs its own name.
    """

    session_timeout_ms: Annotated[int, Between(1)] = 45_000
    """The coordinator removes a member without a heartbeat for this time, and assigns its partitions to the others. The
    value must be between the broker's `group.min.session.timeout.ms` and `group.max.session.timeout.ms`. With
    `group.protocol = consumer` the broker's `group.consumer.session.timeout.ms` applies instead.
    """

    heartbeat_interval_ms: Annotated[int, Between(1)] = 3_000
    """The interval of heartbeats; their responses also report rebalances. It must be below `session.timeout.ms`; at
    most a third of that is recommended. With `group.protocol = consumer` the broker sets it.
    """

    max_poll_interval_ms: Annotated[int, Between(1)] = 300_000
    """The longest time between two calls of `poll`. A member that exceeds it leaves the group, logs a warning, and
    joins again at the next `poll`. It also bounds the time that a rebalance waits for a member.
    """

    partition_assignment_strategy: tuple[Any, ...] = ("range", "cooperative-sticky")
    """How the group's leader assigns partitions: the first of these strategies that all members have. `range`,
    `roundrobin`, `sticky`, `cooperative-sticky`, or your own function or object. With `cooperative-sticky` alone,
    members continue to read the partitions they keep during a rebalance.
    """

    interceptor_classes: tuple[Any, ...] = ()
    """Objects with any of these methods: `on_consume(records)` is called with the records that `poll` or a loop is
    about to return, and returns the `ConsumerRecords` to return instead, such as `records.where(…)`, or None for
    all; `on_commit(offsets)` is called after each successful commit; `on_event(event)` is called with rebalance
    events, the rare events of `trace()`; `close()` is called at the end. `poll_arrow` and `poll_columns` do not call
    `on_consume`.
    """

    enable_auto_commit: bool = True
    """If true, positions are committed every `auto.commit.interval.ms`, before partitions are revoked, and at close.
    Without a `group.id` nothing is committed.
    """

    auto_commit_interval_ms: Millis = 5_000
    """How often positions are committed. They are committed within `poll`: records that the previous `poll` returned
    count as processed.
    """

    exclude_internal_topics: bool = True
    """If true, a subscription by pattern excludes Kafka's own topics, such as `__consumer_offsets`."""

    internal_leave_group_on_close: bool = True
    """If true, `close` leaves the group at once. If false, the partitions stay unread until the session expires. Internal,
    for Kafka Streams; Kafka does not document it.
    """

    auto_offset_reset: Literal["latest", "earliest", "none"] = "latest"
    """The start in a partition without a position, or with a position that no longer exists: at the `latest` or
    `earliest` offset, or raise an error (`none`).
    """

    fetch_min_bytes: Annotated[int, Between(0)] = 1
    """The broker delays its response until this many bytes are available, or `fetch.max.wait.ms` has passed."""

    fetch_max_wait_ms: Millis = 500
    """The longest time that the broker delays its response."""

    fetch_max_bytes: Annotated[int, Between(0)] = 52_428_800
    """The approximate limit of bytes in one response; a first batch that is larger is returned whole."""

    max_partition_fetch_bytes: Annotated[int, Between(0)] = 1_048_576
    """The approximate limit of bytes per partition in one response; a first batch that is larger is returned whole."""

    max_poll_records: Annotated[int, Between(1)] = 500
    """The most records that one `poll` returns. `poll_arrow` has a limit in bytes of its own."""

    client_rack: str = ""
    """The rack of this consumer, named as in the brokers' `broker.rack`. Records are fetched from a replica in the same
    rack if the brokers allow it, and rack-aware assignors use it.
    """

    check_crcs: bool = True
    """If true, the CRC of each batch is checked."""

    default_api_timeout_ms: Millis = 60_000
    """The timeout of a call without its own timeout, and the time after which `poll` raises if no broker was ever
    reached.
    """

    allow_auto_create_topics: bool = True
    """If true, a metadata request may create a topic, if the broker allows it."""

    key_deserializer: Deserializer | None = None
    """Converts the bytes of a key to `record.key`. None: bytes."""

    value_deserializer: Deserializer | None = None
    """Converts the bytes of a value to `record.value`. None: bytes."""

    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    """Return all records, or only those of committed transactions."""

    statistics_interval_ms: Millis = 0
    """How often `on.statistics` is called. 0: never."""

    on_statistics: Callable[[Any], Any] | None = None
    """A function that is called with the result of `metrics()` every `statistics.interval.ms`, within `poll` on the
    polling thread; later if the program does not poll.
    """

    def __post_init__(self) -> None:
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat.interval.ms = {self.heartbeat_interval_ms}: must be below session.timeout.ms = "
                f"{self.session_timeout_ms}; lower it to a third of that"
            )
        if self.group_remote_assignor == "":
            raise ConfigError("group.remote.assignor is empty: set an assignor of the broker, or omit the setting")
        if self.group_id == "":
            raise ConfigError("group.id is empty: set a group name, or omit the setting")
        if self.group_instance_id == "":
            raise ConfigError("group.instance.id is empty: set a member name, or omit the setting")

    @property
    def auto_commits(self) -> bool:
        """True if positions are committed automatically."""
        return self.enable_auto_commit and self.group_id is not None

    @property
    def strategy_names(self) -> list[str]:
        """The names of the assignors, for messages."""
        return [str(getattr(one, "name", getattr(one, "__name__", one))) for one in self.partition_assignment_strategy]

    @property
    def isolation_number(self) -> int:
        """The number of `isolation.level` in the protocol."""
        return 1 if self.isolation_level == "read_committed" else 0


OF_THE_OTHER_PROTOCOL: Mapping[str, tuple[str, ...]] = {
    "consumer": ("partition_assignment_strategy", "session_timeout_ms", "heartbeat_interval_ms"),
    "classic": ("group_remote_assignor",),
}
"""Settings that each protocol does not support."""
WHY_NOT: Mapping[str, str] = {
    "consumer": "omit it: the broker sets it for all members of the group",
    "classic": "omit it, or set group.protocol=consumer",
}


def read_consumer_settings(settings: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> ConsumerConfig:
    """Return the settings of a consumer. Raises ConfigError for settings that do not fit the group protocol."""
    config = read_client_settings(ConsumerConfig, "consumer", {}, settings, keywords)
    given = {str(name).replace(".", "_"): value for name, value in [*(settings or {}).items(), *keywords.items()]}
    senseless = [name for name in OF_THE_OTHER_PROTOCOL[config.group_protocol] if given.get(name) not in (None, "")]
    if senseless:
        named = ", ".join(name.replace("_", ".") for name in senseless)
        protocol = config.group_protocol.upper()
        raise ConfigError(f"{named}: not with group.protocol={protocol}; {WHY_NOT[config.group_protocol]}")
    return config

"""The settings of a consumer, under Kafka's names.

Values only.
"""

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
    """What is fetched, and where reading begins."""

    group_id: str | None = None
    """The consumer group: its members share the partitions of the topics they subscribe to, and commit under its name.
    None: no group, `assign()` only, and nothing is committed."""

    group_protocol: Literal["classic", "consumer"] = "classic"
    """How the group rebalances. `classic`: a member shares the partitions out for all (JoinGroup, SyncGroup). `consumer`:
    the coordinator does, and each member goes to its new share by itself (KIP-848), which needs Kafka 4.0 or Ottla."""

    group_remote_assignor: str | None = None
    """With `group.protocol = consumer`: which of the broker's assignors shares the partitions out, such as `uniform` or
    `range`. None: the broker chooses."""

    group_instance_id: str | None = None
    """A name for this member that stays the same over restarts (static membership): one that is back within
    its session has its partitions again without a rebalance. Each living member needs a name of its own."""

    session_timeout_ms: Annotated[int, Between(1)] = 45_000
    """How long the coordinator waits for a heartbeat before it takes a member for dead and gives its partitions to the
    others. The broker allows what lies between its `group.min.session.timeout.ms` and `group.max.session.timeout.ms`.
    With `group.protocol = consumer` the broker's `group.consumer.session.timeout.ms` is what counts."""

    heartbeat_interval_ms: Annotated[int, Between(1)] = 3_000
    """How often a thread of the consumer's own tells the coordinator that it is alive, and hears of rebalances. Below
    `session.timeout.ms`, better no more than a third of it. With `group.protocol = consumer` the broker tells it."""

    max_poll_interval_ms: Annotated[int, Between(1)] = 300_000
    """The longest time between two calls of `poll`. A member whose user takes longer leaves the group, says so, and
    joins again at the next `poll`. It also bounds the time that a rebalance waits for a member."""

    partition_assignment_strategy: tuple[Any, ...] = ("range", "cooperative-sticky")
    """How the group's leader shares partitions out: the first of these that all members have. `range`, `roundrobin`,
    `sticky`, `cooperative-sticky`, or a function or an object of your own. With `cooperative-sticky` alone, members
    keep on reading during a rebalance what they keep after it."""

    interceptor_classes: tuple[Any, ...] = ()
    """Objects that see what `poll` or a loop is about to hand out (`on_consume(records)` returns the `ConsumerRecords` to
    go on with, such as `records.where(…)`, or None for all), hear of each commit that the coordinator has taken
    (`on_commit(offsets)`) and of rebalances (`on_event(event)`, with the events of `trace()` that are rare), and may have a `close()`. What `poll_arrow` and `poll_columns` return is not shown to them."""

    enable_auto_commit: bool = True
    """Whether positions are committed every `auto.commit.interval.ms`, before partitions go to others, and at close.
    Without a `group.id` nothing is committed."""

    auto_commit_interval_ms: Millis = 5_000
    """How often positions are committed. They are committed in `poll`: what the `poll` before returned counts as
    done."""

    exclude_internal_topics: bool = True
    """Whether a subscription by pattern leaves out Kafka's own topics, such as `__consumer_offsets`."""

    internal_leave_group_on_close: bool = True
    """Whether `close` leaves the group at once. False: the partitions stay unread until the session is over, which
    Kafka Streams wants of its members; it is no public setting of Kafka's."""

    auto_offset_reset: Literal["latest", "earliest", "none"] = "latest"
    """Where to begin in a partition without a position, or whose position no longer exists: at its `latest` or
    `earliest` offset, or raise an error (`none`)."""

    fetch_min_bytes: Annotated[int, Between(0)] = 1
    """The broker holds its answer until there are this many bytes, or `fetch.max.wait.ms` is over."""

    fetch_max_wait_ms: Millis = 500
    """How long the broker may hold its answer."""

    fetch_max_bytes: Annotated[int, Between(0)] = 52_428_800
    """About the most bytes in one answer; a first batch that is larger comes whole."""

    max_partition_fetch_bytes: Annotated[int, Between(0)] = 1_048_576
    """About the most bytes per partition in one answer; a first batch that is larger comes whole."""

    max_poll_records: Annotated[int, Between(1)] = 500
    """The most records that one `poll` returns. `poll_arrow` has a limit in bytes of its own."""

    client_rack: str = ""
    """Where this consumer is, as brokers name it in their `broker.rack`: what a replica in the same rack has is read from
    there rather than from the leader, where the brokers allow it, and assignors that know racks look at it."""

    check_crcs: bool = True
    """Whether damage to records is looked for."""

    default_api_timeout_ms: Millis = 60_000
    """How long a call that has no timeout of its own may take, and how long `poll` puts up with never having reached
    a broker."""

    allow_auto_create_topics: bool = True
    """Whether asking about a topic may create it, if the broker is willing."""

    key_deserializer: Deserializer | None = None
    """Turns the bytes of a key into what `record.key` is. None: bytes."""

    value_deserializer: Deserializer | None = None
    """Turns the bytes of a value into what `record.value` is. None: bytes."""

    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    """Whether records of open and aborted transactions are seen, or only of committed ones."""

    statistics_interval_ms: Millis = 0
    """How often `on.statistics` is called. 0: never."""

    on_statistics: Callable[[Any], Any] | None = None
    """A function that is called with what `metrics()` returns, every `statistics.interval.ms`: within `poll`, on the thread that
    polls, and so later where the program does not poll for longer."""

    def __post_init__(self) -> None:
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat.interval.ms = {self.heartbeat_interval_ms}: must be below session.timeout.ms = "
                f"{self.session_timeout_ms}; lower it to a third of that"
            )
        if self.group_remote_assignor == "":
            raise ConfigError(
                "group.remote.assignor is empty: name an assignor of the broker's, or leave the setting out"
            )
        if self.group_id == "":
            raise ConfigError("group.id is empty: give the group a name, or leave the setting out")
        if self.group_instance_id == "":
            raise ConfigError("group.instance.id is empty: give the member a name, or leave the setting out")

    @property
    def auto_commits(self) -> bool:
        """Whether positions are committed without being asked to."""
        return self.enable_auto_commit and self.group_id is not None

    @property
    def strategy_names(self) -> list[str]:
        """The names of the assignors, for messages."""
        return [str(getattr(one, "name", getattr(one, "__name__", one))) for one in self.partition_assignment_strategy]

    @property
    def isolation_number(self) -> int:
        """`isolation.level` as it travels."""
        return 1 if self.isolation_level == "read_committed" else 0


OF_THE_OTHER_PROTOCOL: Mapping[str, tuple[str, ...]] = {
    "consumer": ("partition_assignment_strategy", "session_timeout_ms", "heartbeat_interval_ms"),
    "classic": ("group_remote_assignor",),
}
"""What each protocol has no use for: the coordinator decides it, or there is no such thing."""
WHY_NOT: Mapping[str, str] = {
    "consumer": "leave it out: the broker decides it for all members of the group",
    "classic": "leave it out, or set group.protocol=consumer",
}


def read_consumer_settings(settings: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> ConsumerConfig:
    """The settings of a consumer."""
    config = read_client_settings(ConsumerConfig, "consumer", {}, settings, keywords)
    given = {str(name).replace(".", "_"): value for name, value in [*(settings or {}).items(), *keywords.items()]}
    senseless = [name for name in OF_THE_OTHER_PROTOCOL[config.group_protocol] if given.get(name) not in (None, "")]
    if senseless:
        named = ", ".join(name.replace("_", ".") for name in senseless)
        protocol = config.group_protocol.upper()
        raise ConfigError(f"{named}: not with group.protocol={protocol}; {WHY_NOT[config.group_protocol]}")
    return config

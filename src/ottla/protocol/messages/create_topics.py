"""CreateTopics."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Uuid,
    message,
    since,
    struct,
    tagged,
)


@struct
class CreatableReplicaAssignment:
    """The replicas of a partition, the preferred leader first."""

    partition_index: Int32 = 0
    broker_ids: Sequence[Int32] = ()


@struct
class CreatableTopicConfig:
    name: String = ""
    value: String | None = ""


@struct
class CreatableTopic:
    name: String = ""
    num_partitions: Int32 = 0
    """-1 for the broker's default, or if `assignments` is given."""
    replication_factor: Int16 = 0
    """-1 for the broker's default, or if `assignments` is given."""
    assignments: Sequence[CreatableReplicaAssignment] = ()
    configs: Sequence[CreatableTopicConfig] = ()


@message(key=19, versions="2-7", flexible="5+")
class CreateTopicsRequest(Message):
    topics: Sequence[CreatableTopic] = ()
    timeout_ms: Int32 = 60_000
    validate_only: Bool = False


@struct
class CreatableTopicConfigs:
    """A config of the new topic."""

    name: String = ""
    value: String | None = ""
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False


@struct
class CreatableTopicResult:
    name: String = ""
    topic_id: Uuid = since(7, default=ZERO_UUID, ignorable=True)
    error_code: Int16 = 0
    error_message: String | None = None
    topic_config_error_code: Int16 = tagged(0, since=5, default=0, ignorable=True)
    """The reason if `configs` is None."""
    num_partitions: Int32 = since(5, default=-1, ignorable=True)
    replication_factor: Int16 = since(5, default=-1, ignorable=True)
    configs: Sequence[CreatableTopicConfigs] | None = since(5, default=(), ignorable=True)


@message(key=19, versions="2-7", flexible="5+")
class CreateTopicsResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: Sequence[CreatableTopicResult] = ()

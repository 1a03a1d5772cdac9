"""Kafka's error codes, and the exceptions of Ottla.

Internally, errors are values (`ErrorCode`); public methods raise exceptions. Every exception text contains the failure,
the value and the remedy. Codes and names are those of Kafka's protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any


class ErrorCode(IntEnum):
    """The error codes of Kafka's wire protocol."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133
    GROUP_DELETION_FAILED = 134
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135
    CONTROLLER_ID_NOT_REGISTERED = 136


RETRIABLE = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
"""Codes after which the same request may succeed when it is sent again."""


class OttlaError(Exception):
    """The base class of all exceptions of Ottla."""


class ConfigError(OttlaError):
    """A setting is unknown, malformed, or conflicts with another."""


class IllegalStateError(OttlaError):
    """A method was called in a state that does not allow it."""


class WakeupError(OttlaError):
    """Another thread called `wakeup` to end a blocking call."""


class MissingExtraError(OttlaError, ModuleNotFoundError):
    """A feature needs a package that is not installed; the text has the command that installs it."""


class NotYetError(OttlaError):
    """A part of Kafka that Ottla does not have yet."""


class KafkaTimeoutError(OttlaError, TimeoutError):
    """An operation timed out; the text has the operation and the setting of the timeout."""


class BufferExhaustedError(KafkaTimeoutError):
    """`buffer.memory` stayed full for `max.block.ms`."""


class NoBrokersAvailableError(KafkaTimeoutError):
    """None of `bootstrap.servers` answered as a Kafka broker."""


class SerializationError(OttlaError):
    """A key or value is not bytes and no serializer made it so."""


class RecordDeserializationError(SerializationError):
    """A deserializer rejected the key or value of a record; the consumer's position is still at that record (KIP-334).

    `poll` raises it again until the position is past the record, or the deserializer accepts it.
    """

    def __init__(self, message: str, partition: Any, offset: int, origin: str, record: Any) -> None:
        super().__init__(message, partition, offset, origin, record)
        self.partition = partition
        """The TopicPartition of the record."""
        self.offset = offset
        """The offset of the record; `seek(error.partition, error.offset + 1)` skips it."""
        self.origin = origin
        """`key` or `value`: which of both was rejected (KIP-1036)."""
        self.record = record
        """The ConsumerRecord as it came, key and value as bytes."""

    def __str__(self) -> str:
        return str(self.args[0])


class WorkerProcessError(OttlaError):
    """A process that ran the function of `ottla.work` has ended; the text has the signal or exit code."""


class UndeliveredError(OttlaError):
    """Records were not delivered, and their results were not retrieved; raised by `flush` and `close`."""

    def __init__(self, count: int, first: Exception) -> None:
        super().__init__(count, first)
        self.count = count
        """The number of records."""
        self.first = first
        """The error of the first one."""

    def __str__(self) -> str:
        records = "1 record was" if self.count == 1 else f"{self.count} records were"
        return f"{records} not delivered: {self.first}; check the futures that send() returns, or pass on_delivery"


class AssignmentError(OttlaError):
    """A custom assignor returned an invalid assignment."""


class LogTruncationError(OttlaError):
    """Records that were read are lost: the new leader lacks them, and there is no reset policy (KIP-320)."""

    def __init__(
        self, message: str, partition: tuple[str, int], position: int, divergent: tuple[int, str, int] | None
    ) -> None:
        super().__init__(message, partition, position, divergent)
        self.partition = partition
        self.position = position
        """The position of the consumer."""
        self.divergent = divergent
        """The offset at which the logs diverge, as an OffsetAndMetadata for `seek`; None if unknown."""

    def __str__(self) -> str:
        return str(self.args[0])


class AuthenticationError(OttlaError):
    """The broker or the client rejected the other; a retry will not help, and the text has the remedy."""


class SslAuthenticationError(AuthenticationError):
    """One side rejected the other's certificate, or they have no common TLS version or cipher."""


class SaslAuthenticationError(AuthenticationError):
    """The broker rejected the login, could not prove its identity, or there are no credentials."""


class ProtocolError(OttlaError):
    """The peer sent bytes that violate the protocol."""


class CorruptRecordError(ProtocolError):
    """A record batch is damaged: its CRC, counts or lengths do not fit its bytes."""


class UnsupportedVersionError(OttlaError):
    """The broker does not support an API, or no version of it that the client supports."""


class KafkaError(OttlaError):
    """A broker answered with an error code."""

    def __init__(self, code: int, message: str | None = None) -> None:
        # Both are passed to the base class, so that the exception can be pickled.
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.name}: {self.message}" if self.message else self.name

    @property
    def name(self) -> str:
        """Kafka's name of the code, such as UNKNOWN_TOPIC_OR_PARTITION."""
        return name_of(self.code)

    @property
    def reason(self) -> str:
        """The message of the response, or the name of the code without one."""
        return self.message or self.name

    @property
    def retriable(self) -> bool:
        """True if the same request may succeed later."""
        return self.code in RETRIABLE


class RecordsRefusedError(KafkaError):
    """Records of a batch were rejected, and so the whole batch."""

    def __init__(self, code: int, message: str, faults: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(code, message)
        self.faults = faults
        """The rejected records by their index in the batch, with the reason of each."""


class UnknownTopicOrPartitionError(KafkaError):
    """The topic or partition does not exist on this cluster."""


class TopicAlreadyExistsError(KafkaError):
    """A topic of that name exists."""


class InvalidTopicError(KafkaError):
    """The name cannot be a topic's."""


class OffsetOutOfRangeError(KafkaError):
    """A fetch requested an offset that the partition does not have, and no reset policy is set."""


class RecordTooLargeError(KafkaError):
    """A record or batch is larger than `max.request.size` or the topic's `max.message.bytes`."""


class CommitFailedError(KafkaError):
    """Offsets cannot be committed: this consumer is not a member of its group any more, and other members have its partitions."""


class RebalanceInProgressError(KafkaError):
    """The group is rebalancing; the operation can be retried after the next `poll`."""


class InvalidGroupIdError(KafkaError):
    """The group id is missing or invalid."""


class FencedInstanceIdError(KafkaError):
    """Another consumer has taken over this one's `group.instance.id`."""


class TransactionAbortableError(KafkaError):
    """The transaction cannot be committed, but the producer is usable: abort it and start another (KIP-1050)."""


class TransactionAbortedError(TransactionAbortableError):
    """A record was not sent because its transaction is being aborted."""


class OutOfOrderSequenceError(KafkaError):
    """Batches before this one are missing in the partition: some acknowledged ones are lost."""


class ApplicationRecoverableError(KafkaError):
    """The client is unusable: close it and create a new one (KIP-1050)."""


class ProducerFencedError(ApplicationRecoverableError):
    """Another producer has taken over the `transactional.id`, or the transaction timed out and was aborted."""


class InvalidProducerEpochError(ProducerFencedError):
    """The epoch of this producer is not the latest one: it was fenced."""


class InvalidProducerIdMappingError(ApplicationRecoverableError):
    """The coordinator has another producer id for the `transactional.id`, or the id has expired."""


class InvalidTxnStateError(ApplicationRecoverableError):
    """The coordinator does not expect this step of a transaction."""


class InvalidRecordStateError(KafkaError):
    """A record of a share group cannot be acknowledged: its acquisition lock has expired, or it was acknowledged before."""


CLASSES: dict[int, type[KafkaError]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicOrPartitionError,
    ErrorCode.TOPIC_ALREADY_EXISTS: TopicAlreadyExistsError,
    ErrorCode.INVALID_TOPIC_EXCEPTION: InvalidTopicError,
    ErrorCode.OFFSET_OUT_OF_RANGE: OffsetOutOfRangeError,
    ErrorCode.MESSAGE_TOO_LARGE: RecordTooLargeError,
    ErrorCode.REBALANCE_IN_PROGRESS: RebalanceInProgressError,
    ErrorCode.INVALID_GROUP_ID: InvalidGroupIdError,
    ErrorCode.FENCED_INSTANCE_ID: FencedInstanceIdError,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: OutOfOrderSequenceError,
    ErrorCode.TRANSACTION_ABORTABLE: TransactionAbortableError,
    ErrorCode.PRODUCER_FENCED: ProducerFencedError,
    ErrorCode.INVALID_PRODUCER_EPOCH: InvalidProducerEpochError,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: InvalidProducerIdMappingError,
    ErrorCode.INVALID_TXN_STATE: InvalidTxnStateError,
    ErrorCode.INVALID_RECORD_STATE: InvalidRecordStateError,
}


HOW_RULES_ARE_MADE = "with `ottla acls create` or kafka-acls"
NOT_ALLOWED: dict[int, str] = {
    code: f"no rule (ACL) allows this to the client's user: create one for {what}, {HOW_RULES_ARE_MADE}"
    for code, what in (
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the topic"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "the group"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "the cluster"),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "the transactional.id, or a prefix of it"),
    )
}
"""The remedies for these codes."""


def name_of(code: int) -> str:
    """Return Kafka's name for `code`; an unknown code keeps its number."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"ERROR_{code}"


def topic_asked(code: int, topic: str) -> str:
    """Describe the denied or failed operation on a topic of a Metadata request."""
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return f"DESCRIBE of topic {topic!r} (a rule for READ or WRITE is sufficient too)"
    if code == ErrorCode.INVALID_TOPIC_EXCEPTION:
        return f"topic {topic!r} (a name has at most 249 letters, digits, '.', '_' and '-')"
    return f"topic {topic!r}"


def few_of(names: Sequence[object], most: int = 5, between: str = ", ") -> str:
    """Return the first names, and the number of further ones."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(map(str, names[:most])) + more


def error_for(code: int, message: str | None = None) -> KafkaError:
    """Return the exception for an error code."""
    if code in NOT_ALLOWED and HOW_RULES_ARE_MADE not in (message or ""):
        message = f"{message or 'refused'}; {NOT_ALLOWED[code]}"
    return CLASSES.get(code, KafkaError)(code, message)

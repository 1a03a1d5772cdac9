"""Explanations and remedies for the error codes of a group coordinator. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.client.consumer.config import ConsumerConfig
from ottla.errors import ErrorCode, KafkaError, error_for, name_of

NEEDS_CONSUMER_PROTOCOL = (
    "group.protocol = consumer: the brokers do not support this protocol; it requires Kafka 4.0 with the feature "
    "group.version at 1; or set group.protocol=classic"
)
REMEDIES: Mapping[int, Callable[[ConsumerConfig], str]] = {
    ErrorCode.FENCED_INSTANCE_ID: lambda config: (
        f"another consumer of group {config.group_id!r} uses the same group.instance.id = "
        f"{config.group_instance_id!r}; this consumer is fenced. Give each running consumer its own instance id"
    ),
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: lambda config: (
        f"the members of group {config.group_id!r} have no assignor in common with this consumer's "
        f"partition.assignment.strategy = {','.join(config.strategy_names)}, or the group is not a consumer group; "
        f"give all members a common one"
    ),
    ErrorCode.INVALID_SESSION_TIMEOUT: lambda config: (
        f"session.timeout.ms = {config.session_timeout_ms}: outside the broker's "
        f"group.min.session.timeout.ms and group.max.session.timeout.ms"
    ),
    ErrorCode.INVALID_GROUP_ID: lambda config: (
        f"group.id = {config.group_id!r}: the broker rejects it as a consumer group's id"
    ),
    ErrorCode.GROUP_MAX_SIZE_REACHED: lambda config: (
        f"group {config.group_id!r} already has as many members as the broker's group.max.size allows"
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: lambda config: (
        f"this client is not authorized to read in group {config.group_id!r}"
    ),
    ErrorCode.UNRELEASED_INSTANCE_ID: lambda config: (
        f"group.instance.id = {config.group_instance_id!r} is in use in group {config.group_id!r}: close the consumer "
        f"that uses it; if it has crashed, its session must expire first (group.consumer.session.timeout.ms)"
    ),
    ErrorCode.UNSUPPORTED_ASSIGNOR: lambda config: (
        f"group.remote.assignor = {config.group_remote_assignor}: the broker does not have it; use one of its "
        f"group.consumer.assignors"
    ),
    ErrorCode.GROUP_ID_NOT_FOUND: lambda config: (
        f"group {config.group_id!r} cannot be joined with group.protocol = {config.group_protocol}: it uses another protocol"
    ),
    ErrorCode.UNSUPPORTED_VERSION: lambda config: NEEDS_CONSUMER_PROTOCOL,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: lambda config: (
        f"the coordinator of group {config.group_id!r} cannot store offsets now, for example because fewer replicas of __consumer_offsets "
        f"are in sync than its min.insync.replicas requires; see the log of that broker"
    ),
}
RETRIABLE_ERRORS = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""Errors after which a member retries by itself."""


def is_fatal(code: int) -> bool:
    """Return True if the error must be raised to the user: it is neither success nor retriable."""
    return code != ErrorCode.NONE and code not in RETRIABLE_ERRORS


def coordinator_error(code: int, config: ConsumerConfig, broker_message: str | None = None) -> KafkaError:
    """Return the exception for an error code, with its remedy. `broker_message` is the coordinator's error message."""
    remedy = REMEDIES.get(code)
    text = remedy(config) if remedy else f"the coordinator of group {config.group_id!r} rejected the request"
    return error_for(code, f"{text} ({broker_message.rstrip('.')})" if broker_message else text)


def coordinator_lost_reason(code: int) -> str | None:
    """Return the reason to look up the coordinator again after this error, or None."""
    return name_of(code) if code in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR) else None

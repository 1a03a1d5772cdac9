"""What a coordinator's refusal means to a person.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.client.consumer.config import ConsumerConfig
from ottla.errors import ErrorCode, KafkaError, error_for, name_of

NEEDS_NEW_PROTOCOL = (
    "group.protocol = consumer: the brokers have no groups of this protocol, which is Kafka's since 4.0, with its feature "
    "group.version at 1; set group.protocol=classic"
)
REMEDIES: Mapping[int, Callable[[ConsumerConfig], str]] = {
    ErrorCode.FENCED_INSTANCE_ID: lambda config: (
        f"another consumer of group {config.group_id!r} has taken over group.instance.id = "
        f"{config.group_instance_id!r}; this one is out. Give each living consumer an instance id of its own"
    ),
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: lambda config: (
        f"the members of group {config.group_id!r} have no assignor in common with this consumer's "
        f"partition.assignment.strategy = {','.join(config.strategy_names)}, or it is no group of consumers; "
        f"give all members a common one"
    ),
    ErrorCode.INVALID_SESSION_TIMEOUT: lambda config: (
        f"session.timeout.ms = {config.session_timeout_ms}: outside the broker's "
        f"group.min.session.timeout.ms and group.max.session.timeout.ms"
    ),
    ErrorCode.INVALID_GROUP_ID: lambda config: (
        f"group.id = {config.group_id!r}: the broker does not take it as a consumer group's name"
    ),
    ErrorCode.GROUP_MAX_SIZE_REACHED: lambda config: (
        f"group {config.group_id!r} already has as many members as the broker's group.max.size allows"
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: lambda config: f"this client may not read in group {config.group_id!r}",
    ErrorCode.UNRELEASED_INSTANCE_ID: lambda config: (
        f"group.instance.id = {config.group_instance_id!r} is in use in group {config.group_id!r}: close the consumer that "
        f"has it; of one that has died the broker waits for the end of its session (group.consumer.session.timeout.ms)"
    ),
    ErrorCode.UNSUPPORTED_ASSIGNOR: lambda config: (
        f"group.remote.assignor = {config.group_remote_assignor}: the broker has no such assignor; name one of its "
        f"group.consumer.assignors"
    ),
    ErrorCode.GROUP_ID_NOT_FOUND: lambda config: (
        f"group {config.group_id!r} cannot be joined with group.protocol = {config.group_protocol}: it is of another kind"
    ),
    ErrorCode.UNSUPPORTED_VERSION: lambda config: NEEDS_NEW_PROTOCOL,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: lambda config: (
        f"the coordinator of group {config.group_id!r} cannot keep offsets at the moment, as where fewer copies of __consumer_offsets "
        f"are in sync than its min.insync.replicas asks for; its broker's log says why"
    ),
}
TRANSIENT = frozenset(
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
"""Errors after which a member tries again by itself."""


def is_fatal(code: int) -> bool:
    """Whether the user must hear of it: it is neither success nor something to try again after."""
    return code != ErrorCode.NONE and code not in TRANSIENT


def failure_of(code: int, config: ConsumerConfig, said: str | None = None) -> KafkaError:
    """The exception that says what is wrong and what helps; `said` is what the coordinator had to say."""
    remedy = REMEDIES.get(code)
    text = remedy(config) if remedy else f"the coordinator of group {config.group_id!r} refused"
    return error_for(code, f"{text} ({said.rstrip('.')})" if said else text)


def is_elsewhere(code: int) -> str | None:
    """Why to look for another coordinator after this error, if at all."""
    return name_of(code) if code in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR) else None

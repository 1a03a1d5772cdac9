"""Explanations and remedies for the errors of share groups. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ottla.client.share.config import ShareConsumerConfig
from ottla.errors import ErrorCode, KafkaError, error_for

NEEDS_SHARE_GROUPS = "the brokers do not support share groups: they require Kafka 4.2 or Ottla with the feature share.version at 1 or higher"
REMEDIES: Mapping[int, Callable[[ShareConsumerConfig], str]] = {
    ErrorCode.GROUP_ID_NOT_FOUND: lambda config: (
        f"group {config.group_id!r} cannot be joined by a share consumer: it has members of another group type, or "
        f"committed offsets"
    ),
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: lambda config: (
        f"group {config.group_id!r} cannot be joined by a share consumer: it is a group of another type"
    ),
    ErrorCode.INVALID_GROUP_ID: lambda config: (
        f"group.id = {config.group_id!r}: the broker rejects it as a share group's id"
    ),
    ErrorCode.GROUP_MAX_SIZE_REACHED: lambda config: (
        f"group {config.group_id!r} already has as many members as the broker's group.share.max.size allows"
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: lambda config: (
        f"this client is not authorized to read in group {config.group_id!r}"
    ),
    ErrorCode.UNSUPPORTED_VERSION: lambda config: NEEDS_SHARE_GROUPS,
}


def share_group_error(code: int, config: ShareConsumerConfig, broker_message: str | None = None) -> KafkaError:
    """Return the exception for an error code of the coordinator, with its remedy and the coordinator's message."""
    remedy = REMEDIES.get(code)
    text = remedy(config) if remedy else f"the coordinator of group {config.group_id!r} rejected the request"
    return error_for(code, f"{text} ({broker_message.rstrip('.')})" if broker_message else text)

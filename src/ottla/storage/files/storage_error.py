"""What a client is told when the disk refuses."""

from __future__ import annotations

from ottla.errors import ErrorCode, KafkaError


def storage_error(what: str, error: OSError) -> KafkaError:
    """KAFKA_STORAGE_ERROR, with `what` could not be done and the system's own reason."""
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what}: {error.strerror}")

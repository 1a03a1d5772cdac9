"""What is said where a disk takes no more of the cluster's metadata, without which neither half of a node can go on."""

from __future__ import annotations

from ottla.errors import ErrorCode, KafkaError, OttlaError


def unkept(half: str, error: OttlaError) -> OttlaError:
    """The sentence with which a broker or a controller ends; any other error stays as it is."""
    if not isinstance(error, KafkaError) or error.code != ErrorCode.KAFKA_STORAGE_ERROR:
        return error
    return OttlaError(
        f"the {half} stops, since it cannot keep the cluster's metadata, and others go on: {error}: make room on that disk, or mend it, "
        "and start it again"
    )

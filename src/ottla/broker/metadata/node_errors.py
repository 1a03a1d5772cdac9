"""Errors with which a node of a cluster stops by itself."""

from __future__ import annotations

from ottla.errors import ErrorCode, KafkaError, OttlaError


class RegistrationLostError(OttlaError):
    """The broker was unregistered while it ran, or another process has registered under its node id."""


def explain_unwritable_metadata(role: str, error: OttlaError) -> OttlaError:
    """Return an error with the remedy if the metadata cannot be written to the disk; any other error as it is."""
    if not isinstance(error, KafkaError) or error.code != ErrorCode.KAFKA_STORAGE_ERROR:
        return error
    return OttlaError(
        f"the {role} stops, since it cannot keep the cluster's metadata, and others go on: {error}: make room on that disk, or mend it, "
        "and start it again"
    )

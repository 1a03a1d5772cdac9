"""Errors of the disk, as clients receive them."""

from __future__ import annotations

import errno

from ottla.errors import ErrorCode, KafkaError

FATAL = {
    errno.EIO,
    errno.EROFS,
    errno.ENODEV,
    errno.ENXIO,
    errno.ESTALE,
    errno.ENOTCONN,
    errno.ENOTDIR,
    errno.EACCES,
    errno.EPERM,
}
"""Errors of a disk that is lost or permanently unusable."""


def storage_error(what: str, error: OSError) -> KafkaError:
    """KAFKA_STORAGE_ERROR, with `what` could not be done and the system's own reason, and the file that it names."""
    file = error.filename
    where = f" ({file})" if file is not None and str(file) not in what else ""
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{what}: {error.strerror}{where}")


def is_disk_full(error: BaseException | None) -> bool:
    """Return True if an error means that the disk has no space left."""
    cause = error.__cause__ if isinstance(error, KafkaError) else error
    return isinstance(cause, OSError) and cause.errno == errno.ENOSPC


def is_fatal(error: BaseException | None) -> bool:
    """Return True if an error means that a disk is lost. A full disk is not lost: it accepts records again when there is space."""
    cause = error.__cause__ if isinstance(error, KafkaError) else error
    return isinstance(cause, OSError) and cause.errno in FATAL

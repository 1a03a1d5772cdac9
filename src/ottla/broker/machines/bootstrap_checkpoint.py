"""What the log of a new cluster begins with: the levels of features, and passwords, that `storage format` was told.

    bootstrap.checkpoint     header │ records │ footer, in a directory that has metadata; Kafka's tool leaves the same

It is read by the first active controller alone, or by a broker that is a cluster by itself, and counts for nothing once the log says
which features there are.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from ottla.coordination.cluster.records import decode_record, encode_record
from ottla.errors import ConfigError, CorruptRecordError
from ottla.protocol.schema import Message
from ottla.storage.files.regular_file import read_whole
from ottla.storage.state_log.snapshot import parse_state, write_snapshot
from ottla.storage.state_log.voter import Quorum

LOG = logging.getLogger(__name__)
BOOTSTRAP = "bootstrap.checkpoint"


def read_bootstrap(directory: Path) -> list[Message]:
    """What was told; nothing where nothing was. ConfigError where it cannot be read."""
    path = directory / BOOTSTRAP
    if not path.exists():
        return []
    try:
        return [decode_record(value) for value in parse_state(read_whole(path), str(path)).values]
    except (CorruptRecordError, OSError) as error:
        raise ConfigError(
            f"{error}, and the cluster that is new begins with what is in it: format an empty directory with `ottla storage format`"
        ) from error


def read_if_needed(directory: Path, *, has_begun: bool) -> list[Message]:
    """As `read_bootstrap`; where the cluster has begun, a file that cannot be read is passed over."""
    try:
        return read_bootstrap(directory)
    except ConfigError as error:
        if not has_begun:
            raise
        LOG.warning("%s; the cluster has begun, and goes on without it: remove the file", error.__cause__)
        return []


def write_bootstrap(directory: Path, records: Sequence[Message], now_ms: int) -> None:
    """At once, and in place of what was there: OSError where the disk does not take it."""
    write_snapshot(directory / BOOTSTRAP, 0, map(encode_record, records), now_ms, Quorum(), sync=True)

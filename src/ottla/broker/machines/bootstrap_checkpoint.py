"""What the log of a new cluster begins with: the levels of features, and passwords, that `storage format` was told.

    bootstrap.checkpoint     header │ records │ footer, in a directory that has metadata; Kafka's tool leaves the same

It is read by the first active controller alone, or by a broker that is a cluster by itself, and counts for nothing once the log says
which features there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ottla.coordination.cluster.records import decode_record, encode_record
from ottla.protocol.schema import Message
from ottla.storage.state_log.snapshot import state_in, write_snapshot
from ottla.storage.state_log.voter import Quorum

BOOTSTRAP = "bootstrap.checkpoint"


def read_bootstrap(directory: Path) -> list[Message]:
    """What was told; nothing where nothing was. CorruptRecordError where it cannot be read."""
    path = directory / BOOTSTRAP
    if not path.exists():
        return []
    return [decode_record(value) for value in state_in(path.read_bytes(), BOOTSTRAP).values]


def write_bootstrap(directory: Path, records: Sequence[Message], now_ms: int) -> None:
    """At once, and in place of what was there: OSError where the disk does not take it."""
    write_snapshot(directory / BOOTSTRAP, 0, map(encode_record, records), now_ms, Quorum(), sync=True)

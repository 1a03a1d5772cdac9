"""The bootstrap checkpoint: feature levels and SCRAM users with which the metadata log of a new cluster starts.

    bootstrap.checkpoint                                 header │ records │ footer, as written here and by Kafka until 4.3
    __cluster_metadata-0/0000…0000-000….checkpoint       header │ voters │ records │ footer, by Kafka since 4.4 (KIP-1170)

Only the first active controller reads it, or a sole broker. It is ignored once the log contains feature levels.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from ottla.broker.metadata.metadata_log import CLUSTER_METADATA
from ottla.coordination.cluster.records import decode_record, encode_record
from ottla.errors import ConfigError, CorruptRecordError
from ottla.protocol.schema import Message
from ottla.storage.files.regular_file import read_whole
from ottla.storage.state_log.snapshot import EMPTY, parse_state, write_snapshot
from ottla.storage.state_log.voter import Quorum

LOG = logging.getLogger(__name__)
BOOTSTRAP = "bootstrap.checkpoint"
ZERO = Path(f"{CLUSTER_METADATA}-0", EMPTY.file_name)


def read_bootstrap(directory: Path) -> list[Message]:
    """Return the records; empty if there is no file. ConfigError if it cannot be read."""
    path = next((each for each in (directory / BOOTSTRAP, directory / ZERO) if each.exists()), None)
    if path is None:
        return []
    try:
        return [decode_record(value) for value in parse_state(read_whole(path), str(path)).values]
    except (CorruptRecordError, OSError) as error:
        raise ConfigError(
            f"{error}, and the cluster that is new begins with what is in it: format an empty directory with `ottla storage format`"
        ) from error


def read_if_needed(directory: Path, *, has_records: bool) -> list[Message]:
    """Return the records like `read_bootstrap`; if the log `has_records`, only log that they cannot be read."""
    try:
        return read_bootstrap(directory)
    except ConfigError as error:
        if not has_records:
            raise
        LOG.warning("%s; the cluster is already started and does not need the file: remove it", error.__cause__)
        return []


def write_bootstrap(directory: Path, records: Sequence[Message], now_ms: int) -> None:
    """Replace the checkpoint, flushed. OSError if it cannot be written."""
    write_snapshot(directory / BOOTSTRAP, 0, map(encode_record, records), now_ms, Quorum(), sync=True)

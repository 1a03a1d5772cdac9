"""Appends for ever to a data directory and prints each batch's last offset: the process that `test_kill` kills."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from ottla.model import TopicPartition
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, batch

FLIGHTS = TopicPartition("flights", 0)
CONFIG = LogConfig(segment_bytes=200_000, index_interval_bytes=1000)


def value_of(offset: int) -> bytes:
    """The value of the record with that offset, of some hundred bytes."""
    return b"<%d>" % offset + b"." * (offset % 300)


def main(path: Path) -> None:
    flushing = (path.parent / "flush").read_text() == "flush"
    directory = DataDirectory.open(path, node_id=1)
    log = directory.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    for turn in count():
        values = [value_of(offset) for offset in range(log.end_offset, log.end_offset + turn % 7 + 1)]
        print(log.append(batch(*values), leader_epoch=0, now_ms=NOW).last_offset, flush=True)
        if flushing and turn % 10 == 0:
            log.flush()
            directory.checkpoint()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

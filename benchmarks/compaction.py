"""Measure log compaction: MB of log per second of processor time, by size of records and number of keys.

`python -m benchmarks.compaction`. A file of half a gigabyte is written to a temporary directory first, so that it is
read from the page cache.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from pathlib import Path

from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from ottla.storage.cleaning.cleaner import Cleaner
from ottla.storage.cleaning.key_map import KeyMap
from ottla.storage.cleaning.log_cleaning import clean_in_steps, find_extents, plan_log_compaction
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig

LOG_BYTES = 500_000_000
BATCH_BYTES = 16_384
BUFFER_BYTES = 33_554_432
NOW = 1_700_000_000_000
CASES = [
    (100, 1000, Codec.NONE),
    (100, 1_000_000, Codec.NONE),
    (1024, 1000, Codec.NONE),
    (1024, 100_000, Codec.NONE),
    (1024, 100_000, Codec.ZSTD),
]


def filled(directory: Path, value_bytes: int, keys: int, codec: Codec) -> Log:
    """Write a log of consecutive updates of `keys` keys."""
    log = Log.open(directory, LogConfig(cleanup_policy=("compact",), segment_bytes=100_000_000), now_ms=NOW)
    numbers = itertools.cycle(range(keys))
    written = 0
    while written < LOG_BYTES:
        builder = BatchBuilder(codec, max_bytes=BATCH_BYTES)
        while builder.append(NOW, b"key-%012d" % next(numbers), os.urandom(value_bytes // 2) + bytes(value_bytes // 2)):
            pass
        written += builder.size_bytes
        log.append(builder.build(), leader_epoch=0, now_ms=NOW)
    log.begin_segment(NOW)
    log.flush()
    return log


def compacted(log: Log) -> tuple[float, int, int]:
    """Return processor seconds, passes and remaining bytes."""
    began, done, passes = time.process_time(), 0, 0
    while (plan := plan_log_compaction(log, done, NOW)).dirty_bytes:
        keys = KeyMap(BUFFER_BYTES, os.urandom(16))
        cleaner = Cleaner(log.directory, find_extents(log, plan.upper_bound), plan, log.config, keys=keys, now_ms=NOW)
        for step in clean_in_steps(log, cleaner):
            step()
        done, passes = cleaner.end_offset, passes + 1
        keys.close()
    return time.process_time() - began, passes, log.size_bytes


def main() -> None:
    """Print the table."""
    print("value B     keys  codec  log MB  left MB  passes  MB/s of CPU")
    for value_bytes, keys, codec in CASES:
        with tempfile.TemporaryDirectory() as folder:
            log = filled(Path(folder) / "t-0", value_bytes, keys, codec)
            size = log.size_bytes
            seconds, passes, left = compacted(log)
            print(
                f"{value_bytes:7} {keys:8}  {codec.name.lower():5}  {size / 1e6:6.0f}  {left / 1e6:7.1f}  {passes:6}"
                f"  {size / 1e6 / seconds:4.0f}"
            )


if __name__ == "__main__":
    main()

"""How fast a log is compacted: MB of log for each second of the processor, by size of records and number of keys.

`python -m benchmarks.compaction`; a file of half a gigabyte is written to a temporary directory first, so it is read
from the page cache.
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
from ottla.storage.cleaning.log_cleaning import extents_of, plan_of, steps
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
    """A log of updates of so many keys, one after the other."""
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
    """Seconds of the processor, passes and bytes left."""
    began, done, passes = time.process_time(), 0, 0
    while (plan := plan_of(log, done, NOW)).dirty_bytes:
        keys = KeyMap(BUFFER_BYTES, os.urandom(16))
        cleaner = Cleaner(log.directory, extents_of(log, plan.upper_bound), plan, log.config, keys=keys, now_ms=NOW)
        for step in steps(log, cleaner):
            step()
        done, passes = cleaner.end_offset, passes + 1
        keys.close()
    return time.process_time() - began, passes, log.size_bytes


def main() -> None:
    """Print a table."""
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

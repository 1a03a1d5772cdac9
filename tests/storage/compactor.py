"""Append updates of keys to a log and compact it in a second thread until the process is killed: for tests.

`python -m tests.storage.compactor DIRECTORY SEED` prints the number of each update once it is appended.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path

from ottla.model import TopicPartition
from ottla.storage.cleaning.cleaner import Cleaner
from ottla.storage.cleaning.key_map import KeyMap
from ottla.storage.cleaning.log_cleaning import clean_in_steps, collect_transactions, find_extents, plan_log_compaction
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW
from tests.storage.compacting import SEED, keyed

TABLE = TopicPartition("table", 0)
CONFIG = LogConfig(cleanup_policy=("compact",), segment_bytes=3000, index_interval_bytes=200)
KEYS = 40


def key_of(number: int) -> bytes:
    """The key of an update: keys repeat in no order."""
    return b"key-%d" % (number * 7919 % 104_729 % KEYS)


class Compactor:
    """One pass after the other, each step in a thread; what changes the log is done here."""

    def __init__(self, directory: DataDirectory, log: Log, chance: random.Random) -> None:
        self.directory, self.log, self.chance = directory, log, chance
        self.threads = ThreadPoolExecutor(1)
        self.work: Future[None] | None = None
        self.steps: Iterator[Callable[[], None]] = iter(())
        self.cleaner: Cleaner | None = None

    def go_on(self) -> None:
        """Take the next step if the last one is done."""
        if self.work is not None and not self.work.done():
            return
        if self.work is not None:
            self.work.result()
        step = next(self.steps, None)
        self.work = None if step is None else self.threads.submit(step)
        if step is None:
            self.end()
            self.begin()

    def end(self) -> None:
        if self.cleaner is not None:
            self.directory.cleaner_offsets[TABLE] = self.cleaner.end_offset
            self.directory.write_cleaned(self.directory.cleaner_offsets)
            self.cleaner, self.log.cleaning = None, False

    def begin(self) -> None:
        done = self.directory.cleaner_offsets.get(TABLE, 0)
        plan = plan_log_compaction(self.log, done, NOW)
        if not plan.dirty_bytes:
            return
        self.log.cleaning = True
        self.cleaner = Cleaner(
            self.log.directory,
            find_extents(self.log, plan.upper_bound),
            plan,
            CONFIG,
            keys=KeyMap(24 * self.chance.randrange(6, 2 * KEYS), SEED),
            now_ms=NOW,
            transactions=collect_transactions(self.log, plan.upper_bound),
        )
        self.steps = clean_in_steps(self.log, self.cleaner)


def main(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    directory = DataDirectory.open(path, node_id=1)
    log = directory.open_log(TABLE, CONFIG, now_ms=NOW)
    compactor = Compactor(directory, log, chance)
    for number in count(log.end_offset):
        log.append(keyed([(key_of(number), b"%d" % number * chance.randrange(1, 20))]), leader_epoch=0, now_ms=NOW)
        print(number, flush=True)
        if log.recovery_point < log.bases[-1]:
            log.flush()
            directory.checkpoint()
        compactor.go_on()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

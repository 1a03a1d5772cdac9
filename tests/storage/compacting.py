"""Logs with keys, compacted in one step, and read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from ottla.records.batch import iter_headers, verify
from ottla.records.builder import BatchBuilder
from ottla.records.columns import decode
from ottla.records.compression import Codec
from ottla.storage.cleaning.cleaner import Cleaner
from ottla.storage.cleaning.key_map import KeyMap
from ottla.storage.cleaning.log_cleaning import clean_in_steps, collect_transactions, find_extents, plan_log_compaction
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, everything

SEED = bytes(range(16))
COMPACT = LogConfig(cleanup_policy=("compact",), segment_bytes=1000, index_interval_bytes=100)
KeyAndValue = tuple[bytes | None, bytes | None]


class Kept(NamedTuple):
    """A record that is still there."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


def keyed(pairs: Sequence[KeyAndValue], *, timestamp: int = NOW, codec: Codec = Codec.NONE, **producer: Any) -> bytes:
    """A batch of keys and values."""
    builder = BatchBuilder(codec, max_bytes=1 << 30)
    for number, (key, value) in enumerate(pairs):
        builder.append(timestamp + number, key, value)
    return builder.build(**producer)


def put(log: Log, *pairs: KeyAndValue, now_ms: int = NOW, leader_epoch: int = 0, **options: Any) -> int:
    """Append a batch; its base offset."""
    return log.append(keyed(pairs, **options), leader_epoch=leader_epoch, now_ms=now_ms).base_offset


def roll(log: Log, now_ms: int = NOW) -> None:
    """Close the active segment, if it has anything, and have all of it on the disk."""
    if log.segments[-1].size:
        log.begin_segment(now_ms)
    log.flush()


def compact(
    log: Log,
    cleaned_up_to: int = 0,
    *,
    now_ms: int = NOW,
    room_bytes: int = 1 << 16,
) -> int:
    """Everything that may be compacted, in as many passes as it takes; up to where that is."""
    for _ in count():
        plan = plan_log_compaction(log, cleaned_up_to, now_ms)
        if not plan.dirty_bytes:
            break
        cleaned_up_to = one_pass(log, cleaned_up_to, now_ms, room_bytes)
    return cleaned_up_to


def one_pass(
    log: Log, cleaned_up_to: int, now_ms: int, room_bytes: int, breathe: Callable[[int], None] = lambda size: None
) -> int:
    plan = plan_log_compaction(log, cleaned_up_to, now_ms)
    cleaner = Cleaner(
        log.directory,
        find_extents(log, plan.upper_bound),
        plan,
        log.config,
        keys=KeyMap(room_bytes, SEED),
        now_ms=now_ms,
        transactions=collect_transactions(log, plan.upper_bound),
        breathe=breathe,
    )
    for step in clean_in_steps(log, cleaner):
        step()
    return cleaner.end_offset


def kept(log: Log) -> list[Kept]:
    """Every record, read as a consumer reads, after every batch has been checked."""
    data = everything(log)
    for position, header in iter_headers(data):
        verify(data, position, header)
    found = decode(data, from_offset=log.start_offset)
    return [
        Kept(found.offsets[row], found.key(row), found.value(row), found.timestamps[row]) for row in range(found.count)
    ]


class Crash(BaseException):
    """Close the files as the end of the process does."""


@contextmanager
def dying_after(operations: int) -> Iterator[None]:
    """Die before the next but so many operations that change what is in a folder, or force it to the disk."""
    left = count(operations, -1)

    def mortal(real: Any) -> Any:
        def operation(*args: Any, **keywords: Any) -> Any:
            if next(left) <= 0:
                raise Crash
            return real(*args, **keywords)

        return operation

    with (
        patch.object(Path, "rename", mortal(Path.rename)),
        patch.object(Path, "unlink", mortal(Path.unlink)),
        patch("os.fsync", mortal(__import__("os").fsync)),
    ):
        yield

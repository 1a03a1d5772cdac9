"""The end of a segment and its two indexes, in their compiled form and in the plain one: the same batches leave the same."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.indexes import offset_index, time_index
from ottla.storage.segments import segment_end
from tests.plain import is_compiled, plain

COMPILED: tuple[ModuleType, ...] = (segment_end, offset_index, time_index)
PLAIN: tuple[ModuleType, ...] = tuple(plain(module.__name__) for module in COMPILED)
BATCHES = st.lists(st.tuples(st.integers(1, 5), st.integers(-1, 2**62), st.integers(61, 5000)), max_size=30)
KEPT = ("size", "bytes_since_entry", "max_timestamp", "max_timestamp_offset")


def end_of_segment(modules: tuple[ModuleType, ...]) -> Any:
    ends, offsets, times = modules
    end = ends.SegmentEnd(1000, 0, 200)
    assert not end.indexed()
    end._offsets, end._times = offsets.OffsetIndex(Path("a.index"), 1000), times.TimeIndex(Path("a.timeindex"), 1000)
    return end


def history(modules: tuple[ModuleType, ...], batches: list[tuple[int, int, int]]) -> list[list[object]]:
    """What is known after each batch."""
    end, offset, seen = end_of_segment(modules), 1000, []
    for count, timestamp, size in batches:
        offset += count
        end.account(offset - 1, timestamp, size)
        saved = modules[0].Savepoint(end)
        seen.append([getattr(saved, name) for name in (*KEPT, "offsets", "times", "transactions")])
        seen.append([getattr(end, name) for name in KEPT])
        seen.append([end._offsets.last(), end._times.last(), end._offsets.before(offset), end._times.before(timestamp)])
    return seen


@given(BATCHES)
def test_both_forms_know_the_same_after_the_same_batches(batches: list[tuple[int, int, int]]) -> None:
    assert not any(map(is_compiled, PLAIN))
    assert history(COMPILED, batches) == history(PLAIN, batches)

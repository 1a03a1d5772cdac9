"""The end of a segment and its indexes, compiled and uncompiled: the same batches lead to the same state."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.indexes import index_set, offset_index, time_index
from ottla.storage.segments import segment_end
from tests.plain import fresh, is_compiled

COMPILED: tuple[ModuleType, ...] = (segment_end, index_set, offset_index, time_index)
BATCHES = st.lists(st.tuples(st.integers(1, 5), st.integers(-1, 2**62), st.integers(61, 5000)), max_size=30)
KEPT = ("bytes_since_entry", "max_timestamp", "max_timestamp_offset")


def uncompiled() -> tuple[ModuleType, ...]:
    """The same modules from their `.py` files, each using the uncompiled others."""
    modules = tuple(fresh(module.__name__) for module in COMPILED)
    ends, sets, offsets, times = modules
    vars(ends)["IndexSet"] = vars(sets)["IndexSet"]
    vars(sets)["OffsetIndex"], vars(sets)["TimeIndex"] = vars(offsets)["OffsetIndex"], vars(times)["TimeIndex"]
    return modules


PLAIN = uncompiled()


def end_of_segment(modules: tuple[ModuleType, ...]) -> Any:
    end = modules[0].SegmentEnd(Path("segments"), 1000, 0, 200, "")
    assert not end.indexes.is_loaded()
    end.indexes.clear()
    assert end.indexes.is_loaded()
    return end


def history(modules: tuple[ModuleType, ...], batches: list[tuple[int, int, int]]) -> list[list[object]]:
    """Return the state after each batch."""
    end, offset, seen = end_of_segment(modules), 1000, []
    for count, timestamp, size in batches:
        offset += count
        end.account(offset - 1, timestamp, size)
        indexes = end.indexes
        saved = indexes.savepoint(end.size)
        names = (*KEPT, "log_bytes", "offset_entries", "time_entries", "transactions")
        seen.append([getattr(saved, name) for name in names])
        seen.append([end.size, *(getattr(indexes, name) for name in KEPT), indexes.has_reached(48)])
        offsets, times = indexes.offsets, indexes.times
        seen.append([offsets.last(), times.last(), offsets.before(offset), times.before(timestamp)])
    return seen


@given(BATCHES)
def test_both_forms_know_the_same_after_the_same_batches(batches: list[tuple[int, int, int]]) -> None:
    assert not any(map(is_compiled, PLAIN))
    assert history(COMPILED, batches) == history(PLAIN, batches)


@given(BATCHES, BATCHES)
def test_both_forms_return_to_a_savepoint(
    before: list[tuple[int, int, int]], after: list[tuple[int, int, int]]
) -> None:
    for modules in (COMPILED, PLAIN):
        end, offset = end_of_segment(modules), 1000
        for count, timestamp, size in before:
            offset += count
            end.account(offset - 1, timestamp, size)
        state = [getattr(end.indexes, name) for name in KEPT], end.indexes.offsets.last(), end.indexes.times.last()
        saved = end.indexes.savepoint(end.size)
        for count, timestamp, size in after:
            offset += count
            end.account(offset - 1, timestamp, size)
        end.indexes.roll_back(saved)
        left = [getattr(end.indexes, name) for name in KEPT], end.indexes.offsets.last(), end.indexes.times.last()
        assert left == state

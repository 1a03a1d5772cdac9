"""Offset translation: a migrating consumer misses no record, and the number of repeated records is reported."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from ottla.mirror.ledger import PLACES, Ledger, LedgerEntry, encode_entry, slot_of
from ottla.model import TopicPartition

TP = TopicPartition("orders", 0)
GAPS = st.lists(st.integers(1, 4), min_size=1, max_size=120)
"""The distances between consecutive source offsets; 1 means no gap."""
SIZES = st.lists(st.integers(1, 7), min_size=1)


def carried(steps: list[int], sizes: list[int]) -> tuple[Ledger, list[int], list[int], int]:
    """A ledger of all the records, their offsets in the source and in the target, and the end of the source."""
    ledger, source, target, offset = Ledger(), [], [], 0
    for step in steps:
        source.append(offset)
        offset += step
    number = place = at = 0
    while at < len(source):
        chunk = source[at : at + sizes[number % len(sizes)]]
        at += len(chunk)
        end = source[at] if at < len(source) else offset
        targets = list(range(place, place + len(chunk)))
        target += targets
        place += len(chunk) + 1  # the marker of the transaction
        ledger.add(TP, ledger.next_entry(TP, chunk, end, targets[0], targets[-1] + 1))
        number += 1
    return ledger, source, target, offset


@given(GAPS, SIZES)
def test_no_record_is_left_out_and_repeats_stay_within_the_reported_bound(steps: list[int], sizes: list[int]) -> None:
    ledger, source, target, end = carried(steps, sizes)
    for offset in range(end + 1):
        found = ledger.for_partition(TP).translate(offset, end)
        assert found is not None
        following = bisect_left(source, offset)
        right = target[following] if following < len(target) else target[-1] + 1
        assert found.offset <= right
        again = bisect_left(target, right) - bisect_left(target, found.offset)
        assert again <= found.repeats


@given(st.integers(1, 400))
def test_without_gaps_the_ledger_is_exact(count: int) -> None:
    ledger, _, target, end = carried([1] * count, [3])
    last = [ledger.for_partition(TP).translate(offset, end) for offset in range(max(0, end - 3 * PLACES), end)]
    assert [found and found.offset for found in last] == target[max(0, end - 3 * PLACES) :]


def test_a_reader_at_the_end_continues_at_the_end_and_one_ahead_waits() -> None:
    ledger, _, target, end = carried([1, 1, 5], [3])
    assert ledger.for_partition(TP).translate(end, end) == (target[-1] + 1, 0)
    assert ledger.for_partition(TP).translate(end + 1, end + 1) == (target[-1] + 1, 0)
    assert ledger.for_partition(TP).translate(end + 1, end) is None
    assert Ledger().for_partition(TP).translate(4, 4) == (0, 0)
    assert Ledger().for_partition(TP).translate(4, 3) is None


@given(st.integers(1, 5000))
def test_a_ledger_stays_small_and_keeps_its_first_and_last(count: int) -> None:
    kept = {slot_of(number): number for number in range(1, count + 1)}
    assert len(kept) <= 1 + PLACES * count.bit_length()
    assert {1, *range(max(1, count - PLACES), count + 1)} <= set(kept.values())
    assert all(
        any(age <= count - number <= 2 * age + 2 * PLACES for number in kept.values()) for age in (0, count // 3)
    )


def test_a_written_ledger_is_read_back() -> None:
    entry, again = LedgerEntry(7, 10, 20, 3, 13, 10), Ledger()
    again.replay(*encode_entry(TP, entry))
    again.replay(*encode_entry(TP, entry._replace(number=6, source_end=10)))
    again.replay(b"{}", None)
    assert again.for_partition(TP).last == entry
    assert again.position(TP) == 20
    assert again.position(TopicPartition("orders", 1)) is None


def test_records_of_other_producers_make_an_entry_conservative() -> None:
    entry = Ledger().next_entry(TP, [5, 6, 7], 8, 100, 110)
    assert entry.dense == 0
    ledger = Ledger()
    ledger.add(TP, entry)
    assert ledger.for_partition(TP).translate(7, 8) == (100, 2)

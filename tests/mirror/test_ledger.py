"""Which offset is which: nothing is left out by whoever moves over, and how much is read again is said."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from ottla.mirror.ledger import PLACES, Carried, Ledger, encoded, slot
from ottla.model import TopicPartition

TP = TopicPartition("orders", 0)
GAPS = st.lists(st.integers(1, 4), min_size=1, max_size=120)
"""From each offset of the source to the next: 1 where they follow each other."""
SIZES = st.lists(st.integers(1, 7), min_size=1)


def carried(steps: list[int], sizes: list[int]) -> tuple[Ledger, list[int], list[int], int]:
    """A ledger of all the records, their offsets in the source and in the target, and the end of the source."""
    ledger, source, target, offset = Ledger(), [], [], 0
    for step in steps:
        source.append(offset)
        offset += step
    turn = place = at = 0
    while at < len(source):
        chunk = source[at : at + sizes[turn % len(sizes)]]
        at += len(chunk)
        end = source[at] if at < len(source) else offset
        targets = list(range(place, place + len(chunk)))
        target += targets
        place += len(chunk) + 1  # the marker of the transaction
        ledger.note(TP, ledger.next_entry(TP, chunk, end, targets[0], targets[-1] + 1))
        turn += 1
    return ledger, source, target, offset


@given(GAPS, SIZES)
def test_nothing_is_left_out_and_no_more_repeats_than_is_said(steps: list[int], sizes: list[int]) -> None:
    ledger, source, target, end = carried(steps, sizes)
    for offset in range(end + 1):
        found = ledger.of(TP).translated(offset, end)
        assert found is not None
        following = bisect_left(source, offset)
        right = target[following] if following < len(target) else target[-1] + 1
        assert found.offset <= right
        again = bisect_left(target, right) - bisect_left(target, found.offset)
        assert again <= found.repeats


@given(st.integers(1, 400))
def test_without_gaps_what_is_remembered_is_exact(count: int) -> None:
    ledger, _, target, end = carried([1] * count, [3])
    behind = [ledger.of(TP).translated(offset, end) for offset in range(max(0, end - 3 * PLACES), end)]
    assert [found and found.offset for found in behind] == target[max(0, end - 3 * PLACES) :]


def test_a_reader_at_the_end_goes_on_at_the_end_and_one_ahead_waits() -> None:
    ledger, _, target, end = carried([1, 1, 5], [3])
    assert ledger.of(TP).translated(end, end) == (target[-1] + 1, 0)
    assert ledger.of(TP).translated(end + 1, end + 1) == (target[-1] + 1, 0)
    assert ledger.of(TP).translated(end + 1, end) is None
    assert Ledger().of(TP).translated(4, 4) == (0, 0)
    assert Ledger().of(TP).translated(4, 3) is None


@given(st.integers(1, 5000))
def test_a_ledger_stays_small_and_keeps_its_first_and_last(count: int) -> None:
    kept = {slot(number): number for number in range(1, count + 1)}
    assert len(kept) <= 1 + PLACES * count.bit_length()
    assert {1, *range(max(1, count - PLACES), count + 1)} <= set(kept.values())
    assert all(
        any(age <= count - number <= 2 * age + 2 * PLACES for number in kept.values()) for age in (0, count // 3)
    )


def test_what_was_written_is_read_again() -> None:
    entry, again = Carried(7, 10, 20, 3, 13, 10), Ledger()
    again.replay(*encoded(TP, entry))
    again.replay(*encoded(TP, entry._replace(number=6, source_end=10)))
    again.replay(b"{}", None)
    assert again.of(TP).last == entry
    assert again.position(TP) == 20
    assert again.position(TopicPartition("orders", 1)) is None


def test_others_that_write_between_make_an_entry_careful() -> None:
    entry = Ledger().next_entry(TP, [5, 6, 7], 8, 100, 110)
    assert entry.dense == 0
    ledger = Ledger()
    ledger.note(TP, entry)
    assert ledger.of(TP).translated(7, 8) == (100, 2)

"""Fields that the CRC of a batch does not cover: each bit of base offsets and leader epochs is flipped and read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest

from ottla.client.consumer.fetching import completed_fetch, damage
from ottla.errors import CorruptRecordError
from ottla.records.batch import iter_headers, stamp
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec
from tests.client.consumer.fetching.test_fetcher import A, Story, data
from tests.plain import fresh, plain
from tests.records.forms import FORMS

FIRST = 20
EPOCH = 3
SIZES = [
    (5, Codec.NONE),
    (1, Codec.NONE),
    (4, Codec.GZIP),
    (8, Codec.NONE),
    (2, Codec.NONE),
    (3, Codec.NONE),
    (1, Codec.GZIP),
]
END = FIRST + sum(count for count, _ in SIZES)
MOST_POLLS = 60
SENTENCE = re.compile(r"t-0, offset (\d+): .*; seek to offset (\d+) to skip it", re.DOTALL)


def batch(base_offset: int, count: int, codec: Codec) -> bytes:
    """Return records with their offsets as values."""
    builder = BatchBuilder(codec=codec)
    for n in range(count):
        builder.append(1000, None, b"%d" % (base_offset + n))
    made = bytearray(builder.build())
    stamp(made, 0, base_offset, EPOCH)
    return bytes(made)


def batches() -> list[bytes]:
    """One behind the other, without a gap."""
    made, offset = [], FIRST
    for count, codec in SIZES:
        made.append(batch(offset, count, codec))
        offset += count
    return made


GOOD = batches()
SPANS = [(header.base_offset, header.next_offset) for _, header in iter_headers(b"".join(GOOD))]


class Flip(NamedTuple):
    """The flipped bit of a batch."""

    number: int
    at: int
    bit: int

    def applied(self) -> list[bytes]:
        changed = bytearray(GOOD[self.number])
        changed[self.at] ^= 1 << self.bit
        return [*GOOD[: self.number], bytes(changed), *GOOD[self.number + 1 :]]


BASE_OFFSETS = [Flip(number, at, bit) for number in range(len(GOOD)) for at in range(8) for bit in range(8)]
SOME = [flip for flip in BASE_OFFSETS if flip.at in (0, 7)]
"""For what takes long: those that move a batch out of the log, and those that move it within."""
EPOCHS = [Flip(number, at, bit) for number in range(len(GOOD)) for at in range(12, 16) for bit in range(8)]
Take = Callable[[Story], list[tuple[int, int]]]
"""Offsets and values of what a reader is given next."""


def by_rows(story: Story) -> list[tuple[int, int]]:
    return [(record.offset, int(record.value)) for part in story.fetcher.collect_fetch(3) for record in part]


def by_columns(story: Story) -> list[tuple[int, int]]:
    chunks = story.fetcher.collect_columns(None, with_headers=False)
    return [
        (columns.offsets[row], int(columns.value(row) or b"")) for _, columns in chunks for row in range(columns.count)
    ]


def by_range(story: Story) -> list[tuple[int, int]]:
    """Read columns up to a bound, as a range reader does."""
    story.subscriptions.state(A).end = END - 2
    return by_columns(story)


WAYS: dict[str, tuple[Take, int]] = {"rows": (by_rows, END), "columns": (by_columns, END), "range": (by_range, END - 2)}


@pytest.fixture(params=FORMS)
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return the compiled or the plain decoder."""
    decode = FORMS[request.param].decode
    monkeypatch.setattr(completed_fetch, "decode", decode)
    monkeypatch.setattr(damage, "decode", decode)
    if request.param != "compiled":
        rows, slices = plain("ottla.client.consumer.record"), fresh("ottla.client.consumer.records")
        vars(slices).update(records_of=rows.records_of)
        monkeypatch.setattr(completed_fetch, "extent", plain("ottla.records.survey").extent)
        monkeypatch.setattr(completed_fetch, "RecordSource", rows.RecordSource)
        monkeypatch.setattr(completed_fetch, "RecordSlice", slices.RecordSlice)
    return bool(request.param == "compiled")


class Reading:
    """Poll repeatedly as a user does, seeking to the offset in each error."""

    def __init__(self, served: Callable[[int], bytes], take: Take, start: int, end: int, high_watermark: int) -> None:
        self.found: list[tuple[int, int]] = []
        self.reported: list[tuple[int, int]] = []
        """The offsets in errors, and those to continue at."""
        self.story = Story(A)
        self.story.subscriptions.seek(A, start)
        for _ in range(MOST_POLLS):
            position = self.story.position()
            assert position is not None
            if position >= end:
                return
            given = served(position)
            if not given:
                return  # the broker says that there is no more
            self.story.partitions[0] = data(given, high_watermark=high_watermark)
            self.story.poll()
            try:
                found = take(self.story)
            except CorruptRecordError as error:
                self.seek(error, position)
                continue
            self.found += found
        raise AssertionError(f"no end: {self.found}, {self.reported}")

    def seek(self, error: CorruptRecordError, position: int) -> None:
        match = SENTENCE.fullmatch(str(error))
        assert match, error
        offset, after = int(match[1]), int(match[2])
        assert position <= offset < after
        assert self.story.position() == position, "nothing was skipped in silence"
        self.reported.append((offset, after))
        self.story.subscriptions.seek(A, after)

    def check(self, start: int, below: int) -> None:
        """Check the invariants for any content."""
        offsets = [offset for offset, _ in self.found]
        assert offsets == sorted(set(offsets)), "none twice, none backwards"
        assert all(start <= offset < below for offset in offsets), offsets


def served_by_place(flipped: list[bytes], most: int) -> Callable[[int], bytes]:
    """A broker that finds batches by an index, without checks."""

    def served(offset: int) -> bytes:
        number = sum(stop <= offset for _, stop in SPANS)
        return b"".join(flipped[number : number + most])

    return served


def served_by_headers(flipped: list[bytes], most: int) -> Callable[[int], bytes]:
    """A broker that selects batches by their headers."""
    headers = [header for _, header in iter_headers(b"".join(flipped))]

    def served(offset: int) -> bytes:
        for number, header in enumerate(headers):
            if header.next_offset > offset:
                return b"".join(flipped[number : number + most])
        return b""

    return served


def truth(start: int, end: int) -> list[tuple[int, int]]:
    return [(offset, offset) for offset in range(start, end)]


@pytest.mark.parametrize("way", WAYS)
def test_a_base_offset_with_a_flipped_bit_is_reported_with_position_and_remedy_and_the_rest_is_read(
    way: str, compiled: bool
) -> None:
    take, end = WAYS[way]
    for flip in BASE_OFFSETS if compiled else SOME:
        if is_ambiguous(flip):
            continue
        served = served_by_place(flip.applied(), len(GOOD))
        reading = Reading(served, take, FIRST, end, END)
        reading.check(FIRST, END)
        assert set(reading.found) <= set(truth(FIRST, end)), flip
        first, _stop = SPANS[flip.number]
        if first >= end:
            assert not reading.reported
        else:
            assert reading.reported, flip
        lost = {offset for offset, _ in set(truth(FIRST, end)) - set(reading.found)}
        assert lost <= lost_by(flip.number), (flip, reading.reported)
        assert lost == {o for offset, after in reading.reported for o in range(offset, min(after, end))}, flip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("high_watermark", [stop for _, stop in SPANS])
def test_records_appended_after_the_high_watermark_was_read_are_read(
    way: str, high_watermark: int, compiled: bool
) -> None:
    take, end = WAYS[way]
    for start in (FIRST, FIRST + 2, high_watermark):
        if start < end:
            reading = Reading(served_by_place(GOOD, len(GOOD)), take, start, end, high_watermark)
            assert (reading.found, reading.reported) == (truth(start, end), [])


def is_ambiguous(flip: Flip) -> bool:
    """True if the batch seems to start earlier and still reaches the requested offset, before a gap like that of
    compaction.
    """
    _, header = next(iter_headers(flip.applied()[flip.number]))
    return header.base_offset < SPANS[flip.number][0] < header.next_offset


def lost_by(number: int) -> set[int]:
    """The batch with the wrong bit, and those around it, as two may contradict each other."""
    around = SPANS[max(number - 1, 0) : number + 2]
    return set(range(around[0][0], around[-1][1]))


@pytest.mark.parametrize("way", WAYS)
def test_a_leader_epoch_with_a_flipped_bit_hides_and_moves_no_record(way: str, compiled: bool) -> None:
    take, end = WAYS[way]
    for flip in EPOCHS if compiled else EPOCHS[::16]:
        reading = Reading(served_by_place(flip.applied(), 3), take, FIRST, end, END)
        assert (reading.found, reading.reported) == (truth(FIRST, end), []), flip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("broker", [served_by_place, served_by_headers])
@pytest.mark.parametrize("high_watermark", [END, END + 1000])
def test_whatever_a_broker_returns_no_record_is_repeated_or_outside_of_the_requested_range(
    way: str, broker: Callable[[list[bytes], int], Callable[[int], bytes]], high_watermark: int
) -> None:
    take, end = WAYS[way]
    start = FIRST + 2
    for flip in SOME:
        reading = Reading(broker(flip.applied(), 2), take, start, end, high_watermark)
        reading.check(start, high_watermark)

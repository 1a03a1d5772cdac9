"""Where in fetched bytes the first damage lies that a reader meets. Nobody comes here before decoding has failed."""

from __future__ import annotations

from typing import NamedTuple

from ottla.errors import CorruptRecordError
from ottla.model import Buffer
from ottla.records.batch import BatchHeader, iter_headers
from ottla.records.columns import MAX_OFFSET, decode


class FetchDamage(NamedTuple):
    """What cannot be read."""

    first: int
    """The first offset that is concerned."""
    after: int
    """Where records go on."""
    start: int
    """Where in the bytes it begins: all before that can be read."""
    stop: int
    """Where in the bytes the next batch begins; their end where there is none."""


def first_damage(data: Buffer, asked: int, below: int | None, offset: int, check_crcs: bool) -> FetchDamage:
    """The first batch that cannot be read or cannot have its offsets; it may lie before `offset`, from which on one reads.

    `asked` and `below` are as in `decode`. Of two that contradict each other the one that leapt ahead is wrong.
    """
    headers = whole_headers(data)
    bound = MAX_OFFSET if below is None else below
    expected = asked
    for number, (position, header) in enumerate(headers):
        following = headers[number + 1][1] if number + 1 < len(headers) else None
        stop = headers[number + 1][0] if following is not None else len(data)
        if not fits(header, following, expected, bound, first=number == 0):
            first = max(expected, offset)
            return FetchDamage(first, good_offset(headers[number + 1 :], header, expected, bound), position, stop)
        # Also where it lies before `offset`: bytes are decoded from their beginning.
        if not readable(data, position, header, check_crcs):
            return FetchDamage(max(header.base_offset, offset), header.next_offset, position, stop)
        expected = header.next_offset
    return FetchDamage(offset, offset + 1, 0, len(data))


def whole_headers(data: Buffer) -> list[tuple[int, BatchHeader]]:
    """The batches, as far as their lengths lead from one to the next."""
    found: list[tuple[int, BatchHeader]] = []
    try:
        found.extend(iter_headers(data))
    except CorruptRecordError:
        pass
    return found


def fits(header: BatchHeader, following: BatchHeader | None, expected: int, below: int, *, first: bool) -> bool:
    """Whether a batch may have its offsets. The first may begin before what was asked for, if it reaches that.

    From `below` on there may be what was written since the broker looked, without a gap.
    """
    if header.next_offset > below and not below <= header.base_offset <= expected:
        return False
    if header.next_offset <= expected or (header.base_offset < expected and not first):
        return False
    leapt = following is not None and expected <= following.base_offset < header.next_offset
    return not leapt or header.base_offset <= expected


def good_offset(rest: list[tuple[int, BatchHeader]], header: BatchHeader, expected: int, below: int) -> int:
    """Where records go on behind a batch without a place: with the next that has one, else as far on as it has records."""
    for _, each in rest:
        if each.base_offset >= expected and each.next_offset <= below:
            return each.base_offset
    return expected + max(header.last_offset_delta, 0) + 1


def readable(data: Buffer, position: int, header: BatchHeader, check_crcs: bool) -> bool:
    """Whether a batch is what its header says."""
    try:
        decode(memoryview(data)[position : position + header.size_bytes], check_crcs=check_crcs)
    except CorruptRecordError:
        return False
    return True

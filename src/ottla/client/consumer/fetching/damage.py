"""Locate the first damaged batch in fetched data, after decoding has failed."""

from __future__ import annotations

from typing import NamedTuple

from ottla.errors import CorruptRecordError
from ottla.model import Buffer
from ottla.records.batch import BatchHeader, iter_headers
from ottla.records.columns import MAX_OFFSET, decode


class FetchDamage(NamedTuple):
    """A damaged batch and its position."""

    first_offset: int
    """The first offset that cannot be read."""
    next_offset: int
    """The next readable offset."""
    start_position: int
    """The position of the damage; all data before it is readable."""
    end_position: int
    """The position of the next batch, or the end of the data."""


def first_damage(data: Buffer, asked: int, below: int | None, offset: int, check_crcs: bool) -> FetchDamage:
    """Find the first batch that is unreadable or has impossible offsets.

    The data is decoded from its start, so the damaged batch may end before `offset`, the first offset to read. `asked`
    and `below` are those of `decode`: the requested offset and the log end. If the offsets of two consecutive batches
    overlap, the first is damaged if it leaves a gap after its predecessor, otherwise the second.
    """
    headers = read_headers(data)
    bound = MAX_OFFSET if below is None else below
    expected = asked
    for number, (position, header) in enumerate(headers):
        following = headers[number + 1][1] if number + 1 < len(headers) else None
        end_position = headers[number + 1][0] if following is not None else len(data)
        if not has_plausible_offsets(header, following, expected, bound, first=number == 0):
            first = max(expected, offset)
            return FetchDamage(
                first, next_plausible_offset(headers[number + 1 :], header, expected, bound), position, end_position
            )
        # A batch before `offset` is checked too, because the data is decoded from its start.
        if not is_readable(data, position, header, check_crcs):
            return FetchDamage(max(header.base_offset, offset), header.next_offset, position, end_position)
        expected = header.next_offset
    return FetchDamage(offset, offset + 1, 0, len(data))


def read_headers(data: Buffer) -> list[tuple[int, BatchHeader]]:
    """Return the headers of the batches up to the first invalid length."""
    found: list[tuple[int, BatchHeader]] = []
    try:
        found.extend(iter_headers(data))
    except CorruptRecordError:
        pass
    return found


def has_plausible_offsets(
    header: BatchHeader, following: BatchHeader | None, expected: int, below: int, *, first: bool
) -> bool:
    """Return True if the offsets of a batch are plausible.

    `expected` is the offset after the previous batch, or the requested offset for the first batch. Only the first batch
    may start before `expected`. A batch may end above `below`, the log end that the broker had looked up, only if it
    was written afterwards: then it starts at or after `below`, and without a gap.
    """
    if header.next_offset > below and not below <= header.base_offset <= expected:
        return False
    if header.next_offset <= expected or (header.base_offset < expected and not first):
        return False
    has_jumped = following is not None and expected <= following.base_offset < header.next_offset
    return not has_jumped or header.base_offset <= expected


def next_plausible_offset(
    following_batches: list[tuple[int, BatchHeader]], header: BatchHeader, expected: int, below: int
) -> int:
    """Return the offset at which reading can continue after a batch with wrong offsets.

    It is the start of the next plausible batch, else `expected` plus the number of offsets in the wrong batch.
    """
    for _, each in following_batches:
        if each.base_offset >= expected and each.next_offset <= below:
            return each.base_offset
    return expected + max(header.last_offset_delta, 0) + 1


def is_readable(data: Buffer, position: int, header: BatchHeader, check_crcs: bool) -> bool:
    """Return True if the batch can be decoded."""
    try:
        decode(memoryview(data)[position : position + header.size_bytes], check_crcs=check_crcs)
    except CorruptRecordError:
        return False
    return True

"""Finished offsets above a committed one, as the metadata of the commit. Pure.

The committed offset is the lowest unfinished one. Concurrent work also finishes offsets above it, which a restart would
repeat. The metadata lists them, so that the next owner of the partition skips them:

    ottla.work/1:<base64url of numbers>     numbers: gap, length, gap, length, …

A gap counts the offsets between the end of the last run (at first the committed offset) and the next finished run. Numbers are
unsigned LEB128. After a semicolon follows the state of the partition (`work_status`). The broker limits the size of the metadata (`offset.metadata.max.bytes`, 4096 by default): runs that do not
fit are left out, from the highest offset down, and their records are repeated after a restart.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator

PREFIX = "ottla.work/1:"
METADATA_BYTES = 4096
"""The default of the broker's `offset.metadata.max.bytes`."""
MAX_OFFSET = 2**63 - 1
Run = tuple[int, int]
"""The first finished offset, and the first one after it that is not known to be finished."""


def encode_finished(base: int, runs: Iterable[Run], max_bytes: int = METADATA_BYTES) -> str:
    """Return the metadata for a commit of `base`. The runs are above it, in ascending order, and do not overlap.

    The result has at most `max_bytes` characters, all ASCII; it is empty if there is no run or none fits.
    """
    room = (max_bytes - len(PREFIX)) // 4 * 3
    data = bytearray()
    end = base
    for start, stop in runs:
        assert end <= start < stop, f"run {start}..{stop} after {end}"
        entry = encode_number(start - end) + encode_number(stop - start)
        if len(data) + len(entry) > room:
            break
        data += entry
        end = stop
    return PREFIX + urlsafe_b64encode(data).decode() if data else ""


def decode_finished(base: int, metadata: str) -> list[Run]:
    """Return the runs of finished offsets above the committed offset `base`; none if another program wrote the metadata.

    Raises ValueError if the metadata begins as ours and is malformed.
    """
    if not metadata.startswith(PREFIX):
        return []
    try:
        data = b64decode(metadata[len(PREFIX) :].partition(";")[0], altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError(f"malformed metadata {metadata[:60]!r}: {error}") from None
    runs: list[Run] = []
    numbers = decode_numbers(data)
    end = base
    for gap in numbers:
        length = next(numbers, 0)
        start = end + gap
        end = start + length
        if not length or end > MAX_OFFSET:
            raise ValueError(f"malformed metadata {metadata[:60]!r}: a run of {length} offsets from {start} on")
        runs.append((start, end))
    return runs


def encode_number(number: int) -> bytes:
    """Return a number as unsigned LEB128."""
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def decode_numbers(data: bytes) -> Iterator[int]:
    """Yield the numbers. Raises ValueError if the last one is cut off or one has more than 63 bits."""
    number = shift = 0
    for byte in data:
        if shift > 56:
            raise ValueError("malformed metadata: a number has more than 63 bits")
        number |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
            continue
        yield number
        number = shift = 0
    if shift:
        raise ValueError("malformed metadata: the last number is cut off")

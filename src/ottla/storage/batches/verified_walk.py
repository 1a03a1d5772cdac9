"""The batches of a segment's file that can be believed, and the stretches that cannot.

The CRC of a batch does not cover its base offset and leader epoch: those are held against the neighbours. A batch begins
where the one before it ended, or later where compaction has left a gap, and ends before the next begins. Headers are
enough as long as each fits to the one before; where one does not, CRCs tell which of the two is wrong. Works on a file's
bytes; changes nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ottla.errors import CorruptRecordError
from ottla.model import INT32_MAX, INT64_MAX, HasFileno
from ottla.records.batch import HEADER_BYTES, MAGIC, BatchHeader, parse_header, verify
from ottla.storage.batches.batch_run import BatchRun
from ottla.storage.batches.scan import SCAN_BLOCK, ScanWindow, read_header
from ottla.storage.batches.walk import Gap, StoredBatch, walk

BLOCK_BYTES = 4096
"""With small batches one read has many headers, with large ones it is mostly a waste to read more."""


class VerifiedBatch(NamedTuple):
    """A batch with a header that matches its neighbours."""

    position: int
    header: BatchHeader


class Unsound(NamedTuple):
    """A stretch that cannot be believed, and the offsets that go with it."""

    position: int
    size_bytes: int
    first_offset: int
    next_offset: int
    """The offset of what follows; that of the first where no record is concerned."""
    reason: str
    at_end: bool = False
    """True if no whole batch follows."""


class Bounds(Struct, frozen=True):
    """The limits that the batches of a file are compared with, in addition to their neighbours."""

    below: int = INT64_MAX
    """No batch reaches this offset: the next segment begins there, or the log ends."""
    epochs: Sequence[tuple[int, int]] = ()
    """Leader epochs and the offsets at which they began; none where they are not known."""
    grows: bool = False
    """True at the end of a log that was never compacted: the last batch has no gap before it."""
    end: int | None = None
    """The end offset of the last batch, if it is known."""
    gaps: bool = True
    """True if offsets may be missing between whole batches, as after compaction."""

    def find_fault(self, header: BatchHeader, expected: int) -> str:
        """Return why a header cannot be valid at the expected offset or later; empty if it can."""
        if header.base_offset < expected or (header.base_offset > expected and not self.gaps):
            return f"the batch has offset {header.base_offset}, expected {expected}{' or more' if self.gaps else ''}"
        if header.next_offset > self.below:
            return f"the batch ends at offset {header.last_offset}, what follows begins at {self.below}"
        if header.last_offset - expected > INT32_MAX:
            return f"the batch has offset {header.base_offset}, further from {expected} than a segment reaches"
        if header.last_offset_delta < 0:
            return f"the batch spans {header.last_offset_delta + 1} offsets"
        epoch = header.leader_epoch
        if epoch < -1 or not self._is_epoch_possible(epoch, header.base_offset):
            return f"the batch has leader epoch {epoch}, which is not that of offset {header.base_offset}"
        return ""

    def is_last(self, header: BatchHeader) -> bool:
        """Return True if a batch with this end is known to be the last."""
        return header.next_offset == (self.below if self.end is None else self.end)

    def _is_epoch_possible(self, epoch: int, offset: int) -> bool:
        if not self.epochs:
            return True
        number = bisect_right(self.epochs, offset, key=check_first_batch) - 1
        # Machines once wrote their logs with epoch 0, whatever the partition's was.
        return epoch == self.epochs[number][0] if number >= 0 and epoch > 0 else epoch <= self.epochs[-1][0]


def check_first_batch(entry: tuple[int, int]) -> int:
    return entry[1]


def walk_by_headers(
    file: HasFileno, position: int, end: int, expected: int, bounds: Bounds
) -> Iterator[VerifiedBatch | Unsound]:
    """Everything from `position` up to `end`, where a batch begins with offset `expected` or a later one.

    CRCs are looked at only where headers do not fit together.
    """
    window = ScanWindow(file, end, BLOCK_BYTES)
    held: VerifiedBatch | None = None
    """The last batch, which counts once the next one fits to it."""
    ended = expected
    """The end offset of the batch before it."""
    while position < end:
        header = read_continuing_header(window, position, end, expected, bounds) or (
            None if bounds.grows else read_header_after_gap(window, held, position, end, expected, bounds)
        )
        if header is not None:
            if held is not None:
                yield held
            held, ended = VerifiedBatch(position, header), expected
            expected = header.next_offset
            position += header.size_bytes
            continue
        if held is not None:
            if is_whole(window, held):
                yield held
            else:
                position, expected = held.position, ended
            held = None
        stretch, held = find_end_of_damage(file, position, end, expected, bounds)
        if stretch is not None:
            yield stretch
        if held is None:
            return
        expected, ended = held.header.next_offset, held.header.base_offset
        position = held.position + held.header.size_bytes
    if held is not None:
        yield held if bounds.is_last(held.header) or is_whole(window, held) else describe_damaged_end(held, ended, end)


def walk_by_checksums(
    file: HasFileno, position: int, end: int, expected: int, bounds: Bounds, run: BatchRun | None = None
) -> Iterator[VerifiedBatch | Unsound | BatchRun]:
    """Walk as `walk_by_headers` does and check each CRC; with `run`, batches in a row that need no further check are yielded as a run."""
    window = ScanWindow(file, end, SCAN_BLOCK)
    while position < end:
        if run is not None and run.walk(window.block(position), position, expected, bounds.below):
            yield run
            position, expected = run.stop, run.next_offset
            continue
        header = read_continuing_header(window, position, end, expected, bounds)
        found: VerifiedBatch | None = None if header is None else VerifiedBatch(position, header)
        if found is None or not is_whole(window, found):
            stretch, found = find_end_of_damage(file, position, end, expected, bounds)
            if stretch is not None:
                yield stretch
        if found is None:
            return
        yield found
        expected = found.header.next_offset
        position = found.position + found.header.size_bytes


def describe_damaged_end(held: VerifiedBatch, first: int, end: int) -> Unsound:
    """Describe a last batch with a wrong CRC. Its offsets may be wrong as well: they start at the end of the batch before."""
    said = held.header.next_offset - first
    following = first + (said if 0 < said <= held.header.size_bytes else 1)
    reason = "the CRC of the last batch is not that of its bytes"
    return Unsound(held.position, end - held.position, first, following, reason, at_end=True)


def read_continuing_header(
    window: ScanWindow, position: int, end: int, expected: int, bounds: Bounds
) -> BatchHeader | None:
    """Return the header at a position if it continues exactly where the batch before ended, as nearly all do."""
    try:
        header = read_header(window, position, end)
        if header.base_offset != expected or bounds.find_fault(header, expected):
            return None
    except CorruptRecordError:
        return None
    return header


def read_header_after_gap(
    window: ScanWindow, held: VerifiedBatch | None, position: int, end: int, expected: int, bounds: Bounds
) -> BatchHeader | None:
    """Return the header at a position after a gap, as compaction leaves it, if the next header agrees."""
    try:
        header = read_header(window, position, end)
        following = position + header.size_bytes
        if bounds.find_fault(header, expected):
            return None
        if following < end and bounds.find_fault(read_header(window, following, end), header.next_offset):
            return None
    except CorruptRecordError:
        return None
    return header if held is None or is_whole(window, held) else None


def is_whole(window: ScanWindow, found: VerifiedBatch) -> bool:
    """Return True if the CRC of a batch is right, so that its length and its number of offsets are valid."""
    try:
        verify(window.view(found.position, found.header.size_bytes), 0, found.header)
    except CorruptRecordError:
        return False
    return True


def find_end_of_damage(
    file: HasFileno, position: int, end: int, expected: int, bounds: Bounds
) -> tuple[Unsound | None, VerifiedBatch | None]:
    """Return the unverified range from a position on, and the first whole batch after it that is valid; None for either that does not exist."""
    reason, passed = "", 0
    coming = Coming(file, position, end)
    behind = replace(bounds, gaps=True)
    while (batch := coming.pop()) is not None:
        if isinstance(batch, Gap):
            reason = reason or batch.reason
            continue
        fault = (behind if reason else bounds).find_fault(batch.header, expected)
        fault = fault or find_doubt(batch, coming, expected, bounds, passed)
        if not fault:
            if batch.position == position:
                return None, batch
            following = batch.header.base_offset
            return Unsound(position, batch.position - position, expected, following, reason), batch
        reason = reason or fault
        passed += batch.header.last_offset_delta + 1
    following = bounds.end if bounds.end is not None else bounds.below
    if following == INT64_MAX:
        following = expected + count_offsets(file, position, end)
    return Unsound(position, end - position, expected, max(following, expected), reason, at_end=True), None


def find_doubt(batch: VerifiedBatch, coming: Coming, expected: int, bounds: Bounds, passed: int) -> str:
    """Return why a batch after a gap of offsets is not trusted: its base offset may be damaged. Empty if it is trusted.

    `passed` is the number of offsets of the whole batches in the gap that have other base offsets. Damage before a batch has more likely
    reached the first bytes of the batch, which no CRC covers, than there is separate damage after it.
    """
    header = batch.header
    if header.base_offset - expected in (0, passed):
        return ""
    after = coming.peek()
    if isinstance(after, VerifiedBatch) and expected <= after.header.base_offset < header.next_offset:
        is_its_turn = after.header.base_offset - expected == header.next_offset - header.base_offset
        if not is_its_turn and not coming.behind_gap:
            coming.pop()  # it is unknown which of the two is wrong
        return f"the batch has offset {header.base_offset}, the one behind it {after.header.base_offset}"
    behind = coming.peek(1) if isinstance(after, Gap) else after  # whole, as is all that follows a gap
    if isinstance(behind, VerifiedBatch) and expected <= behind.header.base_offset < header.next_offset:
        return f"the batch has offset {header.base_offset}, one behind it {behind.header.base_offset}"
    if behind is None and bounds.grows and not coming.broken and header.next_offset != bounds.end:
        return f"the batch has offset {header.base_offset}, expected {expected}"
    if after is None and bounds.end is not None and header.next_offset != bounds.end:
        return f"the batch ends at offset {header.last_offset}, the log before {bounds.end}"
    return ""


class Coming:
    """The results of a walk over a file's bytes, with a look-ahead."""

    def __init__(self, file: HasFileno, position: int, end: int) -> None:
        self.broken = False
        """True if anything but a whole batch was passed."""
        self.behind_gap = False
        """True if that was immediately before the last result."""
        self._found = (
            VerifiedBatch(each.position, each.header) if isinstance(each, StoredBatch) else each
            for each in walk(file, position, end)
        )
        self._ahead: deque[VerifiedBatch | Gap] = deque()
        self._after_gap = False

    def pop(self) -> VerifiedBatch | Gap | None:
        """Return the next result; None at the end."""
        found = self._ahead.popleft() if self._ahead else next(self._found, None)
        self.behind_gap, self._after_gap = self._after_gap, isinstance(found, Gap)
        self.broken = self.broken or self._after_gap
        return found

    def peek(self, further: int = 0) -> VerifiedBatch | Gap | None:
        """Return the next result, or one `further` after it, without removing it."""
        self._ahead.extend(islice(self._found, max(further + 1 - len(self._ahead), 0)))
        return self._ahead[further] if further < len(self._ahead) else None


def count_offsets(file: HasFileno, position: int, end: int) -> int:
    """Return the number of offsets in the damaged end of a log by its headers; at least one."""
    window, count = ScanWindow(file, end, BLOCK_BYTES), 0
    while position + HEADER_BYTES <= end:
        header = parse_header(window.view(position, HEADER_BYTES))
        if header.magic != MAGIC or not 0 <= header.last_offset_delta < header.size_bytes:
            break
        count += header.last_offset_delta + 1
        position += header.size_bytes
    return max(count, 1)

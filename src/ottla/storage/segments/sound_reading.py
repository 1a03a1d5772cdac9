"""Reading a segment: what was appended in this run as it lies there, what was found on the disk once it has been looked at.

Each stretch is looked at once, by its headers, when somebody first reads there.
"""

from __future__ import annotations

from msgspec.structs import replace

from ottla.model import FileSlice
from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.batches.scan import find_offset
from ottla.storage.batches.sound_walk import Bounds, Unsound, sound_walk
from ottla.storage.segments.ground import Stretch
from ottla.storage.segments.segment import Segment


def sound_slice(segment: Segment, offset: int, max_bytes: int, *, min_one: bool, end: int | None) -> FileSlice | None:
    """Whole batches from the one that holds `offset` on; empty where `max_bytes` has no room, None behind the last.

    `end` is an offset up to which they may come. DamagedLogError where the record asked for cannot be believed.
    """
    offset = max(offset, segment.base_offset)
    if offset >= segment.own_offset:
        position, stop = segment.position_of(offset), segment.size
        near = position
    else:
        found = looked_at(segment, offset, max_bytes)
        if found is None:
            return None
        stretch, position = found
        near, stop = position, stretch.stop
        if stop >= segment.own_position:
            stop = segment.size
    if end is not None and position < stop:
        stop = find_offset(segment.file, near if end < segment.own_offset else segment.own_position, stop, end)
    if position >= stop:
        return None
    piece = segment.slice(position, max_bytes, min_one=min_one, end=stop)
    return FileSlice(segment.file, position, 0) if piece is None else piece


def looked_at(segment: Segment, offset: int, max_bytes: int) -> tuple[Stretch, int] | None:
    """A stretch that is sound and holds an offset, and where in it; None where nothing in the segment reaches that."""
    ground = segment.ground
    extent = min(segment.size, segment.own_position)
    last = None
    while True:
        damage = ground.damaged(offset)
        if damage is not None:
            raise DamagedLogError(damage)
        stretch = ground.holding(offset)
        if stretch is None:
            start = nearest(segment, offset)
            if start[0] >= extent:
                return None
            for each in ground.damages:  # behind offsets that were compacted away, or are taken for it
                if each.position == start[0] and each.size_bytes:
                    raise DamagedLogError(each)
        else:
            entry = segment.entry_before(offset)[1]
            near = entry if stretch.start <= entry < stretch.stop else stretch.start
            position = find_offset(segment.file, near, stretch.stop, offset)
            ended = stretch.stop >= extent or any(each.position == stretch.stop for each in ground.damages)
            if ended or stretch.stop - position >= max_bytes:
                return stretch, position
            start = stretch.stop, stretch.next_offset
        assert start != last, f"{segment.path}: nothing is found from {start} on for offset {offset}"
        last = start
        look(segment, *start, offset, max_bytes)


def nearest(segment: Segment, offset: int) -> tuple[int, int]:
    """A position at or before the batch that holds an offset, from where to look, and the offset expected there."""
    base_offset, position = segment.entry_before(offset)
    before = segment.ground.ending_before(offset)
    if before is not None and before.stop >= position:
        position, base_offset = before.stop, before.next_offset
    for damage in segment.ground.damages:
        if damage.next_offset <= offset and damage.position + damage.size_bytes > position:
            position, base_offset = damage.position + damage.size_bytes, damage.next_offset
    return position, base_offset


def look(segment: Segment, position: int, expected: int, offset: int, max_bytes: int) -> None:
    """Look at what follows a position until enough is known from an offset on, and note what is sound and what is not."""
    ground = segment.ground
    extent, bounds = up_to_known(segment, position, expected)
    stretch = Stretch(position, position, expected, expected)
    goal = extent
    for found in sound_walk(segment.file, position, extent, expected, bounds):
        if isinstance(found, Unsound):
            note(segment, stretch)
            ground.add_damage(found)
            begin = found.position + found.size_bytes
            stretch = Stretch(begin, begin, found.next_offset, found.next_offset)
            if found.next_offset > offset:
                break
            continue
        header = found.header
        stop = found.position + header.size_bytes
        stretch = stretch._replace(stop=stop, next_offset=header.next_offset)
        if goal == extent and header.next_offset > offset:
            goal = min(found.position + max_bytes, extent)
        if goal < extent and stop >= goal:
            break
    note(segment, stretch)


def up_to_known(segment: Segment, position: int, expected: int) -> tuple[int, Bounds]:
    """Up to where to look, and what to hold it against: headers do not tell of damage that a start found by its CRC."""
    extent, bounds = min(segment.size, segment.own_position), segment.bounds
    for damage in segment.ground.damages:
        if damage.size_bytes and position <= damage.position < extent:
            below = min(bounds.below, damage.offset) if expected <= damage.offset else bounds.below
            return damage.position, replace(bounds, below=below)
    return extent, bounds


def note(segment: Segment, stretch: Stretch) -> None:
    """Keep a stretch that has anything in it."""
    if stretch.stop > stretch.start:
        segment.ground.add(stretch)

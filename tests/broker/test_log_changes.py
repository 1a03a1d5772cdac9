"""What tells two looks at a log apart."""

from __future__ import annotations

import pytest

from ottla.broker.inside.log_changes import Event, Look, changes_between
from ottla.broker.partitions.log_events import InSyncChanged, SegmentRolled, SegmentsDeleted
from ottla.model import TopicPartition

PLACE = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("before", "now", "events"),
    [
        (Look((0,), None), Look((0,), None), []),
        (Look((0,), None), Look((0, 5, 9), None), [SegmentRolled(PLACE, 5), SegmentRolled(PLACE, 9)]),
        (Look((0, 5), None), Look((5,), None), [SegmentsDeleted(PLACE, 1, 5)]),
        (Look((0, 5), None), Look((9,), None), [SegmentRolled(PLACE, 9), SegmentsDeleted(PLACE, 2, 9)]),
        (Look((0, 5, 9), None), Look((0, 9), None), []),  # two were compacted into one
        (Look((0, 5, 9), None), Look((0,), None), []),  # a follower has cut it off
        (Look((), None), Look((0,), None), []),
        (Look((0,), None), Look((0,), (1, 2)), []),  # it leads now
        (Look((0,), (1, 2)), Look((0,), (1, 3)), [InSyncChanged(PLACE, (1, 2), (1, 3))]),
    ],
)
def test_what_has_changed_of_a_log(before: Look, now: Look, events: list[Event]) -> None:
    assert list(changes_between(PLACE, before, now)) == events


def test_each_is_a_line_for_people() -> None:
    assert str(InSyncChanged(PLACE, (1, 2), (1, 3))) == "orders-0: in sync are 1, 3 (without 2, with 3)"
    assert (
        str(SegmentsDeleted(PLACE, 1, 5)) == "orders-0: its oldest segment is deleted; what is left begins at offset 5"
    )
    assert str(SegmentsDeleted(PLACE, 2, 9)).startswith("orders-0: its 2 oldest segments are deleted")
    assert str(SegmentRolled(PLACE, 5)) == "orders-0: a new segment begins at offset 5"

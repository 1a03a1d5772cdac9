"""The differences of two states of a log."""

from __future__ import annotations

import pytest

from ottla.broker.introspection.log_changes import Event, LogState, changes_between
from ottla.broker.replica_manager.log_events import InSyncChanged, SegmentRolled, SegmentsDeleted
from ottla.model import TopicPartition

PLACE = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("before", "now", "events"),
    [
        (LogState((0,), None), LogState((0,), None), []),
        (LogState((0,), None), LogState((0, 5, 9), None), [SegmentRolled(PLACE, 5), SegmentRolled(PLACE, 9)]),
        (LogState((0, 5), None), LogState((5,), None), [SegmentsDeleted(PLACE, 1, 5)]),
        (LogState((0, 5), None), LogState((9,), None), [SegmentRolled(PLACE, 9), SegmentsDeleted(PLACE, 2, 9)]),
        (LogState((0, 5, 9), None), LogState((0, 9), None), []),  # two were compacted into one
        (LogState((0, 5, 9), None), LogState((0,), None), []),  # a follower has cut it off
        (LogState((), None), LogState((0,), None), []),
        (LogState((0,), None), LogState((0,), (1, 2)), []),  # it leads now
        (LogState((0,), (1, 2)), LogState((0,), (1, 3)), [InSyncChanged(PLACE, (1, 2), (1, 3))]),
    ],
)
def test_two_states_of_a_log_give_its_changes(before: LogState, now: LogState, events: list[Event]) -> None:
    assert list(changes_between(PLACE, before, now)) == events


def test_each_change_is_formatted_as_one_line() -> None:
    assert str(InSyncChanged(PLACE, (1, 2), (1, 3))) == "orders-0: in sync are 1, 3 (without 2, with 3)"
    assert (
        str(SegmentsDeleted(PLACE, 1, 5)) == "orders-0: its oldest segment is deleted; what is left begins at offset 5"
    )
    assert str(SegmentsDeleted(PLACE, 2, 9)).startswith("orders-0: its 2 oldest segments are deleted")
    assert str(SegmentRolled(PLACE, 5)) == "orders-0: a new segment begins at offset 5"

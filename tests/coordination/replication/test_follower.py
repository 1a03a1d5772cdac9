"""What a follower makes of its leader's answers."""

from __future__ import annotations

from ottla.coordination.replication.epochs import EpochEnd
from ottla.coordination.replication.follower import FetchFrom, Follower

STARTS = [(1, 0), (3, 8)]


def test_a_follower_asks_from_its_end_and_tells_the_epoch_of_its_last_batch() -> None:
    assert Follower(4, 5).next_fetch(STARTS, 12) == FetchFrom(12, 3, 4)
    assert Follower(4, 0).next_fetch([], 0) == FetchFrom(0, -1, 4)


def test_a_follower_never_knows_more_to_be_committed_than_it_has() -> None:
    follower = Follower(4, 5)
    follower.append(10, 14)
    assert follower.high_watermark == 10
    follower.append(12, 9)
    assert follower.high_watermark == 10


def test_a_cut_takes_the_watermark_along() -> None:
    follower = Follower(4, 11)
    assert follower.cut(STARTS, 12, EpochEnd(1, 10)) == 8
    assert follower.high_watermark == 8

"""A follower and its leader's responses."""

from __future__ import annotations

from ottla.coordination.replication.epochs import EpochEnd
from ottla.coordination.replication.follower import FetchFrom, Follower

STARTS = [(1, 0), (3, 8)]


def test_a_follower_fetches_from_its_end_with_the_epoch_of_its_last_batch() -> None:
    assert Follower(4, 5).next_fetch(STARTS, 12) == FetchFrom(12, 3, 4)
    assert Follower(4, 0).next_fetch([], 0) == FetchFrom(0, -1, 4)


def test_a_follower_never_knows_more_to_be_committed_than_it_has() -> None:
    follower = Follower(4, 5)
    follower.append(10, 14)
    assert follower.high_watermark == 10
    follower.append(12, 9)
    assert follower.high_watermark == 10


def test_a_truncation_lowers_the_high_watermark() -> None:
    follower = Follower(4, 11)
    assert follower.truncation_end(STARTS, 12, EpochEnd(1, 10)) == 8
    assert follower.high_watermark == 8

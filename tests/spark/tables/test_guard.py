"""The check whether a batch must be written."""

from __future__ import annotations

import pytest

from ottla.spark.tables.errors import CheckpointError
from ottla.spark.tables.guard import BatchMark, describe_gap, is_due


def test_a_batch_that_the_table_does_not_have_is_due() -> None:
    assert is_due(BatchMark("q", 0, "a"), None, "t")
    assert is_due(BatchMark("q", 5, "a"), BatchMark("q", 3), "t")


def test_a_table_without_earlier_batches_of_a_query_is_reported() -> None:
    assert "no batch of query q yet, and this is batch 3" in (describe_gap(BatchMark("q", 3), None, "t") or "")
    assert describe_gap(BatchMark("q", 0), None, "t") is None
    assert describe_gap(BatchMark("q", 3), BatchMark("q", 2), "t") is None


def test_a_batch_that_is_done_again_is_left_out() -> None:
    assert not is_due(BatchMark("q", 5, "a"), BatchMark("q", 5, "a"), "t")


@pytest.mark.parametrize(("now", "then"), [("a", None), (None, "a"), (None, None)])
def test_without_offsets_the_batch_number_decides(now: str | None, then: str | None) -> None:
    assert not is_due(BatchMark("q", 5, now), BatchMark("q", 5, then), "t")


def test_another_batch_of_the_same_number_stops() -> None:
    with pytest.raises(
        CheckpointError, match=r"^table t has another batch 5 of query q: two queries use one checkpoint"
    ):
        is_due(BatchMark("q", 5, "a"), BatchMark("q", 5, "b"), "t")


def test_a_batch_that_comes_after_later_ones_stops() -> None:
    with pytest.raises(CheckpointError, match=r"^table t has batch 7 of query q already, so batch 5 is too late"):
        is_due(BatchMark("q", 5, "a"), BatchMark("q", 7), "t")

"""The search for batches after damage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.batches.walk import find_candidates
from tests.storage.batches import batch

LIKELY = st.lists(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]), max_size=200).map(bytes)


def may_begin(block: bytes, at: int) -> bool:
    """True for a base offset and a length that are not negative, and the right magic number."""
    return block[at] < 0x80 and block[at + 8] < 0x80 and block[at + 16] == 2


@given(LIKELY)
def test_every_possible_batch_start_is_tried_and_no_other_position(block: bytes) -> None:
    assert list(find_candidates(block)) == [at for at in range(len(block) - 16) if may_begin(block, at)]


def test_a_batch_is_found_anywhere_in_zeros() -> None:
    assert 5 in find_candidates(bytes(5) + batch(b"a"))
    assert list(find_candidates(bytes(1 << 20))) == []

"""Where batches are looked for behind damage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.batches.walk import find_candidates
from tests.storage.batches import batch

LIKELY = st.lists(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]), max_size=200).map(bytes)


def may_begin(block: bytes, at: int) -> bool:
    """As the format has it: a base offset and a length that are not negative, and the magic number."""
    return block[at] < 0x80 and block[at + 8] < 0x80 and block[at + 16] == 2


@given(LIKELY)
def test_every_place_where_a_batch_may_begin_is_tried_and_no_other(block: bytes) -> None:
    assert list(find_candidates(block)) == [at for at in range(len(block) - 16) if may_begin(block, at)]


def test_a_batch_is_found_wherever_it_lies_in_zeros() -> None:
    assert 5 in find_candidates(bytes(5) + batch(b"a"))
    assert list(find_candidates(bytes(1 << 20))) == []

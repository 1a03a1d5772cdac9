"""The next step of a replica that moves to another directory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ottla.coordination.replication.relocation import (
    FORCE_BYTES,
    MOST_ROUNDS,
    SMALL_BYTES,
    RelocationProgress,
    RelocationStep,
    next_step,
)

WHOLE = RelocationProgress(start=0, end=9, copied=9, is_reported=True, assigned=True)
offsets = st.integers(0, 9)
progress = st.builds(
    RelocationProgress,
    offsets,
    offsets,
    offsets,
    st.none() | offsets,
    st.sampled_from([0, SMALL_BYTES + 1, FORCE_BYTES]),
    st.integers(0, MOST_ROUNDS),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


def test_a_replica_is_copied_then_reported_and_then_switched() -> None:
    begun = RelocationProgress(0, 9, 0)
    assert next_step(begun) is RelocationStep.COPY
    caught_up = replace(begun, copied=9, unforced_bytes=SMALL_BYTES + 1)
    assert next_step(caught_up) is RelocationStep.FORCE
    forced = replace(caught_up, unforced_bytes=0, rounds=1)
    assert next_step(forced) is RelocationStep.REPORT
    reported = replace(forced, is_reported=True)
    assert next_step(reported) is RelocationStep.WAIT
    assert next_step(replace(reported, end=10)) is RelocationStep.COPY
    assert next_step(replace(reported, assigned=True)) is RelocationStep.SWITCH


def test_records_truncated_or_deleted_meanwhile_are_removed_first() -> None:
    assert next_step(replace(WHOLE, cut_at=4)) is RelocationStep.CUT
    assert next_step(replace(WHOLE, cut_at=9)) is RelocationStep.SWITCH
    assert next_step(replace(WHOLE, start=9, copied=5)) is RelocationStep.BEGIN


def test_continuous_writes_do_not_block_the_switch() -> None:
    busy = replace(WHOLE, unforced_bytes=SMALL_BYTES + 1)
    assert next_step(busy) is RelocationStep.FORCE
    assert next_step(replace(busy, rounds=MOST_ROUNDS)) is RelocationStep.SWITCH


@given(progress)
def test_a_replica_is_switched_only_at_equal_ends_and_with_the_metadata(found: RelocationProgress) -> None:
    if next_step(found) is RelocationStep.SWITCH:
        assert found.copied >= max(found.end, found.start)
        assert found.is_reported
        assert found.assigned
        assert found.at_rest
        assert found.cut_at is None or found.cut_at >= found.copied

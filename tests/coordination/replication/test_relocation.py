"""What is done next for a copy that moves to another directory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ottla.coordination.replication.relocation import FORCE_BYTES, MOST_ROUNDS, SMALL_BYTES, Progress, Step, next_step

WHOLE = Progress(start=0, end=9, copied=9, told=True, assigned=True)
offsets = st.integers(0, 9)
progress = st.builds(
    Progress,
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


def test_it_is_copied_then_told_and_then_switched() -> None:
    begun = Progress(0, 9, 0)
    assert next_step(begun) is Step.COPY
    caught_up = replace(begun, copied=9, unforced_bytes=SMALL_BYTES + 1)
    assert next_step(caught_up) is Step.FORCE
    forced = replace(caught_up, unforced_bytes=0, rounds=1)
    assert next_step(forced) is Step.TELL
    told = replace(forced, told=True)
    assert next_step(told) is Step.WAIT
    assert next_step(replace(told, end=10)) is Step.COPY
    assert next_step(replace(told, assigned=True)) is Step.SWITCH


def test_what_was_cut_or_deleted_meanwhile_goes_first() -> None:
    assert next_step(replace(WHOLE, cut_at=4)) is Step.CUT
    assert next_step(replace(WHOLE, cut_at=9)) is Step.SWITCH
    assert next_step(replace(WHOLE, start=9, copied=5)) is Step.BEGIN


def test_who_never_ceases_to_write_does_not_hold_it_up_for_good() -> None:
    busy = replace(WHOLE, unforced_bytes=SMALL_BYTES + 1)
    assert next_step(busy) is Step.FORCE
    assert next_step(replace(busy, rounds=MOST_ROUNDS)) is Step.SWITCH


@given(progress)
def test_it_is_switched_only_where_both_ends_are_one_and_the_metadata_say_so(found: Progress) -> None:
    if next_step(found) is Step.SWITCH:
        assert found.copied >= max(found.end, found.start)
        assert found.told
        assert found.assigned
        assert found.at_rest
        assert found.cut_at is None or found.cut_at >= found.copied

"""The metadata of commits: finished offsets above the committed one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.work.state.finished_offsets import PREFIX, decode_finished, encode_finished

Runs = list[tuple[int, int]]


@st.composite
def bases_and_runs(draw: st.DrawFn) -> tuple[int, Runs]:
    base = draw(st.integers(0, 2**40))
    runs, end = [], base
    for gap, length in draw(st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 3000)), max_size=60)):
        runs.append((end + gap, end + gap + length))
        end += gap + length
    return base, runs


@given(bases_and_runs())
def test_what_was_encoded_is_decoded(case: tuple[int, Runs]) -> None:
    base, runs = case
    assert decode_finished(base, encode_finished(base, runs)) == runs


@given(bases_and_runs(), st.integers(0, 200))
def test_metadata_never_exceeds_its_limit_and_keeps_the_lowest_runs(case: tuple[int, Runs], limit: int) -> None:
    base, runs = case
    metadata = encode_finished(base, runs, limit)
    kept = decode_finished(base, metadata)
    assert len(metadata.encode()) <= limit
    assert kept == runs[: len(kept)]


def test_a_thousand_alternating_offsets_fit_into_the_default_of_the_broker() -> None:
    runs = [(offset, offset + 1) for offset in range(1, 2001, 2)]
    assert decode_finished(0, encode_finished(0, runs)) == runs


@pytest.mark.parametrize("metadata", ["", "by hand", "ottla.work/2:AQE="])
def test_metadata_of_another_program_lists_nothing(metadata: str) -> None:
    assert decode_finished(0, metadata) == []


@pytest.mark.parametrize("text", ["!", "AQ", "gA==", "AQA=", "AQE", "gICAgICAgICAgAEB", "é"])
def test_malformed_metadata_is_one_clear_error(text: str) -> None:
    with pytest.raises(ValueError, match="malformed metadata"):
        decode_finished(0, PREFIX + text)


@given(bases_and_runs(), st.data())
def test_mutated_metadata_is_an_error_or_ascending_runs(case: tuple[int, Runs], data: st.DataObject) -> None:
    base, runs = case
    metadata = list(encode_finished(base, runs) or PREFIX)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(metadata) - 1))
        metadata[place] = data.draw(st.characters())
    try:
        found = decode_finished(base, "".join(metadata))
    except ValueError:
        return
    ends = [base, *(offset for run in found for offset in run)]
    assert ends == sorted(ends)

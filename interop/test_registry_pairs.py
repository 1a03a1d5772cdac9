"""Ten thousand pairs of JSON schemas and of Protobuf files, judged by jsonschema and google.protobuf."""

from __future__ import annotations

import pytest

from tests.registry.drawn_pairs import EXPLAINED, judge_pairs
from tests.registry.test_drawn_pairs import JUDGES

COUNT = 10_000


@pytest.mark.long
@pytest.mark.parametrize("form", JUDGES)
def test_no_compatible_reader_rejects_data_and_every_other_difference_is_explained(form: str) -> None:
    outcome = judge_pairs(COUNT, 2026, *JUDGES[form])
    print(f"{form}: {outcome}")
    assert outcome.unsound == []
    assert set(outcome.strict) <= EXPLAINED.keys()

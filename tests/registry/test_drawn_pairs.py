"""Verdicts about pairs of schemas against the data: JSON Schema by jsonschema, Protobuf by google.protobuf."""

from __future__ import annotations

import pytest

from tests.registry.drawn_pairs import (
    EXPLAINED,
    draw_json_pair,
    draw_proto_pair,
    find_json_loss,
    find_proto_loss,
    judge_pairs,
    parse_json_schema,
    parse_proto,
)

JUDGES = {
    "json": (draw_json_pair, find_json_loss, parse_json_schema),
    "protobuf": (draw_proto_pair, find_proto_loss, parse_proto),
}


@pytest.mark.parametrize(("form", "count"), [("json", 120), ("protobuf", 400)])
def test_a_reader_that_is_called_compatible_accepts_the_data_of_the_writer(form: str, count: int) -> None:
    outcome = judge_pairs(count, 1, *JUDGES[form])
    assert outcome.unsound == []
    assert outcome.compatible > count // 4
    assert outcome.refuted > count // 8
    assert set(outcome.strict) <= EXPLAINED.keys()

"""`--where`: the choice of printed records."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla import Producer
from ottla.cli.records.consume import consume
from ottla.cli.records.where import parse_condition
from tests.cli.conftest import ottla

RECORD: Any = SimpleNamespace(
    topic="orders",
    partition=1,
    offset=7,
    timestamp=1000,
    key=b"k-1",
    value=b'{"amount": 12, "to": {"city": "Bern"}, "tags": ["a", "b"]}',
    headers=[("source", b"shop"), ("none", None)],
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("partition == 1 and offset >= 7 and topic == 'orders'", True),
        ("value.amount > 10", True),
        ("value.amount > '10'", False),
        ("value.to.city in ['Bern', 'Basel']", True),
        ("value.tags[1] == 'b' and value['amount'] != -12", True),
        ("value.nothing.here == None", True),
        ("value.nothing > 1", False),
        ("'k-' in key and 'amount' in value", True),
        ("headers.source == 'shop' and headers['none'] == None and headers.other == None", True),
        ("not timestamp < 1000 or key == None", True),
        ("key.x == 1", False),
        ("'x' not in value.tags", True),
    ],
)
def test_an_expression_is_evaluated_for_each_record(text: str, holds: bool) -> None:
    assert parse_condition(text)(RECORD) is holds


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("amount > 1", "--where has no field 'amount', only key, value, headers, topic"),
        ("value ==", "invalid value 'value ==' for --where: expected an expression, as in: partition == 0"),
        ("open('x')", "--where does not support \"open('x')\": expected comparisons"),
        ("1 < offset < 3", "--where does not support '1 < offset < 3'"),
        ("offset + 1 == 2", "--where does not support 'offset + 1'"),
    ],
)
def test_an_invalid_expression_is_one_clear_error(text: str, sentence: str) -> None:
    with click.Context(consume), pytest.raises(click.UsageError) as caught:
        parse_condition(text)
    assert sentence in caught.value.message


@given(st.binary(), st.none() | st.binary())
def test_any_bytes_are_accepted(value: bytes, key: bytes | None) -> None:
    record: Any = SimpleNamespace(value=value, key=key, headers=[])
    assert parse_condition("value.a.b[0] == 1 or 'x' in key or value < key")(record) in (True, False)


def test_consume_and_head_print_only_matching_records(address: str, topic: str) -> None:
    with Producer(bootstrap_servers=address) as producer:
        for amount in range(20):
            producer.send(topic, b'{"amount": %d}' % amount)
    at = (topic, "--bootstrap-server", address, "--where", "value.amount >= 17")
    assert ottla("consume", *at, "--from-beginning", "--exit").out.count("\n") == 3
    assert ottla("records", "head", *at, "-n", 2).out == '{"amount": 17}\n{"amount": 18}\n'
    refused = ottla("consume", *at, "--group", "g")
    assert (refused.status, refused.sentence.partition(":")[0]) == (2, "--where and --group exclude each other")


def test_a_condition_explains_what_did_not_match() -> None:
    condition = parse_condition("partition == 0 and value.amount > 10 and value.kind == 'x'")
    assert condition.explain() is None

    def record(**fields: object) -> Any:
        return SimpleNamespace(**{**vars(RECORD), **fields})

    for n in range(5):
        assert not condition(record(value=b'{"amount": %d}' % (n * 5), partition=n % 2))
    assert condition.explain() == (
        "no record matches --where \"partition == 0 and value.amount > 10 and value.kind == 'x'\": of 5 records, "
        "3 match partition == 0, 2 match value.amount > 10, 0 match value.kind == 'x' (no record has value.kind)"
    )
    assert condition(record(value=b'{"amount": 11, "kind": "x"}', partition=0))
    assert condition.explain() is None

"""`ottla sql`: queries about topics."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import pyarrow.parquet as pq
import pytest

from ottla import Admin, NewTopic, Producer
from ottla.cli.main import main
from ottla.cli.records.sql import is_named
from ottla.schemas import AvroSerializer, JSONSerializer, MessageField, SchemaRegistryClient, SerializationContext
from tests.schemas.small_registry import SmallRegistry, small_registry

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(address: str, capsys: pytest.CaptureFixture[str]) -> Ask:
    """`ottla sql …` at the broker, in this process."""

    def ask_it(query: str, *words: object) -> tuple[int, str, str]:
        status = main(["sql", query, *map(str, words), "--bootstrap-server", address])
        return (status, *capsys.readouterr())

    return ask_it


@pytest.fixture
def orders(address: str, topic: str) -> str:
    """A topic of two partitions with four orders and a tombstone."""
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(topic, 2)])
    with Producer(bootstrap_servers=address) as producer:
        for n in range(4):
            value = json.dumps({"n": n, "to": {"city": "Bern" if n % 2 else "Basel"}}).encode()
            producer.send(topic, value, key=b"k%d" % n, partition=n % 2, timestamp=1_700_000_000_000 + n * 1000)
        producer.send(topic, None, key=b"k0", partition=0, timestamp=1_700_000_004_000)
    return topic


def test_a_topic_is_a_table(ask: Ask, orders: str) -> None:
    status, out, err = ask(f'select key, "partition", "offset" from \'{orders}\' order by key, "offset"')
    assert (status, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [
        ["key", "partition", "offset"],
        ["k0", "0", "0"],
        ["k0", "0", "2"],
        ["k1", "1", "0"],
        ["k2", "0", "1"],
        ["k3", "1", "1"],
    ]


def test_fields_of_json_are_columns(ask: Ask, orders: str) -> None:
    query = f"select value.to.city, sum(value.n) as n from '{orders}' where value is not null group by 1 order by 1"
    status, out, err = ask(query, "--format", "json", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == [{"city": "Basel", "n": 2}, {"city": "Bern", "n": 4}]


def test_a_restricted_query_reads_fewer_records(ask: Ask, orders: str) -> None:
    count = f"select count(*) as n from '{orders}'"
    assert ask(count, "--output", "csv")[1] == "n\n5\n"
    assert ask(count, "--tail", 1, "--output", "csv")[1] == "n\n2\n"
    assert ask(count, "--from-time", 1_700_000_003_000, "--output", "csv")[1] == "n\n2\n"


def test_a_query_result_is_written_to_a_file(ask: Ask, orders: str, tmp_path: Path) -> None:
    place = tmp_path / "answer.parquet"
    assert ask(f"select key from '{orders}' where value is null", "--to", place) == (0, "", "")
    assert pq.read_table(place).to_pydict() == {"key": ["k0"]}


def test_bytes_that_are_no_text_stay_bytes(ask: Ask, orders: str, address: str) -> None:
    with Producer(bootstrap_servers=address) as producer:
        producer.send(orders, b"\xff", partition=0)
    answer = json.loads(ask(f"select value from '{orders}' where key is null", "--json")[1])
    assert answer == [{"value": {"base64": "/w=="}}]


@pytest.mark.parametrize(
    ("query", "words", "status", "sentence"),
    [
        ("selec", (), 1, 'Parser Error: syntax error at or near "selec"'),
        ("select * from 'no-such-topic'", (), 1, "no-such-topic"),
        (
            "select offset from 'TOPIC'",
            (),
            1,
            'offset and partition are words of SQL: write "offset" and "partition" in',
        ),
        ("select vlue from 'TOPIC'", (), 1, 'did you mean "value"'),
        ("select value.x from 'TOPIC'", (), 1, "the values are text; with --format json, their fields are value.field"),
        ("select 1", ("--to", "a.txt"), 2, "--to a.txt must end with .parquet or .csv"),
        ("select 1", ("--tail", 1, "--from-time", 1), 2, "exclude each other"),
    ],
)
def test_mistakes_are_one_clear_error(
    ask: Ask, orders: str, query: str, words: tuple[object, ...], status: int, sentence: str
) -> None:
    ended, out, err = ask(query.replace("TOPIC", orders), *words)
    assert (ended, out, err.count("\n")) == (status, "", 1)
    assert sentence in err


@pytest.mark.parametrize("error", [RuntimeError("Query interrupted"), duckdb.InterruptException("Interrupted!")])
def test_ctrl_c_amid_a_query_is_no_failure(ask: Ask, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    session = Mock(**{"sql.side_effect": error})
    monkeypatch.setattr(duckdb, "connect", lambda: session)
    assert ask("select 1") == (130, "", "")
    session.close.assert_called_once()


def test_topics_are_recognized_in_the_place_of_tables() -> None:
    assert is_named("a.b", "select 1 FROM 'a.b'")
    assert is_named("b", 'select * from a, b join "c" using (k)')
    assert is_named("c", 'select * from a, b join "c" using (k)')
    assert not is_named("a", "select a from 'b'")
    assert not is_named("a", "select * from a_b")
    assert not is_named("a", "select * from a.b")


class Registered:
    """A topic of one partition with values that have a schema id."""

    def __init__(self, address: str, name: str, registry: SmallRegistry) -> None:
        self.name, self.registry = name, registry
        self._address = address
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topics([NewTopic(name, 1)])

    def send(self, *values: bytes | None, **settings: Any) -> None:
        with Producer(bootstrap_servers=self._address, **settings) as producer:
            for value in values:
                producer.send(self.name, value)

    def encode(self, schema: dict[str, Any], *rows: Any) -> list[bytes]:
        with SchemaRegistryClient(self.registry.url) as client:
            serialize = AvroSerializer(client, json.dumps(schema))
            found = [serialize(row, SerializationContext(self.name, MessageField.VALUE)) for row in rows]
        return [one for one in found if one is not None]


@pytest.fixture
def registered(address: str, topic: str) -> Iterator[Registered]:
    with small_registry() as registry:
        yield Registered(address, f"{topic}-registered", registry)


def order(*fields: tuple[str, Any, Any]) -> dict[str, Any]:
    named = [{"name": name, "type": kind, "default": default} for name, kind, default in fields]
    return {"type": "record", "name": "Order", "fields": named}


OLD = order(("id", "int", 0), ("item", "string", ""))
NEW = order(("id", "long", 0), ("item", "string", ""), ("price", ["null", "double"], None))
PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


def test_registered_avro_values_of_all_versions_are_columns(ask: Ask, registered: Registered) -> None:
    registered.send(*registered.encode(OLD, {"id": 1, "item": "tea"}), None)
    registered.send(*registered.encode(NEW, {"id": 2, "item": "jam", "price": 1.5}))
    query = f"select value.id, value.item, value.price from '{registered.name}' where value is not null order by 1"
    status, out, err = ask(query, "--json", "--registry", registered.registry.url)
    assert (status, err) == (0, "")
    assert json.loads(out) == [
        {"id": 1, "item": "tea", "price": None},
        {"id": 2, "item": "jam", "price": 1.5},
    ]


def test_registered_types_without_a_json_type_are_columns_too(ask: Ask, registered: Registered) -> None:
    kind = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
    at = {"type": "long", "logicalType": "timestamp-millis"}
    schema = order(("kind", kind, "A"), ("at", at, 0), ("price", PRICE, "\x00"))
    row = {"kind": "B", "at": datetime(2026, 1, 2, tzinfo=UTC), "price": Decimal("1.25")}
    registered.send(*registered.encode(schema, row))
    query = f"select value.kind, value.price, epoch_ms(value.at) as at from '{registered.name}'"
    status, out, err = ask(query, "--json", "--registry", registered.registry.url)
    assert (status, err) == (0, "")
    assert json.loads(out) == [{"kind": "B", "price": "1.25", "at": 1_767_312_000_000}]


def test_unions_of_several_types_are_read_as_json(ask: Ask, registered: Registered) -> None:
    schema = order(("id", "int", 0), ("either", ["int", "string"], 0))
    registered.send(*registered.encode(schema, {"id": 1, "either": "x"}, {"id": 2, "either": "y"}))
    query = f"select value.id, value.either from '{registered.name}' order by 1"
    status, out, err = ask(query, "--json", "--registry", registered.registry.url)
    assert (status, err) == (0, "")
    assert json.loads(out) == [{"id": 1, "either": "x"}, {"id": 2, "either": "y"}]


def test_registered_json_is_columns_and_topics_without_ids_stay_as_they_are(
    ask: Ask, registered: Registered, orders: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SchemaRegistryClient(registered.registry.url) as client:
        write = JSONSerializer('{"type": "object", "title": "Order"}', client)
        registered.send({"n": 3, "lines": [{"sku": "a"}]}, value_serializer=write)  # type: ignore[arg-type]
    monkeypatch.setenv("OTTLA_REGISTRY", registered.registry.url)
    both = f"from '{orders}' o join '{registered.name}' r on o.value->>'n' = r.value.n"
    status, out, err = ask(f"select o.key, r.value.lines[1].sku as sku {both}", "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == [{"key": "k3", "sku": "a"}]


def test_values_without_an_id_or_with_an_unknown_one_are_an_error_with_their_place(
    ask: Ask, registered: Registered
) -> None:
    at = ("--registry", registered.registry.url)
    (good,) = registered.encode(OLD, {"id": 1, "item": "tea"})
    registered.send(good, b"plain")
    status, _, err = ask(f"select * from '{registered.name}'", *at)
    assert status == 1
    assert f"the value at offset 1 of {registered.name}-0 has no schema id in front of it, and others have one" in err
    registered.send(b"\0\0\0\0\x63x")
    status, _, err = ask(f"select * from '{registered.name}'", *at, "--tail", "1")
    assert status == 1
    assert (
        f"the value at offset 2 of {registered.name}-0 begins with schema id 99, which the registry does not have"
        in err
    )
    registered.send(good[:-1])
    status, _, err = ask(f"select * from '{registered.name}'", *at, "--tail", "1")
    assert status == 1
    assert f"the value at offset 3 of {registered.name}-0 cannot be read: " in err


def test_of_topics_that_differ_only_in_case_the_spelled_one_is_read(ask: Ask, orders: str, address: str) -> None:
    other = orders.upper()
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(other, 1)])

    assert ask(f"select count(*) as n from '{orders}'", "--json")[1].split() == ["[", "{", '"n":', "5", "}", "]"]
    assert ask(f"select count(*) as n from '{other}'", "--json")[1].split() == ["[", "{", '"n":', "0", "}", "]"]
    for both in (f"select * from '{orders}', '{other}'", f"select * from '{orders.title()}'"):
        status, out, err = ask(both)
        assert (status, out) == (1, "")
        assert "differ only in case, which SQL ignores: query one of them, as it is spelled" in err

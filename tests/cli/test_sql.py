"""`ottla sql`: queries about topics."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import duckdb
import pyarrow.parquet as pq
import pytest

from ottla import Admin, NewTopic, Producer
from ottla.cli.main import main
from ottla.cli.records.sql import is_named

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
        ("select 1", ("--to", "a.txt"), 2, "--to a.txt must end with .parquet or .csv"),
        ("select 1", ("--tail", 1, "--from-time", 1), 2, "exclude each other"),
    ],
)
def test_mistakes_are_one_clear_error(
    ask: Ask, query: str, words: tuple[object, ...], status: int, sentence: str
) -> None:
    ended, out, err = ask(query, *words)
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

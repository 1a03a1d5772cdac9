"""`ottla sql "insert into …"`: rows of a query become records, all or none of them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ottla import Admin, NewTopic, Producer, read_table
from ottla.cli.main import main
from ottla.cli.records.sql_insert import Insert, parse_insert

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(address: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `ottla sql …` in this process."""

    def run_it(query: str, *words: object) -> tuple[int, str, str]:
        status = main(["sql", query, *map(str, words), "--bootstrap-server", address])
        return (status, *capsys.readouterr())

    return run_it


@pytest.fixture
def orders(address: str, topic: str) -> str:
    """A topic of two partitions with four records, and an empty topic `…-copy`."""
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(topic, 2), NewTopic(f"{topic}-copy", 2)])
    with Producer(bootstrap_servers=address) as producer:
        for n in range(4):
            at = 1_700_000_000_000 + n
            producer.send(
                topic,
                json.dumps({"n": n}).encode(),
                key=b"k%d" % n,
                partition=n % 2,
                timestamp=at,
                headers=[("h", b"x")],
            )
    return topic


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("insert into orders select 1 as value", Insert("orders", (), "select 1 as value")),
        ("INSERT INTO 'a.b-c' (key, value)\nfrom 'x'", Insert("a.b-c", ("key", "value"), "from 'x'")),
        (
            'insert into "o" with a as (select 1) select * from a',
            Insert("o", (), "with a as (select 1) select * from a"),
        ),
        ("insert into o values ('a')", Insert("o", (), "values ('a')")),
        ("select 'insert into x select 1'", None),
    ],
)
def test_an_insert_statement_is_recognised(statement: str, found: Insert | None) -> None:
    assert parse_insert(statement) == found


def test_rows_become_records_with_keys_timestamps_partitions_and_headers(run: Run, address: str, orders: str) -> None:
    query = f"insert into '{orders}-copy' select key, value, headers, timestamp, partition from '{orders}' where key <> 'k0'"
    assert run(query) == (0, f"3 records written to {orders}-copy in one transaction\n", "")
    names = ["key", "value", "headers", "timestamp", "partition"]
    wanted = read_table(orders, bootstrap_servers=address, include_headers=True).select(names).to_pylist()
    copied = read_table(f"{orders}-copy", bootstrap_servers=address, include_headers=True).select(names).to_pylist()
    assert sorted(copied, key=str) == sorted((row for row in wanted if row["key"] != b"k0"), key=str)


def test_columns_in_parentheses_name_those_of_the_query(run: Run, address: str, orders: str) -> None:
    query = f"insert into '{orders}-copy' (key, value) select 'sum', to_json({{'n': sum(value.n)}}) from '{orders}'"
    assert run(query, "--format", "json") == (0, f"1 record written to {orders}-copy in one transaction\n", "")
    (row,) = read_table(f"{orders}-copy", bootstrap_servers=address).to_pylist()
    assert (row["key"], json.loads(row["value"])) == (b"sum", {"n": 6})


def test_a_value_that_is_too_large_aborts_what_was_sent_before_it(run: Run, address: str, orders: str) -> None:
    query = (
        f"insert into '{orders}-copy' select repeat('x', case when n = 40 then 3000000 else 1000000 end) as value "
        "from range(41) t(n)"
    )
    status, out, err = run(query)
    assert (status, out) == (1, "")
    assert "max.request.size" in err
    assert err.count("\n") == 1
    assert read_table(f"{orders}-copy", bootstrap_servers=address).num_rows == 0
    sent = read_table(f"{orders}-copy", bootstrap_servers=address, isolation_level="read_uncommitted")
    assert sent.num_rows > 0


def test_a_row_that_cannot_be_written_leaves_none(run: Run, address: str, orders: str) -> None:
    query = f"insert into '{orders}-copy' select value, cast(case key when 'k3' then 7 else 0 end as integer) as partition from '{orders}' order by key"
    status, out, err = run(query)
    assert (status, out) == (1, "")
    assert "partition 7" in err
    assert read_table(f"{orders}-copy", bootstrap_servers=address).num_rows == 0


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        (
            "select 1 as amount, 'x' as value",
            "a topic has no column 'amount': select key, value, headers, timestamp, partition",
        ),
        ("select 'x' as key", "the query returns no column value"),
        ("select 1.5 as value", "the column value is decimal128(2, 1), which does not fit: write to_json(…) as value"),
        ("select {'a': 1} as value", "the column value is struct<a: int32>, which does not fit"),
        (
            "select 'x' as value, 7 as key",
            "the column key is int32, which does not fit: write cast(… as varchar) as key",
        ),
        ("select 'x' as value, 'y' as partition", "the column partition is string, which does not fit"),
        ("select 'x' as value, 3 as \"offset\"", "the column offset cannot be written: the broker decides it"),
        ("(key, value) select 'x'", "insert names 2 columns (key, value), and the query returns 1"),
        ("select 'x' as value from nowhere_at_all", "this user can see no topic of that name"),
    ],
)
def test_columns_that_do_not_fit_are_explained(run: Run, orders: str, rest: str, sentence: str) -> None:
    status, out, err = run(f"insert into '{orders}-copy' {rest}")
    assert (status, out) == (1, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_an_unknown_topic_is_not_created(run: Run, address: str) -> None:
    status, _, err = run("insert into no_topic_of_that_name select 'x' as value")
    assert status == 1
    assert "no_topic_of_that_name" in err
    with Admin(bootstrap_servers=address) as admin:
        assert "no_topic_of_that_name" not in admin.list_topics()


def test_no_rows_are_no_error_and_to_is_refused(run: Run, orders: str, tmp_path: object) -> None:
    nothing = f"insert into '{orders}-copy' select value from '{orders}' where false"
    assert run(nothing) == (0, f"0 records written to {orders}-copy in one transaction\n", "")
    assert run(nothing, "--to", "x.csv")[0] == 2

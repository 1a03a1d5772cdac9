"""`ottla records`, and the formats of `produce` and `consume` other than lines."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ottla import Admin, NewTopic, Producer, TopicPartition
from ottla.cli.main import main
from ottla.cli.records.moments import moment_of
from tests.cli.conftest import OTTLA, PATIENCE, ottla, start

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(address: str, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`ottla …` at the broker, in this process."""

    def run_it(*words: object, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        status = main([*map(str, words), "--bootstrap-server", address])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return status, out.decode(), err.decode()

    return run_it


@pytest.fixture
def orders(address: str, topic: str) -> str:
    """A topic of two partitions, with 0 to 4 in the first and 5 to 7 in the second, a second apart."""
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(topic, 2)])
    with Producer(bootstrap_servers=address) as producer:
        for i in range(8):
            producer.send(topic, b"%d" % i, partition=int(i > 4), timestamp=1_700_000_000_000 + i * 1000)
    return topic


def consumed(run: Run, *words: object) -> list[str]:
    status, out, err = run("consume", *words)
    assert (status, err) == (0, "")
    return out.splitlines()


def test_the_last_of_each_partition_are_read_to_the_end(run: Run, orders: str) -> None:
    assert sorted(consumed(run, orders, "--tail", 2, "--exit")) == ["3", "4", "6", "7"]
    assert consumed(run, orders, "--tail", 100, "--partition", 1, "--exit") == ["5", "6", "7"]
    assert consumed(run, orders, "--tail", 0, "--exit") == []


def test_reading_starts_at_a_timestamp(run: Run, orders: str) -> None:
    assert sorted(consumed(run, orders, "--from-time", 1_700_000_004_000, "--exit")) == ["4", "5", "6", "7"]
    assert sorted(consumed(run, orders, "--from-time", "2023-11-14T22:13:26Z", "--exit")) == ["6", "7"]
    assert consumed(run, orders, "--from-time", "-1m", "--exit") == []


def test_several_topics_are_read_at_once(run: Run, orders: str) -> None:
    other = f"{orders}-other"
    run("topics", "create", other)
    run("produce", other, stdin="x\n")
    assert sorted(consumed(run, orders, other, "--from-beginning", "--exit")) == [*"01234567", "x"]


def test_a_format_string_has_the_conversions_of_kcat(run: Run, orders: str) -> None:
    run("produce", orders, "--partition", 1, "--key", "k", "-H", "a=1", "-H", "a=2", stdin="xyz\n")
    form = r"%t %p %o %T|%k %K %s %S|%h|%%\x41\t\q\n"
    first, last = consumed(run, orders, "--partition", 1, "--offset", 2, "--exit", "--format", form)
    assert first == f"{orders} 1 2 1700000007000| -1 7 1||%A\t\\q"
    assert last.split("|")[1:] == ["k 1 xyz 3", "a=1,a=2", "%A\t\\q"]


def test_a_group_continues_after_the_printed_records(run: Run, orders: str) -> None:
    of_group = ("--group", f"group-{orders}", "--from-beginning", "--max-messages")
    first = consumed(run, orders, *of_group, 3)
    rest = consumed(run, orders, *of_group, 5)
    assert sorted(first + rest) == [*"01234567"]


def test_the_json_output_of_consume_can_be_produced_again(run: Run, orders: str) -> None:
    copy = f"{orders}-copy"
    run("topics", "create", copy, "--partitions", 2)
    given = '{"value": null, "key": {"base64": "/w=="}, "headers": {"h": null}, "timestamp": 5, "partition": 1}\n'
    assert run("produce", orders, "--format", "json", "--keep-partitions", stdin=given) == (0, "", "")
    printed = "\n".join(consumed(run, orders, "--from-beginning", "--exit", "--format", "json"))
    assert run("produce", copy, "--format", "json", "--keep-partitions", stdin=printed) == (0, "", "")
    again = "\n".join(consumed(run, copy, "--from-beginning", "--exit", "--format", "json"))
    assert sorted(again.replace(copy, orders).splitlines()) == sorted(printed.splitlines())
    assert '"timestamp": 5, "key": {"base64": "/w=="}, "value": null, "headers": [["h", null]]' in again


def test_the_csv_output_of_consume_can_be_produced_again(run: Run, orders: str) -> None:
    copy = f"{orders}-copy"
    run("topics", "create", copy, "--partitions", 2)
    rows = f'key,value,headers,timestamp\nNULL,"one ""two"",\r\nthree\r",,\nk,,"[[""h"", null]]",5\n"{"k" * 200_000}",NULL,,\n'
    assert run("produce", orders, "--format", "csv", "--null-marker", "NULL", stdin=rows) == (0, "", "")
    status, printed, err = run("consume", orders, "--from-beginning", "--exit", "--format", "csv")
    assert (status, err) == (0, "")
    assert printed.startswith("topic,partition,offset,timestamp,key,value,headers\n")
    again = ("--format", "csv", "--null-marker", "null", "--keep-partitions")
    assert run("produce", copy, *again, stdin=printed) == (0, "", "")
    first, second = (sorted(consumed(run, each, "--from-beginning", "--exit", "--json")) for each in (orders, copy))
    assert len(first) == 11
    assert [line.replace(copy, orders) for line in second] == first
    assert any('"key": null, "value": "one \\"two\\",\\r\\nthree\\r", "headers": []' in line for line in first)


def test_records_become_a_table_of_arrow_or_parquet(address: str, orders: str, tmp_path: Path) -> None:
    tables = []
    for form, read in (("arrow", lambda place: pa.ipc.open_stream(place).read_all()), ("parquet", pq.read_table)):
        for most in ((), ("--max-messages", "3")):
            file = tmp_path / f"{len(most)}.{form}"
            with file.open("wb") as output:
                words = ["consume", orders, "--from-beginning", "--exit", "--format", form, *most]
                command = [*OTTLA, *words, "--bootstrap-server", address]
                subprocess.run(command, stdout=output, check=True, timeout=PATIENCE)
            with file.open("rb") as place:
                tables.append(read(place))
    assert [sorted(map(str, table["value"].to_pylist())) for table in tables[::2]] == [
        [f"b'{i}'" for i in range(8)]
    ] * 2
    assert [table.num_rows for table in tables[1::2]] == [3, 3]
    assert tables[0].schema.names == [
        *["key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers"]
    ]


def test_text_output_is_the_same_from_columns_and_from_records(run: Run, orders: str) -> None:
    given = ("--key-separator", ":", "--null-marker", "NULL", "--partition", 0)
    lines = [f"k{i}:{'v' * (i % 7) * 100}" for i in range(2000)] + ["NULL:a", "b:NULL"]
    assert run("produce", orders, *given, stdin="\n".join(lines)) == (0, "", "")
    at = (orders, "--partition", 0, "--from-beginning", "--exit")
    everything = [f"null\t{value}" for value in "01234"]
    everything += [line.replace(":", "\t").replace("NULL", "null") for line in lines]
    assert consumed(run, *at, "--keys") == everything
    assert consumed(run, *at) == [line.partition("\t")[2] for line in everything]
    assert consumed(run, *at, "--max-messages", 7) == [line.partition("\t")[2] for line in everything[:7]]


def test_tombstones_are_written_by_a_marker(run: Run, orders: str) -> None:
    marked = ("--key-separator", ":", "--null-marker", "NULL", "--partition", 0)
    assert run("produce", orders, *marked, stdin="a:NULL\nNULL:b\n") == (0, "", "")
    read = consumed(run, orders, "--partition", 0, "--tail", 2, "--exit", "--format", "json")
    assert [(each["key"], each["value"]) for each in map(json.loads, read)] == [("a", None), (None, "b")]


def test_tail_prints_the_latest_of_each_partition_and_ends(run: Run, orders: str) -> None:
    whole = [run("records", "head", orders, "--partition", number, "-n", 100)[1].splitlines() for number in (0, 1)]
    assert run("records", "tail", orders, "--partition", 0, "-n", 2) == (0, "\n".join(whole[0][-2:]) + "\n", "")
    assert sorted(run("records", "tail", orders, "-n", 1)[1].splitlines()) == sorted(part[-1] for part in whole)
    assert len(run("records", "tail", orders, "-n", 100)[1].splitlines()) == 8


def test_a_start_is_given_in_the_syntax_of_kcat(run: Run, orders: str) -> None:
    whole = run("consume", orders, "--from-beginning", "--exit", "--partition", 0)[1]
    assert run("consume", "-t", orders, "-p", 0, "-o", "beginning", "-e") == (0, whole, "")
    assert run("consume", "-t", orders, "-p", 0, "-o", "-2", "-e", "-f", "%s\\n") == (
        0,
        "".join(whole.splitlines(keepends=True)[-2:]),
        "",
    )
    assert run("consume", "-t", orders, "-p", 0, "-o", "end", "-e") == (0, "", "")


def test_tail_continues_with_new_records(address: str, run: Run, orders: str) -> None:
    process = start("records", "tail", orders, "-f", "-n", 1, "--partition", 0, "--bootstrap-server", address)
    try:
        assert process.stdout is not None
        process.stdout.readline()  # the command has started
        with Producer(bootstrap_servers=address) as producer:
            producer.send(orders, b"new", partition=0).result(PATIENCE)
        assert process.stdout.readline() == "new\n"
    finally:
        process.kill()
        process.communicate()


def test_head_and_count_end_by_themselves(run: Run, orders: str) -> None:
    assert run("records", "head", orders, "--partition", 0, "-n", 2) == (0, "0\n1\n", "")
    assert len(run("records", "head", orders, "-n", 100)[1].splitlines()) == 8
    counts = json.loads(run("records", "count", orders, "--json")[1])
    assert counts == [
        {"topic": orders, "partition": 0, "records": 5},
        {"topic": orders, "partition": 1, "records": 3},
    ]


def test_markers_of_transactions_are_no_records(run: Run, orders: str, address: str) -> None:
    with Producer(bootstrap_servers=address, transactional_id=orders) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(orders, b"8", partition=0)
        producer.commit_transaction()
    assert json.loads(run("records", "count", orders, "--partition", 0, "--json")[1])[0]["records"] == 6
    assert consumed(run, orders, "--from-beginning", "--partition", 0, "--exit") == [*"012348"]


def test_records_are_deleted_after_asking(run: Run, orders: str, address: str) -> None:
    status, out, err = run("records", "delete", orders, "--before-offset", 4)
    assert (status, out) == (1, "")
    assert [line.split() for line in err.splitlines()[:3]] == [
        ["PARTITION", "FIRST-OFFSET", "END-OFFSET", "DELETE-BEFORE", "OFFSETS"],
        [f"{orders}-0", "0", "5", "4", "4"],
        [f"{orders}-1", "0", "3", "3", "3"],
    ]
    assert err.endswith("ottla: nothing was done: there is no terminal for the confirmation; add --yes\n")
    assert len(consumed(run, orders, "--from-beginning", "--exit")) == 8
    status, out, _ = run("records", "delete", f"{orders}:0", "--before-time", 1_700_000_003_000, "--yes", "--json")
    assert (status, json.loads(out)) == (0, [{"topic": orders, "partition": 0, "low_watermark": 3}])
    with Admin(bootstrap_servers=address) as admin:
        assert admin.list_offsets({TopicPartition(orders, 0): -2})[TopicPartition(orders, 0)].offset == 3
    assert run("records", "delete", orders, "--all", "--yes")[0] == 0
    nothing = (0, "", "nothing to delete: there are no earlier records\n")
    assert run("records", "delete", orders, "--all") == nothing
    assert run("records", "count", orders, "--json")[1].count('"records": 0') == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("consume a --tail 1 --from-beginning", "exclude each other"),
        ("consume a b --offset 1 --partition 0", "--offset needs exactly one topic"),
        ("consume a a", "a topic is given twice"),
        ("consume a --exit", "--exit needs a start"),
        ("consume a --group g --tail 1", "it can only be combined with --from-beginning"),
        ("consume a --from-time soon", "invalid value 'soon' for --from-time: expected a time such as"),
        ("consume a --format cvs", "invalid value 'cvs' for --format: expected text, json, csv, arrow or parquet"),
        ("consume a --format csv --keys", "--format csv has the keys"),
        ("consume a --format csv --json", "exclude each other"),
        ("consume a --format arrow --keys", "--format arrow has all columns"),
        ("consume a --format parquet --group g", "--where and --group are for lines"),
        ("produce a --format csv --key-separator :", "in CSV the key is a column"),
        ("consume a --format %x", "--format has no field '%x', only %s"),
        ("consume a --format %s --keys", "write %k in it"),
        ("produce a --header b", "invalid value 'b' for --header: expected NAME=VALUE"),
        ("produce a --format json --key-separator :", "are for text"),
        ("produce a --keep-partitions", "needs --format json"),
        ("records delete a", "expected exactly one of --before-offset, --before-time, --all"),
    ],
)
def test_invalid_arguments_are_one_clear_error(run: Run, words: str, sentence: str) -> None:
    status, out, err = run(*words.split())
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "is not a record in JSON"),
        ("x", "is not a record in JSON"),
        ('{"value": ', "Expecting value, at character 12"),
        ("[" * 100_000, "is not a record in JSON"),
        ("1", 'must be an object with "value"'),
        ('{"key": "a"}', "null for a tombstone"),
        ('{"value": 1}', 'value must be text, null or {"base64"'),
        ('{"value": {"base64": "?"}}', "is not a record in JSON"),
        ('{"value": "\\ud800"}', "is not a record in JSON"),
        ('{"value": "a", "vlaue": 1}', "unknown field 'vlaue'"),
        ('{"value": "a", "headers": [1]}', "is not a record in JSON"),
        ('{"value": "a", "headers": [[1, "b"]]}', "name of a header must be text"),
        ('{"value": "a", "timestamp": "now"}', "timestamp must be a whole number"),
        ('{"value": "a", "timestamp": 1e400}', "timestamp must be a whole number"),
        ('{"value": "a", "partition": true}', "partition must be a whole number"),
    ],
)
def test_a_line_that_is_no_record_is_named(run: Run, orders: str, line: str, why: str) -> None:
    status, out, err = run("produce", orders, "--format", "json", stdin=f'{{"value": "first"}}\n{line}\n')
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("ottla: line 2 of standard input")
    assert why in err


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("key\na\n", "line 1 of standard input is not a CSV row"),
        ("key,valeu\na,b\n", "unknown column 'valeu' in the first row"),
        (
            "key,value\na,b\nc\n",
            "line 3 of standard input is not a CSV row, such as a,b below key,value: it has 1 cells",
        ),
        ('value\n"a\n', "line 2 of standard input is not a CSV row"),
        ("value,timestamp\na,soon\n", "line 2 of standard input"),
    ],
)
def test_a_row_that_is_no_record_is_named(run: Run, orders: str, rows: str, why: str) -> None:
    status, out, err = run("produce", orders, "--format", "csv", stdin=rows)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert why in err


def test_an_invalid_time_or_partition_is_one_clear_error(run: Run, orders: str) -> None:
    for words, stdin in (
        (("--format", "json"), f'{{"value": "a", "timestamp": {2**70}}}\n'),
        (("--format", "json", "--keep-partitions"), f'{{"value": "a", "partition": {2**70}}}\n'),
        (("--partition", 9, "--set", "max.block.ms=100"), "a\n"),
    ):
        status, out, err = run("produce", orders, *words, stdin=stdin)
        assert (status, out, err.count("\n")) == (1, "", 1), err


def test_moments_are_read_in_three_ways() -> None:
    now = 10_000_000
    assert [moment_of("--t", text, now) for text in ("-1m", "-1.5s", "-9d", "77", "1970-01-01T00:00:01")] == [
        9_940_000,
        9_998_500,
        0,
        77,
        1_000,
    ]


def test_a_tail_ends_after_the_requested_number_of_records(address: str, orders: str) -> None:
    came = ottla("consume", orders, "--bootstrap-server", address, "--tail", 1, "--max-messages", 2)
    assert sorted(came.out.split()) == ["4", "7"]

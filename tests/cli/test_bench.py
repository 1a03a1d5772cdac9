"""`ottla bench` as a user runs it, and the summaries of its measurements."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla import Admin, Broker, NewTopic, Producer, TopicPartition
from ottla.cli.benching.latencies import bound, class_of, histogram, percentile, summary
from ottla.cli.benching.runs import values_of
from ottla.free_ports import free_port
from ottla.model import LATEST
from tests.cli.conftest import ottla, start
from tests.patience import eventually

FEW = ("--num-records", "2000")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def measured(address: str, *words: str) -> list[dict[str, Any]]:
    result = ottla("bench", *words, "--bootstrap-server", address, "--json")
    assert (result.status, result.err) == (0, "")
    rows: list[dict[str, Any]] = json.loads(result.out)
    return rows


def topics(address: str) -> set[str]:
    with Admin(bootstrap_servers=address) as admin:
        return set(admin.list_topics())


def is_written_to(address: str) -> bool:
    """True if a topic has records."""
    with Admin(bootstrap_servers=address) as admin:
        partitions = [TopicPartition(name, 0) for name in admin.list_topics()]
        return any(end.offset for end in admin.list_offsets(dict.fromkeys(partitions, LATEST)).values())


def test_a_produce_benchmark_prints_a_row_and_a_chart(address: str) -> None:
    result = ottla("bench", "produce", *FEW, "--bootstrap-server", address)
    head, row, _, *picture = result.out.splitlines()
    assert head.split() == [
        "RECORDS",
        "SECONDS",
        "RECORDS/S",
        "MB/S",
        "MEAN-MS",
        "P50-MS",
        "P95-MS",
        "P99-MS",
        "MAX-MS",
    ]
    assert row.split()[0] == "2000"
    assert sum(int(line.split()[-1]) for line in picture) == 2000
    assert not topics(address)


def test_a_configured_rate_is_kept(address: str) -> None:
    (row,) = measured(address, "produce", "--num-records", "300", "--throughput", "600")
    assert row["seconds"] > 0.45


@pytest.mark.parametrize("way", [(), ("--arrow",)])
def test_as_many_are_read_as_were_sent(address: str, way: tuple[str, ...]) -> None:
    (row,) = measured(address, "consume", *FEW, "--partitions", "3", "--record-size", "500", *way)
    assert row["records"] == 2000
    assert row["mb_s"] == pytest.approx(row["records_s"] * 500 / 1e6, rel=0.1, abs=0.1)
    assert not topics(address)


def test_a_topic_that_is_named_stays_and_is_read_to_its_end(address: str) -> None:
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic("kept", 2)])
        measured(address, "produce", "--num-records", "50", "--topic", "kept")
        assert measured(address, "consume", "--topic", "kept")[0]["records"] == 50
        assert "kept" in topics(address)
        admin.delete_topics(["kept"])


def test_latency_of_single_records_is_reported_at_both_stages(address: str) -> None:
    taken, seen = measured(address, "latency", "--num-records", "20")
    assert (taken["until"], seen["until"]) == ("acknowledged", "consumed")
    assert 0 < taken["p50_ms"] <= seen["p50_ms"] <= seen["max_ms"]


def test_transactions_are_counted_with_their_records(address: str) -> None:
    (row,) = measured(address, "transactions", "--num-transactions", "10", "--records", "5")
    assert (row["transactions"], row["records"]) == (10, 50)
    assert row["p50_ms"] <= row["p99_ms"]


def test_an_interrupted_run_deletes_its_topic(address: str) -> None:
    running = start("bench", "produce", "--num-records", "100000000", "--bootstrap-server", address)
    eventually(
        lambda: is_written_to(address)
    )  # before this, Ctrl-C may interrupt an import, and Python warns about the open file
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert (running.returncode, "Traceback" in err) == (130, False)
    assert not topics(address)


def test_mistakes_are_clear_error_messages(address: str) -> None:
    missing = ottla("bench", "produce", "--topic", "orderz", *FEW, "--bootstrap-server", address)
    assert missing.status == 1
    assert "orderz" in missing.sentence
    assert ottla("bench", "produce", "--num-records", "0").status == 2
    nobody = ottla("bench", "latency", "--bootstrap-server", f"127.0.0.1:{free_port()}")
    assert nobody.status == 1
    assert "connection refused" in nobody.sentence
    too_large = ottla("bench", "produce", "--record-size", "2000000", *FEW, "--bootstrap-server", address)
    assert too_large.status == 1
    assert "max.request.size" in too_large.sentence
    assert not topics(address)


def test_large_values_are_abbreviated() -> None:
    assert [len(values_of(size)) for size in (0, 100, 2**20, 2**24, 2**27)] == [64, 64, 64, 4, 1]
    assert [len(each) for each in values_of(2**24)] == [2**24] * 4


@given(st.lists(st.floats(0, 100), min_size=1))
def test_percentiles_are_values_in_order(seconds: list[float]) -> None:
    ordered = sorted(seconds)
    found = [percentile(ordered, share) for share in (0.01, 0.5, 0.95, 0.99, 1.0)]
    assert found == sorted(found)
    assert set(found) <= set(seconds)
    assert found[-1] == max(seconds)
    assert sum(each <= found[1] for each in seconds) * 2 >= len(seconds)


def test_an_empty_measurement_has_no_summary_and_no_chart() -> None:
    assert set(summary([])) == {None}
    assert histogram([]) == []


@given(st.floats(0.001, 1e6))
def test_a_time_is_counted_in_its_class(ms: float) -> None:
    number = class_of(ms)
    assert bound(number) <= ms * (1 + 1e-9)
    assert ms <= bound(number + 1) * (1 + 1e-9)


def test_an_empty_class_has_its_line() -> None:
    assert histogram([0.0015, 0.0015, 0.012], width=4) == [
        "  1-2 ms  ████  2",
        "  2-5 ms        0",
        " 5-10 ms        0",
        "10-20 ms  ██    1",
    ]


def test_records_of_other_producers_are_read_too(address: str) -> None:
    with Admin(bootstrap_servers=address) as admin, Producer(bootstrap_servers=address) as producer:
        admin.create_topics([NewTopic("others", 1)])
        for value in (b"a", None, b"bc"):
            producer.send("others", value)
        producer.flush()
        assert measured(address, "consume", "--topic", "others")[0]["records"] == 3
        assert measured(address, "consume", "--topic", "others", "--arrow")[0]["records"] == 3
        admin.delete_topics(["others"])

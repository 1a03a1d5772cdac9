"""`ottla transactions`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import confluent_kafka as ck
import pytest

from ottla import Admin, Broker, NewTopic
from ottla.cli.main import main
from ottla.cli.transactions import STATES
from tests.broker.wire import Wire, produce
from tests.storage.producing import produced

PATIENCE = 60.0
LONG_AGO = 1_000_000_000_000
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker that accepts transactional batches without verification by the coordinator."""
    with Broker(transaction_partition_verification_enable=False) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def open_transaction(servers: str) -> Iterator[str]:
    """A transactional id with an open transaction in partition 0 of `t`."""
    producer = ck.Producer({"bootstrap.servers": servers, "transactional.id": "tx"})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.flush(PATIENCE)
    yield "tx"
    producer.abort_transaction(PATIENCE)


@pytest.fixture
def hanging(servers: str) -> str:
    """A topic with an old transaction that is unknown to its coordinator."""
    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic("hung", 1)])
    with Wire(servers) as wire:
        request = produce("hung", produced(777, 0, epoch=3, transactional=True, timestamp=LONG_AGO))
        request.transactional_id = "lost"
        wire.ask(request, 11)
    return "hung"


def rows(captured: Captured, servers: str, *words: object) -> list[list[str]]:
    """Return the rows that `ottla transactions …` prints."""
    captured.readouterr()
    assert main(["transactions", *map(str, words), "--bootstrap-server", servers]) == 0
    return [line.split() for line in captured.readouterr().out.splitlines()]


def test_transactions_are_listed_and_described(servers: str, open_transaction: str, capsys: Captured) -> None:
    head, row = rows(capsys, servers, "list")
    assert head == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    assert row == ["tx", "1", row[2], "Ongoing"]
    assert rows(capsys, servers, "list", "--state", "Empty") == [head]
    assert rows(capsys, servers, "list", "--transactional-id-pattern", "t.") == [head, row]
    _, reported = rows(capsys, servers, "describe", "tx")
    assert reported[:6] == ["1", "tx", row[2], "0", "Ongoing", "60000"]
    assert int(reported[7]) >= 0
    assert reported[8] == "t-0"


def test_producers_of_a_partition_are_described(servers: str, open_transaction: str, capsys: Captured) -> None:
    assert (
        main(["transactions", "describe-producers", "t", "--partition", "0", "--json", "--bootstrap-server", servers])
        == 0
    )
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["producer_epoch"], found["last_sequence"], found["current_transaction_start_offset"]) == (0, 0, 0)


def test_a_hanging_transaction_is_found_and_aborted(
    servers: str, open_transaction: str, hanging: str, capsys: Captured
) -> None:
    find = ("find-hanging", "--max-transaction-timeout", 0)
    head, row = rows(capsys, servers, *find)
    assert head[:4] == ["Topic", "Partition", "ProducerId", "ProducerEpoch"]
    assert row[:7] == ["hung", "0", "777", "3", "-1", "0", str(LONG_AGO)]
    assert rows(capsys, servers, *find, "--topic", "t") == [head], "the coordinator will see to it"
    assert rows(capsys, servers, "abort", "hung", "--partition", 0, "--start-offset", 0) == []
    assert rows(capsys, servers, *find) == [head]


def test_missing_resources_are_named(servers: str, open_transaction: str, capsys: Captured) -> None:
    for words, reported in (
        (["describe", "no-such"], "there is no transactional id 'no-such'"),
        (["describe-producers", "t", "--partition", "9"], "there is no partition t-9"),
        (
            ["abort", "t", "--partition", "0", "--start-offset", "5"],
            "no open transaction in t-0 starts at offset 5",
        ),
    ):
        assert main(["transactions", *words, "--bootstrap-server", servers]) == 1
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert reported in err


def test_an_unknown_state_is_an_error_that_lists_the_valid_ones(
    servers: str, open_transaction: str, capsys: Captured
) -> None:
    assert main(["transactions", "list", "--state", "Asleep", "--bootstrap-server", servers]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "unknown state 'Asleep'" in err
    assert "there are Empty, Ongoing, PrepareCommit" in err
    for state in STATES:
        assert main(["transactions", "list", "--state", state.lower(), "--bootstrap-server", servers]) == 0
        assert ("Ongoing" in capsys.readouterr().out) is (state == "Ongoing")

"""`ottla log`."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla import Consumer
from ottla.cli.storage.record_entries import METADATA, OFFSETS, TRANSACTIONS, renderer, to_plain
from ottla.coordination.transactions.records import TransactionRecord, encode_record
from ottla.coordination.transactions.state import TransactionState
from ottla.coordination.transactions.transaction import Transaction
from ottla.model import TopicPartition
from tests.cli.conftest import RunningBroker, ottla, start
from tests.patience import eventually
from tests.storage.compacting import keyed

pytestmark = pytest.mark.xdist_group("log")  # what they share is made once

LINES = "k\thello\nk\tworld\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a stopped broker, with a batch of two records."""
    path = tmp_path_factory.mktemp("log") / "data"
    broker = RunningBroker(path)
    ottla("topics", "create", "t", "--bootstrap-server", broker.address)
    together = "--set", "linger.ms=60000"
    ottla("produce", "t", *together, "--key-separator", "\t", "--bootstrap-server", broker.address, stdin=LINES)
    broker.end(signal.SIGTERM)
    return path


def test_a_whole_directory_is_verified_in_one_line_and_status_0(data: Path) -> None:
    done = ottla("log", "verify", data)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{data}: whole; 2 partitions, 2 segments, ")
    assert done.out.count("\n") == 1


def test_a_directory_with_the_id_of_another_is_a_fault(data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(data / "meta.properties", copy)
    verified = ottla("log", "verify", data, copy)
    assert verified.status == 1
    assert f"{copy}/meta.properties: has the directory.id of {data}, as a copy of it has" in verified.out
    assert ottla("log", "verify", copy).status == 0


def test_records_are_dumped_with_kafkas_names(data: Path) -> None:
    lines = ottla("log", "dump", data / "t-0", "--print-data-log").out.splitlines()
    log = data / "t-0" / "00000000000000000000.log"
    at = lines.index(f"Dumping {log}")
    assert lines[at + 1].startswith("baseOffset: 0 lastOffset: 1 count: 2 baseSequence: ")
    assert lines[at + 1].endswith("isvalid: true")
    assert lines[at + 3].startswith("| offset: 1 CreateTime: ")
    assert lines[at + 3].endswith("key: k payload: world")


def test_transactions_are_dumped_as_what_they_are(tmp_path: Path) -> None:
    transaction = Transaction(
        transactional_id="billing",
        producer_id=7,
        producer_epoch=3,
        timeout_ms=60_000,
        state=TransactionState.PREPARE_ABORT,
        partitions=frozenset([TopicPartition("flights", 1), TopicPartition("flights", 0)]),
        updated_ms=5,
    )
    records = [TransactionRecord("billing", transaction), TransactionRecord("gone", None)]
    file = tmp_path / "__transaction_state-0" / "00000000000000000000.log"
    file.parent.mkdir()
    file.write_bytes(keyed([encode_record(record) for record in records]))
    for options in ((), ("--transaction-log-decoder",)):
        out = ottla("log", "dump", file, "--json", "--print-data-log", *options).out
        _, first, second = (json.loads(line) for line in out.splitlines())
        assert first["key"] == {"transactional_id": "billing"}
        assert {"producer_id": 7, "producer_epoch": 3, "state": "PREPARE_ABORT"}.items() <= first["payload"].items()
        assert first["payload"]["partitions"] == ["flights-0", "flights-1"]
        assert (second["key"], second["payload"]) == ({"transactional_id": "gone"}, None)


def test_groups_and_their_members_are_dumped_as_what_they_are(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path)
    ottla("topics", "create", "t", "--bootstrap-server", broker.address)
    for protocol in ("classic", "consumer"):
        with Consumer(bootstrap_servers=broker.address, group_id=protocol, group_protocol=protocol) as member:
            member.subscribe(["t"])
            eventually(lambda: member.poll(0.1) is not None and member.assignment())
    broker.end(signal.SIGTERM)
    lines = ottla("log", "dump", tmp_path, "--json", "--print-data-log").out.splitlines()
    of_groups = [entry for entry in map(json.loads, lines) if "__consumer_offsets" in entry["file"] and "key" in entry]
    (joined,) = (
        member
        for entry in of_groups
        if entry["type"] == "GroupMetadata" and entry["payload"]
        for member in entry["payload"]["members"]
    )
    assert (joined["subscription"], joined["assignment"]) == (["t"], ["t-0"])
    assert {entry["type"] for entry in of_groups if entry["key"].get("group_id") == "consumer"} == {
        "ConsumerGroupMetadata",
        "ConsumerGroupMemberMetadata",
        "ConsumerGroupTargetAssignmentMetadata",
        "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupCurrentMemberAssignment",
    }


@pytest.mark.parametrize("topic", [METADATA, OFFSETS, TRANSACTIONS, "t"])
@given(kind=st.integers(0, 17), key=st.none() | st.binary(), value=st.none() | st.binary())
def test_a_record_with_any_content_is_shown(topic: str, kind: int, key: bytes | None, value: bytes | None) -> None:
    for each in (key, bytes([0, kind]) + (key or b"")):
        assert json.loads(json.dumps(renderer(topic)(each, value), default=to_plain))


def test_a_dump_as_json_has_one_object_a_line(data: Path) -> None:
    done = ottla("log", "dump", data, "--json", "--print-data-log")
    entries = [json.loads(line) for line in done.out.splitlines()]
    assert {"key": "k", "payload": "hello"}.items() <= next(
        e for e in entries if e.get("record") and "key" in e
    ).items()
    assert any(entry.get("type") == "TopicRecord" and entry["payload"]["name"] == "t" for entry in entries)
    assert any(entry.get("cluster.id") for entry in entries)


def test_damage_is_reported_with_file_position_offset_and_bytes_and_status_1(data: Path, tmp_path: Path) -> None:
    source = data / "t-0" / "00000000000000000000.log"
    copy = tmp_path / "t-0" / source.name
    copy.parent.mkdir()
    copy.write_bytes(source.read_bytes()[:-1] + b"?")
    done = ottla("log", "verify", copy.parent)
    assert (done.status, done.err) == (1, "")
    first, *_, last = done.out.splitlines()
    assert first.startswith(f"damaged: {copy}: position 0, offset 0, {copy.stat().st_size} bytes: the batch has CRC")
    assert f"{copy.parent}: 1 fault; 1 partition, 1 segment, 0 batches, 0 records, 0 bytes" in last
    (fault, *_) = (json.loads(line) for line in ottla("log", "verify", copy.parent, "--json").out.splitlines())
    assert (fault["kind"], fault["file"], fault["position"], fault["offset"]) == ("fault", str(copy), 0, 0)
    assert ottla("log", "dump", copy).status == 1


def test_indexes_are_reported_as_valid_or_invalid(data: Path, tmp_path: Path) -> None:
    done = ottla("log", "dump", data / "t-0", "--index-sanity-check")
    assert done.status == 0
    assert done.out.count("passed sanity check") == 2
    folder = tmp_path / "t-0"
    folder.mkdir()
    for path in (data / "t-0").glob("0*"):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "00000000000000000000.index").write_bytes(b"\0\0\0\1\0\0\0\1")
    done = ottla("log", "dump", folder, "--index-sanity-check")
    assert done.status == 1
    assert "where no whole batch begins" in done.out


def test_a_log_is_verified_while_a_broker_writes_to_it(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path)
    ottla("topics", "create", "t", "--bootstrap-server", broker.address)
    producer = start("produce", "t", "--bootstrap-server", broker.address)
    assert producer.stdin is not None
    for _ in range(3):
        producer.stdin.write("some words for a line\n" * 20_000)
        producer.stdin.flush()
        done = ottla("log", "verify", tmp_path)
        assert (done.status, done.err) == (0, "")
        assert "(in use by a broker): whole" in done.out
    producer.communicate(timeout=30)
    broker.kill()


def test_mistakes_are_one_clear_error(data: Path, tmp_path: Path) -> None:
    assert ottla("log", "verify", tmp_path / "no").sentence == f"{tmp_path / 'no'}: No such file or directory"
    missing = ottla("log", "dump", tmp_path / "no.log")
    assert (missing.out, missing.sentence) == ("", f"{tmp_path / 'no.log'}: No such file or directory")
    (tmp_path / "notes.txt").write_text("a")
    other = ottla("log", "dump", tmp_path / "notes.txt")
    assert other.out == ""
    assert "is not a file of a log" in other.sentence
    nothing = ottla("log", "verify", tmp_path)
    assert "holds no logs" in nothing.sentence
    assert nothing.status == 2
    file = ottla("log", "verify", data / "meta.properties")
    assert file.status == 2
    assert "is a file: expected its folder" in file.sentence
    both = ottla("log", "dump", data, "--offsets-decoder", "--cluster-metadata-decoder")
    assert both.status == 2

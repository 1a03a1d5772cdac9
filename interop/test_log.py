"""`ottla log` on files of Apache Kafka prints the same facts as Kafka's own tool."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer as ConfluentProducer
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaTopicPartition
from kafka.structs import OffsetAndMetadata

from interop.kafka_tools import dump
from ottla import Admin, NewTopic
from rivals import apache_kafka as rival


def ottla_log(*arguments: object) -> tuple[int, str]:
    """Run `ottla log …` and return the exit status and the standard output."""
    command = [sys.executable, "-m", "ottla.cli.main", "log", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory that Apache Kafka left after a shutdown. It was also read while the broker was running."""
    rival.fetch()
    copy = tmp_path_factory.mktemp("kafka") / "logs"
    with rival.apache_kafka() as kafka:
        at = kafka.bootstrap_servers
        with Admin(bootstrap_servers=at) as admin:
            admin.create_topics([NewTopic("plain", 1, configs={"segment.bytes": "1048576"})])
        fill(at)
        commit(at)
        status, text = ottla_log("verify", kafka.directory)
        assert status == 0, text
        assert "(in use by a broker): whole" in text
        os.kill(kafka.process, signal.SIGTERM)
        wait_until(lambda: has_ended(kafka.process))
        shutil.copytree(kafka.directory, copy, ignore=shutil.ignore_patterns(".lock"))
    return copy


def has_ended(child: int) -> bool:
    """True if the process has ended.

    Only then are all files complete: the metadata log is closed last and truncated.
    """
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def fill(at: str) -> None:
    """Write several segments of plain and transactional records. One transaction is aborted."""
    plain = ConfluentProducer(
        {"bootstrap.servers": at, "compression.type": "lz4", "batch.size": 16384, "enable.idempotence": True}
    )
    for number in range(30_000):
        plain.produce("plain", key=b"%d" % number, value=os.urandom(120))
        plain.poll(0)
    plain.flush()
    transactional = ConfluentProducer({"bootstrap.servers": at, "transactional.id": "t"})
    transactional.init_transactions()
    for commit in (True, False):
        transactional.begin_transaction()
        transactional.produce("plain", value=b"in a transaction")
        transactional.flush()
        (transactional.commit_transaction if commit else transactional.abort_transaction)()


def commit(at: str) -> None:
    consumer = KafkaConsumer(bootstrap_servers=at, group_id="readers", enable_auto_commit=False)
    consumer.assign([KafkaTopicPartition("plain", 0)])
    consumer.commit({KafkaTopicPartition("plain", 0): OffsetAndMetadata(42, "so far", -1)})
    consumer.close()


def test_a_directory_of_apache_kafka_has_no_errors(written: Path) -> None:
    status, text = ottla_log("verify", written, "--deep-iteration")
    assert status == 0, text
    assert f"{written}: whole; " in text
    assert len(list((written / "plain-0").glob("*.log"))) > 2


def test_every_batch_is_printed_as_by_kafkas_tool(written: Path) -> None:
    file = min((written / "plain-0").glob("*.log"))
    fields = re.compile(
        r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*position: (\d+) .*size: (\d+) .*crc: (\d+)"
    )
    theirs = fields.findall(dump(file))
    assert theirs
    assert fields.findall(ottla_log("dump", file)[1]) == theirs


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_index_entries_are_the_same_as_in_kafkas_tool(written: Path, suffix: str) -> None:
    file = min((written / "plain-0").glob(f"*{suffix}"))
    entry = re.compile(r"^(?:offset|timestamp): (\d+) (?:position|offset): (\d+)", re.MULTILINE)
    theirs = entry.findall(dump(file))
    assert theirs
    assert entry.findall(ottla_log("dump", file)[1]) == theirs


def test_snapshots_and_aborted_transactions_are_read(written: Path) -> None:
    producers = [
        json.loads(line)
        for line in ottla_log("dump", *(written / "plain-0").glob("*.snapshot"), "--json")[1].splitlines()
    ]
    assert {entry["producerEpoch"] for entry in producers} >= {0}
    aborted = [
        json.loads(line)
        for line in ottla_log("dump", *(written / "plain-0").glob("*.txnindex"), "--json")[1].splitlines()
    ]
    assert len(aborted) == 1
    assert aborted[0]["firstOffset"] <= aborted[0]["lastOffset"]
    text = ottla_log("dump", max((written / "plain-0").glob("*.log")), "--print-data-log")[1]
    assert "endTxnMarker: COMMIT" in text
    assert "endTxnMarker: ABORT" in text


def test_metadata_and_committed_offsets_are_decoded(written: Path) -> None:
    text = ottla_log("dump", written / "__cluster_metadata-0", "--print-data-log")[1]
    assert 'type: TopicRecord payload: {"name": "plain"' in text
    offsets = [
        ottla_log("dump", path, "--print-data-log")[1]
        for path in written.glob("__consumer_offsets-*/*.log")
        if path.stat().st_size
    ]
    assert any('"topic": "plain"' in text and '"offset": 42' in text for text in offsets)


def test_a_corrupt_file_of_kafka_is_reported(written: Path, tmp_path: Path) -> None:
    shutil.copytree(written / "plain-0", tmp_path / "plain-0")
    file = min((tmp_path / "plain-0").glob("*.log"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    status, text = ottla_log("verify", tmp_path / "plain-0")
    assert status == 1
    assert f"damaged: {file}: position " in text

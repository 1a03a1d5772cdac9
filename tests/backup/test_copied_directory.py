"""Copies of a node's data directory: of a stopped broker, and of one that is frozen in the middle of its work."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla import Consumer, Producer
from ottla.model import TopicPartition
from tests.cli.conftest import start
from tests.mirror.conftest import Side
from tests.patience import eventually

STOP_SECONDS = 60.0
SENT = 500


@contextmanager
def broker_on(directory: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A broker process on a data directory, and its address."""
    process = start("broker", "--data-dir", directory, "--listen", "127.0.0.1:0")
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("ready "), line
        yield process, line.split()[1]
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.communicate(timeout=STOP_SECONDS)
        finally:
            process.kill()


def fill(address: str) -> None:
    """Commit a transaction, leave one open, and commit an offset."""
    with Producer(bootstrap_servers=address, transactional_id="t") as producer:
        producer.init_transactions()
        with producer.transaction(), Consumer(bootstrap_servers=address, group_id="billing") as consumer:
            producer.send("orders", b"committed")
            producer.send_offsets_to_transaction({TopicPartition("orders", 0): 1}, consumer.group_metadata())


def check_copy(directory: Path, count: int) -> None:
    """Start a broker on a copy: it has at least `count` numbers without a gap, and the committed offset, and accepts records."""
    with broker_on(directory) as (_, address):
        values = Side(address).values("orders")
        assert values[0] == "committed"
        assert values[1:] == [str(number) for number in range(len(values) - 1)]
        assert len(values) - 1 >= count
        assert Side(address).committed("billing") == {"orders-0": 1}
        with Producer(bootstrap_servers=address, transactional_id="t") as producer:
            producer.init_transactions()
            with producer.transaction():
                producer.send("orders", b"later")
        assert Side(address).values("orders")[-1] == "later"


def test_a_copy_contains_all_acknowledged_records_and_offsets(tmp_path: Path) -> None:
    original, hot, cold = tmp_path / "original", tmp_path / "hot", tmp_path / "cold"
    acknowledged: list[int] = []
    with broker_on(original) as (process, address):
        fill(address)
        with Producer(bootstrap_servers=address, linger_ms=0) as producer:
            for number in range(SENT):
                sent = producer.send("orders", b"%d" % number)
                sent.add_done_callback(lambda sent: acknowledged.append(sent.result().offset))
            eventually(lambda: len(acknowledged) >= SENT // 10)
            os.kill(process.pid, signal.SIGSTOP)
            count = len(acknowledged)
            shutil.copytree(original, hot)
            os.kill(process.pid, signal.SIGCONT)
    shutil.copytree(original, cold)
    check_copy(hot, count)
    check_copy(cold, SENT)

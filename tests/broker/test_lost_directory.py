"""A data directory removed under a running broker: no acknowledged record is lost, and the broker stops with the
reason.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from tests.broker.wire import Wire, values
from tests.cli.conftest import RunningBroker

PATIENCE = 60.0
BELIEVED_SECONDS = 0.5
"""More than what was seen of the files' place is believed for."""


@pytest.mark.parametrize("gone", ["directory", "metadata"])
def test_a_broker_whose_directory_is_removed_stops_with_an_error(tmp_path: Path, gone: str) -> None:
    data = tmp_path / "data"
    broker = RunningBroker(data)
    try:
        with Wire(broker.address) as wire:
            wire.create("t")
            assert wire.produce("t", b"a").error_code == 0
            shutil.rmtree(data if gone == "directory" else data / "__cluster_metadata-0")
            believed_until = time.monotonic() + BELIEVED_SECONDS
            try:
                while time.monotonic() < believed_until + PATIENCE:
                    began, answer = time.monotonic(), wire.produce("t", b"b")
                    refused = answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
                    assert refused or began < believed_until or gone == "metadata"
            except (OSError, EOFError):
                pass
        _, err = broker.process.communicate(timeout=PATIENCE)
    finally:
        broker.process.kill()
    assert broker.process.returncode == 1
    assert "was removed, moved or replaced while the broker ran" in err
    assert "Traceback" not in err
    assert not data.exists() or gone == "metadata"


def test_a_partition_whose_folder_is_replaced_rejects_records_and_others_accept_them(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        for topic in ("t", "u"):
            wire.create(topic)
            assert wire.produce(topic, b"a").error_code == 0
        shutil.rmtree(tmp_path / "t-0")
        (tmp_path / "t-0").write_text("a file")
        believed_until = time.monotonic() + BELIEVED_SECONDS
        while not wire.produce("t", b"b").error_code:
            assert time.monotonic() < believed_until
        for _ in range(3):
            refused = wire.produce("t", b"b")
            assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert "was removed, moved or replaced" in str(refused.error_message)
        assert wire.produce("u", b"b").error_code == 0
        assert values(wire.fetch("u")) == [b"a", b"b"]

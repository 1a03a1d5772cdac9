"""The stop of a broker: requests in flight are answered, new ones are not accepted, and a second Ctrl-C does not wait."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.serve import warn_of_certificates
from ottla.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import TIMEOUT, Wire, batch, fetch, produce, values


@pytest.fixture(params=[False, True], ids=["thread", "process"])
def ending(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """A broker that a test ends."""
    with Broker(tmp_path, process=request.param) as broker:
        yield broker


def test_waiting_fetches_are_answered_with_the_available_records(ending: Broker) -> None:
    with Wire(ending.bootstrap_servers) as wire, Wire(ending.bootstrap_servers) as other:
        wire.create("t")
        other.produce("t", b"a")
        wire.send(fetch("t", min_bytes=10_000_000, max_wait_ms=60_000), 12)
        behind = wire.send(MetadataRequest(None), 12)
        other.metadata()
        ending.close()
        _, response = wire.receive(fetch("t"), 12)
        assert values(response.responses[0].partitions[0]) == [b"a"]
        assert wire.receive(MetadataRequest(), 12)[0] == behind, "what waited behind it was under way too"
        assert wire.hung_up()
        assert other.hung_up()


def test_a_produce_that_waits_for_a_flush_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.storage.log import Log

    begun, may_end, flush = threading.Event(), threading.Event(), Log.flush

    def slow(log: Log, **how: Any) -> None:
        begun.set()
        assert may_end.wait(TIMEOUT)
        flush(log, **how)

    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", flush_messages=1)
        monkeypatch.setattr(Log, "flush", slow)
        wire.send(produce("t", batch([b"a"])), 9)
        assert begun.wait(TIMEOUT)
        closing = threading.Thread(target=broker.close)
        closing.start()
        may_end.set()
        _, response = wire.receive(produce("t", None), 9)
        assert response.responses[0].partition_responses[0].error_code == 0
        assert wire.hung_up()
        closing.join(TIMEOUT)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert values(wire.fetch("t")) == [b"a"]


def test_a_response_that_is_not_read_does_not_delay_the_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.broker.network_server.graceful_shutdown.SENDING_SECONDS", 0.1)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", max_message_bytes=20_000_000)
        wire.produce("t", bytes(15_000_000))
        wire.send(fetch("t", partition_max_bytes=2**30), 12)
        with Wire(broker.bootstrap_servers) as other:
            other.metadata()
        broker.close()
        assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_second_interrupt_stops_at_once_and_keeps_acknowledged_records(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().split()[1]
        with Wire(address) as wire:
            wire.create("t", max_message_bytes=20_000_000)
            assert wire.produce("t", bytes(15_000_000)).error_code == 0
            wire.send(fetch("t", partition_max_bytes=2**30), 12)  # its response is not read: the broker waits for that
            with Wire(address) as other:
                other.metadata()
            process.send_signal(signal.SIGINT)
            lines = iter(process.stderr.readline, "")
            first = next(
                line for line in lines if "running without compiled" not in line and "created data" not in line
            )
            assert first == "ottla broker: stopping; Ctrl-C again ends it at once\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT) == 130
            assert process.stderr.read() == "ottla broker: ended at once; the next start checks the logs\n"
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert wire.fetch("t").high_watermark == 1


def started(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ottla.cli.main", "broker", "--listen", "127.0.0.1:0", "--data-dir", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_start_warns_of_certificates_that_have_expired_or_expire_soon(caplog: pytest.LogCaptureFixture) -> None:
    day = 86_400.0
    warn_of_certificates({"OLD": 9 * day, "SOON": 20 * day, "LATER": 40 * day}, now=10 * day)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the certificate of listener OLD expired at 1970-01-10 00",
        "the certificate of listener SOON expires at 1970-01-21 00",
    ]
